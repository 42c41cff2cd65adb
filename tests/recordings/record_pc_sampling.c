/* SPDX-License-Identifier: Apache-2.0 */
/* Records what cuptiPCSamplingGetData returns on a machine with a GPU, in
 * continuous mode beside kernel records; not part of the build, since it needs
 * CUPTI's own headers:
 *
 *   cc -shared -fPIC -O2 -I$CUDA_HOME/include -o record_pc_sampling.so record_pc_sampling.c \
 *      -L$CUDA_HOME/lib64 -lcupti -lcuda -lpthread
 *   CUDA_INJECTION64_PATH=$PWD/record_pc_sampling.so RECORD_OUT=two_kernels.pcrec [RECORD_PERIOD=16] ./program
 *
 * The first context is sampled, from a thread that reads every 20 ms until the
 * program exits. What is then left in CUPTI's own buffer is block 4. README.md
 * has the format. Meant for CUPTI 12.4 and newer (64 bytes a PC). */
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_target.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PCS = 4096, STALLS = 128, NAMES_MAX = 4096, READ_MS = 20, HARDWARE_BYTES = 32 << 20 };
enum { BLOCK_STALL = 1, BLOCK_NAME = 2, BLOCK_READ = 3, BLOCK_FINAL = 4, FORMAT_VERSION = 1 };

struct buffer {
    CUpti_PCSamplingData data;
    CUpti_PCSamplingPCData pcs[PCS];
    CUpti_PCSamplingStallReason stalls[PCS][STALLS];
};

static FILE *out;
static CUcontext context;
static struct buffer reads, final;
static size_t stall_count;
static char *names[NAMES_MAX];
static uint32_t name_count;
static uint32_t period = 16;
static atomic_int is_over;
static pthread_t reader;

