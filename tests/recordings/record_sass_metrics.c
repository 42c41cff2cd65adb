/* SPDX-License-Identifier: Apache-2.0 */
/* Records what CUPTI's SASS metrics return on a machine with a GPU, as text
 * without pointers (README.md); not part of the build, since it needs CUPTI's
 * own headers. The program calls sass_record_begin and sass_record_end around
 * its launches, as ../device/sass_kernels.cu does when this is preloaded:
 *
 *   cc -shared -fPIC -O2 -I$CUDA_HOME/include -o record_sass_metrics.so record_sass_metrics.c \
 *      -L$CUDA_HOME/lib64 -lcupti -lcuda
 *   LD_PRELOAD=$PWD/record_sass_metrics.so RECORD_OUT=h200_sass.sassrec ./sass_kernels
 *
 * RECORD_METRICS: metric names separated by commas, else gpufl's default set.
 * RECORD_EAGER=1: without lazy patching. */
#include <cuda.h>
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_target.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS_MAX = 96, FUNCTIONS_MAX = 4096 };

#define CHECK(call)                                                                            \
    do {                                                                                       \
        CUptiResult result_ = (call);                                                          \
        if (result_ != CUPTI_SUCCESS) {                                                        \
            const char *text_ = "?";                                                           \
            cuptiGetResultString(result_, &text_);                                             \
            fprintf(stderr, "record_sass_metrics: %s: %s (%d)\n", #call, text_, (int)result_); \
            return;                                                                            \
        }                                                                                      \
    } while (0)

void sass_record_begin(void);
void sass_record_end(void);

static const char default_metrics[] =
    "smsp__sass_inst_executed,smsp__sass_thread_inst_executed,smsp__sass_thread_inst_executed_pred_on,"
    "smsp__sass_branch_targets_threads_divergent,smsp__sass_branch_targets_threads_uniform,"
    "smsp__sass_sectors_mem_global,smsp__sass_sectors_mem_global_ideal,"
    "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared,smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared_ideal,"
    "smsp__sass_sectors_mem_local";
static CUcontext context;
static CUdevice device;
static CUpti_SassMetrics_Config configs[METRICS_MAX];
static char names[METRICS_MAX][128];
static size_t metric_count;
static int is_enabled;
static struct {
    uint32_t cubin_crc;
    char *name; /* function_index is 0 for all on some releases */
} functions[FUNCTIONS_MAX];
static size_t function_count;

static void metrics_choose(const char *chip)
{
    const char *text = getenv("RECORD_METRICS");
    char *list = strdup(text ? text : default_metrics), *rest = list, *name;
    while ((name = strtok_r(rest, ",", &rest)) && metric_count < METRICS_MAX) {
        CUpti_SassMetrics_GetProperties_Params params = {.structSize =
                                                             CUpti_SassMetrics_GetProperties_Params_STRUCT_SIZE};
        params.pChipName = chip;
        params.pMetricName = name;
        if (cuptiSassMetricsGetProperties(&params) != CUPTI_SUCCESS) {
            fprintf(stderr, "record_sass_metrics: %s has no %s\n", chip, name);
            continue;
        }
        snprintf(names[metric_count], sizeof names[0], "%s", name);
        configs[metric_count].metricId = params.metric.metricId;
        configs[metric_count++].outputGranularity = CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU;
    }
    free(list);
}

/* Without PC sampling CUPTI 13.0 counts only the first function that is launched. It takes no samples meanwhile. */
static void pc_sampling_enable(void)
{
    static CUpti_PCSamplingData data;
    static CUpti_PCSamplingPCData pc;
    static CUpti_PCSamplingStallReason stalls[64];
    CUpti_PCSamplingEnableParams enable = {.size = CUpti_PCSamplingEnableParamsSize};
    CUpti_PCSamplingConfigurationInfo info[4];
    CUpti_PCSamplingConfigurationInfoParams configure = {.size = CUpti_PCSamplingConfigurationInfoParamsSize};
    memset(info, 0, sizeof info);
    pc.size = sizeof pc;
    pc.stallReason = stalls;
    pc.stallReasonCount = 64;
    data.size = sizeof data;
    data.collectNumPcs = 1;
    data.pPcData = &pc;
    info[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
    info[0].attributeData.collectionModeData.collectionMode = CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
    info[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
    info[1].attributeData.samplingPeriodData.samplingPeriod = 31;
    info[2].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
    info[2].attributeData.hardwareBufferSizeData.hardwareBufferSize = 32 << 20;
    info[3].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
    info[3].attributeData.samplingDataBufferData.samplingDataBuffer = &data;
    enable.ctx = configure.ctx = context;
    configure.numAttributes = 4;
    configure.pPCSamplingConfigurationInfo = info;
    CHECK(cuptiPCSamplingEnable(&enable));
    CHECK(cuptiPCSamplingSetConfigurationAttribute(&configure));
}

void sass_record_begin(void)
{
    CUpti_Profiler_Initialize_Params initialize = {.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
    CUpti_Device_GetChipName_Params chip = {.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE};
    CUpti_SassMetricsSetConfig_Params config = {.structSize = CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE};
    CUpti_SassMetricsEnable_Params enable = {.structSize = CUpti_SassMetricsEnable_Params_STRUCT_SIZE};
    if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context || cuCtxGetDevice(&device) != CUDA_SUCCESS) {
        fprintf(stderr, "record_sass_metrics: no CUDA context is current\n");
        return;
    }
    CHECK(cuptiProfilerInitialize(&initialize));
    pc_sampling_enable();
    chip.deviceIndex = (size_t)device;
    CHECK(cuptiDeviceGetChipName(&chip));
    metrics_choose(chip.pChipName);
    config.numOfMetricConfig = metric_count;
    config.pConfigs = configs;
    config.deviceIndex = (uint32_t)device;
    CHECK(cuptiSassMetricsSetConfig(&config));
    enable.ctx = context;
    enable.enableLazyPatching = getenv("RECORD_EAGER") == NULL;
    CHECK(cuptiSassMetricsEnable(&enable));
    is_enabled = 1;
}

/* The number of a record's function in the file; written when it is new. */
static size_t function_number(FILE *out, const CUpti_SassMetrics_Data *record)
{
    const char *name = record->functionName ? record->functionName : "?";
    size_t i = 0;
    while (i < function_count && (functions[i].cubin_crc != record->cubinCrc || strcmp(functions[i].name, name)))
        i++;
    if (i < function_count || i == FUNCTIONS_MAX)
        return i;
    functions[function_count].cubin_crc = record->cubinCrc;
    functions[function_count++].name = strdup(name);
    fprintf(out, "function %zu %u %u %s\n", i, record->cubinCrc, record->functionIndex, name);
    return i;
}

static size_t metric_number(uint64_t id)
{
    size_t i = 0;
    while (i < metric_count && configs[i].metricId != id)
        i++;
    return i;
}

static void records_write(FILE *out, const CUpti_SassMetrics_Data *records, size_t count, size_t instances)
{
    for (size_t i = 0; i < count; i++)
        (void)function_number(out, &records[i]);
    fprintf(out, "flush %zu %zu\n", count, instances);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "record %zu %u", function_number(out, &records[i]), records[i].pcOffset);
        for (size_t j = 0; j < instances; j++)
            fprintf(out, " %zu:%llu", metric_number(records[i].pInstanceValues[j].metricId),
                    (unsigned long long)records[i].pInstanceValues[j].value);
        fprintf(out, "\n");
    }
}

void sass_record_end(void)
{
    CUpti_SassMetricsGetDataProperties_Params data = {.structSize =
                                                          CUpti_SassMetricsGetDataProperties_Params_STRUCT_SIZE};
    CUpti_SassMetricsFlushData_Params flush = {.structSize = CUpti_SassMetricsFlushData_Params_STRUCT_SIZE};
    CUpti_SassMetricsDisable_Params disable = {.structSize = CUpti_SassMetricsDisable_Params_STRUCT_SIZE};
    CUpti_SassMetricsUnsetConfig_Params unset = {.structSize = CUpti_SassMetricsUnsetConfig_Params_STRUCT_SIZE};
    const char *path = getenv("RECORD_OUT");
    FILE *out = path ? fopen(path, "w") : stdout;
    uint32_t version = 0;
    if (!is_enabled || !out)
        return;
    cuptiGetVersion(&version);
    fprintf(out, "sassrec 1\ncupti %u\n", version);
    for (size_t i = 0; i < metric_count; i++)
        fprintf(out, "metric %zu %s\n", i, names[i]);
    data.ctx = disable.ctx = flush.ctx = context;
    CHECK(cuptiSassMetricsGetDataProperties(&data));
    size_t count = data.numOfPatchedInstructionRecords, instances = data.numOfInstances;
    CUpti_SassMetrics_Data *records = calloc(count ? count : 1, sizeof *records);
    CUpti_SassMetrics_InstanceValue *values = calloc(count * instances + 1, sizeof *values);
    if (!records || !values)
        return;
    for (size_t i = 0; i < count; i++) {
        records[i].structSize = sizeof *records;
        records[i].pInstanceValues = values + i * instances;
    }
    flush.numOfPatchedInstructionRecords = count;
    flush.numOfInstances = instances;
    flush.pMetricsData = records;
    CHECK(cuptiSassMetricsFlushData(&flush));
    records_write(out, records, count, instances);
    if (path)
        fclose(out);
    CHECK(cuptiSassMetricsDisable(&disable));
    unset.deviceIndex = (uint32_t)device;
    CHECK(cuptiSassMetricsUnsetConfig(&unset));
    fprintf(stderr, "record_sass_metrics: %zu records of %zu instances, %zu dropped\n", count, instances,
            disable.numOfDroppedRecords);
}
