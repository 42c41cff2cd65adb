/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/rocm_smi.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/library.h"
#include "driver/rocm_smi_abi.h"

struct rocm_smi {
    struct library library;
    struct { /* NULL where the library lacks a function */
#define ROCM_SMI_MEMBER(member, symbol, parameters) int(*member) parameters;
        ROCM_SMI_ABI_FUNCTIONS(ROCM_SMI_MEMBER)
#undef ROCM_SMI_MEMBER
    } call;
};

gpufl_status rocm_smi_open(struct rocm_smi **out, struct problem *problem)
{
    static const char *const names[] = {"librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5",
                                        "librocm_smi64.so.1", NULL};
    static const char *const directories[] = {"/opt/rocm/lib", "/opt/rocm-*/lib", NULL};
    const struct library_search search = {"librocm_smi64.so", "GPUFL_ROCM_SMI_PATH", directories, names};
    struct rocm_smi *smi = calloc(1, sizeof *smi);
    if (!smi)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    gpufl_status status = library_open(&smi->library, &search, problem);
    if (status != GPUFL_OK)
        goto fail;
#define ROCM_SMI_BIND(member, symbol, parameters) \
    smi->call.member = __extension__(int(*) parameters) library_symbol(&smi->library, #symbol);
    ROCM_SMI_ABI_FUNCTIONS(ROCM_SMI_BIND)
#undef ROCM_SMI_BIND
    if (!smi->call.init || !smi->call.shut_down || !smi->call.device_count || !smi->call.pci_id) {
        status =
            problem_set(problem, GPUFL_E_UNSUPPORTED, "%s lacks functions that every ROCm SMI has", smi->library.path);
        goto fail;
    }
    int result = smi->call.init(0);
    if (result != ROCM_SMI_ABI_SUCCESS) {
        status = problem_set(problem, GPUFL_E_NO_DRIVER, "rsmi_init failed (%d)", result);
        goto fail;
    }
    *out = smi;
    return GPUFL_OK;
fail:
    free(smi);
    return status;
}

void rocm_smi_close(struct rocm_smi *smi)
{
    if (!smi)
        return;
    (void)smi->call.shut_down();
    free(smi);
}

int rocm_smi_find(const struct rocm_smi *smi, const char *pci_bus_id)
{
    uint32_t count = 0;
    unsigned domain, bus, slot, function;
    if (sscanf(pci_bus_id, "%8x:%2x:%2x.%1x", &domain, &bus, &slot, &function) != 4 ||
        smi->call.device_count(&count) != ROCM_SMI_ABI_SUCCESS)
        return -1;
    for (uint32_t i = 0; i < count && i < 1024; i++) {
        uint64_t id;
        if (smi->call.pci_id(i, &id) != ROCM_SMI_ABI_SUCCESS)
            continue;
        /* Bits 28 to 31 are the partition number. */
        if (id >> 32 == domain && (id >> 8 & 0xff) == bus && (id >> 3 & 0x1f) == slot && (id & 7) == function)
            return (int)i;
    }
    return -1;
}

bool rocm_smi_energy_uj(const struct rocm_smi *smi, uint32_t index, uint64_t *microjoules)
{
    uint64_t counter = 0, time_ns = 0;
    float resolution = 0;
    if (!smi->call.energy || smi->call.energy(index, &counter, &resolution, &time_ns) != ROCM_SMI_ABI_SUCCESS ||
        !(resolution > 0 && resolution < 1e6f))
        return false;
    double value = (double)counter * (double)resolution;
    if (value >= 9e18)
        return false;
    *microjoules = (uint64_t)(value + 0.5);
    return true;
}

bool rocm_smi_errors(const struct rocm_smi *smi, uint32_t index, uint64_t *corrected, uint64_t *uncorrected)
{
    uint64_t blocks = 0;
    bool is_known = false;
    if (!smi->call.error_blocks || !smi->call.errors || smi->call.error_blocks(index, &blocks) != ROCM_SMI_ABI_SUCCESS)
        return false;
    *corrected = *uncorrected = 0;
    for (int i = 0; i < ROCM_SMI_ABI_BLOCK_COUNT; i++) {
        struct rocm_smi_abi_errors errors = {0};
        if (!(blocks >> i & 1) || smi->call.errors(index, UINT64_C(1) << i, &errors) != ROCM_SMI_ABI_SUCCESS)
            continue;
        is_known = true;
        if (__builtin_add_overflow(*corrected, errors.correctable, corrected) ||
            __builtin_add_overflow(*uncorrected, errors.uncorrectable, uncorrected))
            return false;
    }
    return is_known;
}