#define EXPECT(call)                                                                 \
    do {                                                                             \
        CUptiResult result_ = (call);                                                \
        if (result_ != CUPTI_SUCCESS)                                                \
            fprintf(stderr, "record_pc_sampling: %s returned %d\n", #call, result_); \
    } while (0)

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void u32_write(uint32_t value)
{
    fwrite(&value, sizeof value, 1, out);
}

static void text_write(uint32_t kind, uint32_t number, const char *text)
{
    u32_write(kind);
    u32_write((uint32_t)strlen(text) + 4);
    u32_write(number);
    fwrite(text, 1, strlen(text), out);
}

static uint32_t name_number(const char *name)
{
    for (uint32_t i = 0; name != NULL && i < name_count; i++)
        if (strcmp(names[i], name) == 0)
            return i + 1;
    if (name == NULL || name_count == NAMES_MAX)
        return 0;
    names[name_count++] = strdup(name);
    text_write(BLOCK_NAME, name_count, name);
    return name_count;
}

static void buffer_reset(struct buffer *buffer)
{
    memset(&buffer->data, 0, sizeof buffer->data);
    buffer->data.size = sizeof buffer->data;
    buffer->data.collectNumPcs = PCS;
    buffer->data.pPcData = buffer->pcs;
    for (size_t i = 0; i < PCS; i++) {
        memset(&buffer->pcs[i], 0, sizeof buffer->pcs[i]);
        buffer->pcs[i].size = sizeof buffer->pcs[i];
        buffer->pcs[i].stallReasonCount = stall_count;
        buffer->pcs[i].stallReason = buffer->stalls[i];
    }
}

/* A read as CUPTI answered it: pointers are replaced by what a reader can follow. */
static void buffer_write(uint32_t kind, struct buffer *buffer, int64_t begin_ns, int64_t end_ns, int result)
{
    uint32_t pc_count = (uint32_t)(buffer->data.totalNumPcs < PCS ? buffer->data.totalNumPcs : PCS);
    size_t size = 24 + sizeof buffer->data;
    for (uint32_t i = 0; i < pc_count; i++) {
        (void)name_number(buffer->pcs[i].functionName); /* its block comes first */
        size += sizeof buffer->pcs[i] + buffer->pcs[i].stallReasonCount * sizeof(CUpti_PCSamplingStallReason);
    }
    u32_write(kind);
    u32_write((uint32_t)size);
    fwrite(&begin_ns, sizeof begin_ns, 1, out);
    fwrite(&end_ns, sizeof end_ns, 1, out);
    u32_write((uint32_t)result);
    u32_write(pc_count);
    CUpti_PCSamplingData data = buffer->data;
    data.pPcData = NULL;
    fwrite(&data, sizeof data, 1, out);
    for (uint32_t i = 0; i < pc_count; i++) {
        CUpti_PCSamplingPCData pc = buffer->pcs[i];
        pc.functionName = (char *)(uintptr_t)name_number(pc.functionName);
        pc.stallReason = NULL;
        fwrite(&pc, sizeof pc, 1, out);
        fwrite(buffer->stalls[i], sizeof(CUpti_PCSamplingStallReason), pc.stallReasonCount, out);
    }
}

static void read_once(void)
{
    do {
        buffer_reset(&reads);
        CUpti_PCSamplingGetDataParams params = {CUpti_PCSamplingGetDataParamsSize, NULL, context, &reads.data};
        int64_t begin_ns = now_ns();
        CUptiResult result = cuptiPCSamplingGetData(&params);
        if (reads.data.totalNumPcs > 0 || reads.data.totalSamples > 0 || result != CUPTI_SUCCESS)
            buffer_write(BLOCK_READ, &reads, begin_ns, now_ns(), (int)result);
    } while (reads.data.remainingNumPcs > 0 && reads.data.totalNumPcs > 0);
}

static void stalls_write(void)
{
    static char texts[STALLS][CUPTI_STALL_REASON_STRING_SIZE];
    static char *pointers[STALLS];
    static uint32_t indexes[STALLS];
    CUpti_PCSamplingGetNumStallReasonsParams count = {CUpti_PCSamplingGetNumStallReasonsParamsSize, NULL, context,
                                                      &stall_count};
    EXPECT(cuptiPCSamplingGetNumStallReasons(&count));
    if (stall_count > STALLS)
        stall_count = STALLS;
    for (size_t i = 0; i < STALLS; i++)
        pointers[i] = texts[i];
    CUpti_PCSamplingGetStallReasonsParams params = {
        CUpti_PCSamplingGetStallReasonsParamsSize, NULL, context, stall_count, indexes, pointers};
    EXPECT(cuptiPCSamplingGetStallReasons(&params));
    for (size_t i = 0; i < stall_count; i++)
        text_write(BLOCK_STALL, indexes[i], texts[i]);
}

static void sampling_begin(void)
{
    CUpti_Profiler_Initialize_Params initialize = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE, NULL};
    EXPECT(cuptiProfilerInitialize(&initialize));
    fwrite("CUPTIPCS", 1, 8, out);
    uint32_t version = 0;
    cuptiGetVersion(&version);
    u32_write(FORMAT_VERSION);
    u32_write(version);
    u32_write(CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS);
    u32_write(period);
    CUpti_PCSamplingEnableParams enable = {CUpti_PCSamplingEnableParamsSize, NULL, context};
    EXPECT(cuptiPCSamplingEnable(&enable));
    stalls_write(); /* not known before */
    buffer_reset(&final);
    CUpti_PCSamplingConfigurationInfo info[4] = {0};
    info[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
    info[0].attributeData.collectionModeData.collectionMode = CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
    info[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
    info[1].attributeData.samplingPeriodData.samplingPeriod = period;
    info[2].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
    info[2].attributeData.hardwareBufferSizeData.hardwareBufferSize = HARDWARE_BYTES;
    info[3].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
    info[3].attributeData.samplingDataBufferData.samplingDataBuffer = &final.data;
    CUpti_PCSamplingConfigurationInfoParams params = {CUpti_PCSamplingConfigurationInfoParamsSize, NULL, context, 4,
                                                      info};
    EXPECT(cuptiPCSamplingSetConfigurationAttribute(&params));
}

/* Outside of CUPTI's callbacks, where sampling cannot be configured. */
static void *reader_run(void *unused)
{
    (void)unused;
    CUdevice device = 0;
    int is_active = 0;
    unsigned flags;
    while (!atomic_load(&is_over) &&
           (cuDevicePrimaryCtxGetState(device, &flags, &is_active) != CUDA_SUCCESS || !is_active))
        usleep(200);
    if (!is_active || cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
        return NULL;
    sampling_begin();
    while (!atomic_load(&is_over)) {
        usleep(READ_MS * 1000);
        read_once();
    }
    return NULL;
}

static void finish(void)
{
    atomic_store(&is_over, 1);
    pthread_join(reader, NULL);
    if (context != NULL) {
        read_once();
        int64_t begin_ns = now_ns();
        CUpti_PCSamplingDisableParams disable = {CUpti_PCSamplingDisableParamsSize, NULL, context};
        EXPECT(cuptiPCSamplingDisable(&disable));
        buffer_write(BLOCK_FINAL, &final, begin_ns, now_ns(), 0);
    }
    fclose(out);
}

static void CUPTIAPI buffer_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *size = 1 << 20;
    *buffer = aligned_alloc(8, *size);
    *max_records = 0;
}

static void CUPTIAPI buffer_complete(CUcontext from, uint32_t stream_id, uint8_t *buffer, size_t size, size_t valid)
{
    (void)from, (void)stream_id, (void)size, (void)valid;
    free(buffer);
}

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
    const char *path = getenv("RECORD_OUT"), *exponent = getenv("RECORD_PERIOD");
    out = path != NULL ? fopen(path, "wb") : NULL;
    if (out == NULL)
        return 1;
    if (exponent != NULL)
        period = (uint32_t)strtoul(exponent, NULL, 10);
    /* Before sampling: CUPTI does not enable them beside it. */
    cuptiActivityRegisterCallbacks(buffer_request, buffer_complete);
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    if (pthread_create(&reader, NULL, reader_run, NULL) == 0)
        atexit(finish);
    return 1;
}
