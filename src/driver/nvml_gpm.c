/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "driver/nvml_table.h"

enum { gap_min_ms = 100 }; /* samples closer than this are noise */

static const struct gpm_metric {
    unsigned id;
    enum gpu_metric metric;
    bool is_rate; /* MiB per second; else percent */
} gpm_metrics[] = {
    {NVML_ABI_GPM_SM_UTIL, GPU_SM_ACTIVE_BP, false},        {NVML_ABI_GPM_SM_OCCUPANCY, GPU_SM_OCCUPANCY_BP, false},
    {NVML_ABI_GPM_ANY_TENSOR, GPU_TENSOR_ACTIVE_BP, false}, {NVML_ABI_GPM_DRAM, GPU_DRAM_ACTIVE_BP, false},
    {NVML_ABI_GPM_FP64, GPU_FP64_ACTIVE_BP, false},         {NVML_ABI_GPM_FP32, GPU_FP32_ACTIVE_BP, false},
    {NVML_ABI_GPM_FP16, GPU_FP16_ACTIVE_BP, false},         {NVML_ABI_GPM_PCIE_RX, GPU_PCIE_RX_BPS, true},
    {NVML_ABI_GPM_PCIE_TX, GPU_PCIE_TX_BPS, true},          {NVML_ABI_GPM_NVLINK_RX, GPU_NVLINK_RX_BPS, true},
    {NVML_ABI_GPM_NVLINK_TX, GPU_NVLINK_TX_BPS, true},
};
enum { gpm_metric_count = sizeof gpm_metrics / sizeof gpm_metrics[0] };

static void probe(const struct nvml *nvml, const struct nvml_gpm_source *source)
{
    const struct nvml_table *call = &nvml->call;
    struct nvml_gpm *gpm = source->gpm;
    bool has_sample_get = source->is_instance ? call->gpm_mig_sample_get != NULL : call->gpm_sample_get != NULL;
    gpm->is_probed = true;
    if (!call->gpm_support || !call->gpm_sample_alloc || !call->gpm_sample_free || !has_sample_get ||
        !call->gpm_metrics_get)
        return;
    struct nvml_abi_gpm_support support = {.version = 1};
    if (call->gpm_support(source->handle, &support) != NVML_ABI_SUCCESS || !support.is_supported)
        return;
    if (call->gpm_sample_alloc(&gpm->older) != NVML_ABI_SUCCESS) {
        gpm->older = NULL;
        return;
    }
    if (call->gpm_sample_alloc(&gpm->newer) != NVML_ABI_SUCCESS) {
        gpm->newer = NULL;
        nvml_gpm_release(nvml, gpm);
        return;
    }
    gpm->is_supported = true;
}

void nvml_gpm_release(const struct nvml *nvml, struct nvml_gpm *gpm)
{
    if (gpm->older)
        nvml->call.gpm_sample_free(gpm->older);
    if (gpm->newer)
        nvml->call.gpm_sample_free(gpm->newer);
    gpm->older = gpm->newer = NULL;
    gpm->is_supported = gpm->has_older = false;
    gpm->last.known = 0;
}

static void take_metrics(struct nvml *nvml, struct nvml_gpm *gpm)
{
    struct nvml_abi_gpm_metrics *request = &nvml->gpm_metrics;
    gpm->last.known = 0;
    request->version = 1;
    request->metric_count = gpm_metric_count;
    request->older = gpm->older;
    request->newer = gpm->newer;
    for (int i = 0; i < gpm_metric_count; i++)
        request->metrics[i] = (struct nvml_abi_gpm_metric){.metric_id = gpm_metrics[i].id, .result = NVML_ABI_UNKNOWN};
    if (nvml->call.gpm_metrics_get(request) != NVML_ABI_SUCCESS)
        return;
    for (int i = 0; i < gpm_metric_count; i++) {
        const struct gpm_metric *known = &gpm_metrics[i];
        double value = request->metrics[i].value;
        /* Also rejects NaN. Rounding may exceed the maximum slightly. */
        double most = known->is_rate ? 1e9 : 100.5;
        if (request->metrics[i].result != NVML_ABI_SUCCESS || !(value >= 0 && value <= most))
            continue;
        uint64_t scaled = (uint64_t)(value * (known->is_rate ? 1048576.0 : 100.0) + 0.5);
        if (!known->is_rate && scaled > 10000)
            scaled = 10000;
        gpm->last.known |= 1ull << known->metric;
        gpm->last.values[known->metric] = scaled;
    }
}

static void give_metrics(const struct nvml_gpm *gpm, struct gpu_sample *sample)
{
    for (int i = 0; i < gpm_metric_count; i++) {
        enum gpu_metric metric = gpm_metrics[i].metric;
        if (gpm->last.known >> metric & 1)
            sample->values[metric] = gpm->last.values[metric];
    }
    sample->known |= gpm->last.known;
}

void nvml_gpm_sample(struct nvml *nvml, const struct nvml_gpm_source *source, struct gpu_sample *sample)
{
    struct nvml_gpm *gpm = source->gpm;
    if (!gpm->is_probed)
        probe(nvml, source);
    int64_t now_ns = clock_mono_ns();
    if (!gpm->is_supported)
        return;
    if (gpm->has_older && now_ns - gpm->older_ns < gap_min_ms * 1000000ll) {
        /* A tick soon after a late one: the last period ended just now. */
        give_metrics(gpm, sample);
        return;
    }
    int result = source->is_instance
                     ? nvml->call.gpm_mig_sample_get(source->handle, source->gpu_instance_id, gpm->newer)
                     : nvml->call.gpm_sample_get(source->handle, gpm->newer);
    if (result == NVML_ABI_GPU_IS_LOST)
        sample->is_lost = true;
    if (result == NVML_ABI_NOT_SUPPORTED || result == NVML_ABI_NO_PERMISSION)
        nvml_gpm_release(nvml, gpm);
    if (result != NVML_ABI_SUCCESS)
        return;
    if (gpm->has_older) {
        take_metrics(nvml, gpm);
        give_metrics(gpm, sample);
    }
    void *newest = gpm->newer;
    gpm->newer = gpm->older;
    gpm->older = newest;
    gpm->older_ns = now_ns;
    gpm->has_older = true;
}
