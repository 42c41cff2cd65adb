/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike PC sampling. A kernel that runs is sampled 528 times a period (132
 * SMs of four sub-partitions at 1.98 GHz); a kernel whose name has an even sum
 * has the PCs and stalls of a memory-bound loop, the others those of arithmetic.
 * What the hardware buffer (32 bytes a sample) cannot hold until it is read is
 * lost, and then, as documented, the whole read with it. */
#include "cupti_pc_sampling.h"

#include "cupti_callbacks.h"
#include "cupti_fake.h"
#include "cupti_records.h"
#include "cupti_sass.h"
#include "faults.h"
#include "gpu_timeline.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    INVALID_CONTEXT = 3,
    CONTEXTS = 64,
    RUNS = 16384,
    PCS = 8,
    PATCHED_OFFSET = 0x4000, /* where no instruction of the program's own is */
    STALLS_OF_PC = 2,
    SHARES = 64,
    SAMPLE_BYTES = 32,
    SAMPLERS = 132 * 4,
    CYCLES_PER_MICROSECOND = 1980
};

static const char *const stall_names[] = {
    "smsp__pcsamp_warps_issue_stalled_selected",       "smsp__pcsamp_warps_issue_stalled_barrier",
    "smsp__pcsamp_warps_issue_stalled_branch_resolve", "smsp__pcsamp_warps_issue_stalled_dispatch_stall",
    "smsp__pcsamp_warps_issue_stalled_drain",          "smsp__pcsamp_warps_issue_stalled_imc_miss",
    "smsp__pcsamp_warps_issue_stalled_lg_throttle",    "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
    "smsp__pcsamp_warps_issue_stalled_math_throttle",  "smsp__pcsamp_warps_issue_stalled_membar",
    "smsp__pcsamp_warps_issue_stalled_mio_throttle",   "smsp__pcsamp_warps_issue_stalled_no_instructions",
    "smsp__pcsamp_warps_issue_stalled_not_selected",   "smsp__pcsamp_warps_issue_stalled_short_scoreboard",
    "smsp__pcsamp_warps_issue_stalled_sleeping",       "smsp__pcsamp_warps_issue_stalled_tex_throttle",
    "smsp__pcsamp_warps_issue_stalled_wait",           "smsp__pcsamp_warps_issue_stalled_gmma",
};
enum {
    STALL_COUNT = sizeof stall_names / sizeof stall_names[0],
    FIRST_STALL_INDEX = 1, /* not what they are in an array: the product must use the table */
    SELECTED = 0,
    LONG_SCOREBOARD = 7,
    MATH_THROTTLE = 8,
    WAIT = 16
};

/* A kernel's code: samples by PC of SHARES, and the stall that half of them have. */
struct code {
    uint8_t shares[PCS];
    uint8_t stalls[PCS];
};
static const struct code memory_code = {{2, 2, 2, 50, 2, 2, 2, 2},
                                        {WAIT, WAIT, WAIT, LONG_SCOREBOARD, WAIT, WAIT, WAIT, WAIT}};
static const struct code math_code = {
    {4, 8, 8, 8, 8, 8, 16, 4}, {WAIT, MATH_THROTTLE, MATH_THROTTLE, WAIT, MATH_THROTTLE, WAIT, MATH_THROTTLE, WAIT}};

struct run { /* one execution that is or will be sampled */
    const struct fake_kernel *kernel;
    uint64_t start_ns, end_ns, sampled_ns; /* sampled until */
    uint32_t correlation_id;
    bool is_patched; /* its instructions were counted, by others between them */
};
struct sampled { /* samples of one function, or of one launch in serialized mode, not read yet */
    const struct fake_kernel *kernel;
    uint32_t correlation_id;
    bool is_patched;
    uint64_t samples;
};
struct context {
    const void *handle;
    uint32_t id;
    bool is_enabled, is_configured, is_serialized;
    uint32_t period, worker_sleep_ms;
    uint64_t enabled_ns;
    size_t hardware_bytes;
    struct pc_sampling_abi_data *final;
    struct run runs[RUNS];
    size_t run_count;
    struct sampled sampled[RUNS];
    size_t sampled_count, sampled_first, pc_first; /* the first not read yet */
    uint64_t unread;
};
static atomic_bool is_damaged; /* a read failed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts[CONTEXTS];

static int call_begin(const char *function, size_t struct_bytes, size_t expected, const void *context)
{
    int result = fault_result_sized(function, struct_bytes, expected);
    return result == CUPTI_ABI_SUCCESS && context == NULL ? INVALID_CONTEXT : result;
}

/* The context's state; may_make: else one that nobody uses. Wants the lock. */
static struct context *context_of(const void *handle, bool may_make)
{
    struct context **place = NULL;
    for (size_t i = 0; i < CONTEXTS; i++) {
        if (contexts[i] != NULL && contexts[i]->handle == handle)
            return contexts[i];
        if (place == NULL && (contexts[i] == NULL || !contexts[i]->is_enabled))
            place = &contexts[i];
    }
    if (!may_make || place == NULL || (*place == NULL && (*place = calloc(1, sizeof **place)) == NULL))
        return NULL;
    (*place)->handle = handle;
    (*place)->id = ((const struct fake_context *)handle)->id;
    return *place;
}

void pc_sampling_work(const struct fake_work *work)
{
    if (work->kind != FAKE_WORK_KERNEL || pc_recording_is_wanted())
        return;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < CONTEXTS && contexts[i] != NULL; i++) {
        struct context *context = contexts[i];
        if (context->is_enabled && context->id == work->context_id && context->run_count < RUNS)
            context->runs[context->run_count++] =
                (struct run){work->kernel,   work->start_ns,       work->end_ns,
                             work->start_ns, work->correlation_id, sass_counts(work->context_id)};
    }
    pthread_mutex_unlock(&lock);
}

static void sampled_add(struct context *context, const struct run *run, uint64_t samples)
{
    uint32_t correlation_id = context->is_serialized ? run->correlation_id : 0;
    size_t i = context->sampled_first;
    while (i < context->sampled_count &&
           (context->sampled[i].kernel != run->kernel || context->sampled[i].correlation_id != correlation_id ||
            context->sampled[i].is_patched != run->is_patched))
        i++;
    if (i == context->sampled_count) {
        if (i == RUNS)
            return;
        context->sampled[context->sampled_count++] = (struct sampled){run->kernel, correlation_id, run->is_patched, 0};
    }
    context->sampled[i].samples += samples;
    context->unread += samples;
}

/* Until when CUPTI's own thread has decoded. */
static uint64_t decoded_ns(const struct context *context)
{
    uint64_t now_ns = clock_now_ns(), round_ns = context->worker_sleep_ms * UINT64_C(1000000);
    return round_ns ? now_ns - (now_ns - context->enabled_ns) % round_ns : now_ns;
}

/* Lets the simulated GPU sample until then. */
static void context_sample(struct context *context, uint64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < context->run_count; i++) {
        struct run *run = &context->runs[i];
        uint64_t until_ns = run->end_ns < now_ns ? run->end_ns : now_ns;
        uint64_t period_ns = ((1000ull << context->period) + CYCLES_PER_MICROSECOND - 1) / CYCLES_PER_MICROSECOND;
        if (until_ns > run->sampled_ns) {
            uint64_t periods = (until_ns - run->sampled_ns) / period_ns;
            if (periods > 0)
                sampled_add(context, run, periods * SAMPLERS);
            run->sampled_ns += periods * period_ns;
        }
        if (run->end_ns > now_ns)
            context->runs[kept++] = *run;
    }
    context->run_count = kept;
}

static uint32_t name_sum(const char *name)
{
    uint32_t sum = 0;
    while (*name != '\0')
        sum += (unsigned char)*name++;
    return sum;
}

static char *name_give(const struct sampled *sampled)
{
    char who[16];
    fault_text("pc_names", who, sizeof who);
    if (strcmp(who, "shared") != 0)
        return strdup(sampled->kernel->name);
    return (char *)(uintptr_t)sampled->kernel->name;
}

static void pc_write(uint8_t *place, size_t pc_bytes, struct sampled *sampled, size_t number)
{
    struct pc_sampling_abi_pc pc = {0};
    uint32_t sum = name_sum(sampled->kernel->name);
    const struct code *code = sum % 2 == 0 ? &memory_code : &math_code;
    uint64_t samples = sampled->samples * code->shares[number] / SHARES;
    for (size_t i = 0; number == PCS - 1 && i < number; i++) /* the last has what is left */
        samples = (i == 0 ? sampled->samples : samples) - sampled->samples * code->shares[i] / SHARES;
    memcpy(&pc, place, pc_bytes);
    pc.cubin_crc = 0xc0de0000u + sum % 2;
    pc.pc_offset = number * 16 + (sampled->is_patched ? PATCHED_OFFSET : 0);
    pc.function_index = sum % 251;
    pc.function_name = name_give(sampled);
    pc.correlation_id = sampled->correlation_id;
    size_t stall_count = 0;
    const uint32_t indexes[STALLS_OF_PC] = {code->stalls[number], SELECTED};
    const uint64_t counts[STALLS_OF_PC] = {samples - samples / 2, samples / 2};
    for (size_t i = 0; i < STALLS_OF_PC && stall_count < pc.stall_count; i++)
        if (counts[i] > 0)
            pc.stalls[stall_count++] =
                (struct pc_sampling_abi_stall){indexes[i] + FIRST_STALL_INDEX, (uint32_t)counts[i]};
    pc.stall_count = stall_count;
    memcpy(place, &pc, pc_bytes);
}

/* What was sampled, as far as it fits. */
static void data_fill(struct context *context, struct pc_sampling_abi_data *data, size_t pcs_max)
{
    size_t pc_bytes = cupti_version_played() < 22 ? PC_SAMPLING_ABI_PC_BYTES_12_0 : PC_SAMPLING_ABI_PC_BYTES_12_4;
    data->total_pcs = 0;
    while (context->sampled_first < context->sampled_count && data->total_pcs < pcs_max) {
        pc_write((uint8_t *)data->pcs + data->total_pcs++ * pc_bytes, pc_bytes,
                 &context->sampled[context->sampled_first], context->pc_first++);
        if (context->pc_first == PCS) {
            context->pc_first = 0;
            context->sampled_first++;
        }
    }
    data->remaining_pcs = (context->sampled_count - context->sampled_first) * PCS - context->pc_first;
    data->dropped_samples = context->unread > 0 ? (uint64_t)fault_number("pc_dropped", 0) : 0;
    data->non_user_samples = context->unread > 0 ? (uint64_t)fault_number("pc_non_user", 0) : 0;
    data->total_samples = context->unread + data->dropped_samples + data->non_user_samples;
    context->unread = 0;
    if (context->sampled_first == context->sampled_count)
        context->sampled_first = context->sampled_count = 0;
}

bool pc_sampling_is_enabled(void)
{
    bool is_enabled = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < CONTEXTS && contexts[i] != NULL; i++)
        is_enabled |= contexts[i]->is_enabled;
    pthread_mutex_unlock(&lock);
    return is_enabled;
}

int cuptiPCSamplingEnable(struct pc_sampling_abi_context_params *params)
{
    int result = call_begin("cuptiPCSamplingEnable", params->size, sizeof *params, params->context);
    if (result == CUPTI_ABI_SUCCESS)
        result = cupti_attach();
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    struct context *context = context_of(params->context, true);
    if (context == NULL)
        result = PC_SAMPLING_ABI_OUT_OF_MEMORY;
    else if (context->is_enabled)
        result = CUPTI_INVALID_OPERATION;
    else {
        context->is_enabled = true;
        context->is_configured = false;
        context->period = 16;
        context->worker_sleep_ms = 0;
        context->enabled_ns = clock_now_ns();
        context->hardware_bytes = 512u << 20;
        context->final = NULL;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static int attribute_set(struct context *context, const struct pc_sampling_abi_attribute *attribute)
{
    switch (attribute->type) {
    case PC_SAMPLING_ABI_PERIOD:
        if (attribute->value.number < PC_SAMPLING_ABI_PERIOD_MIN ||
            attribute->value.number > PC_SAMPLING_ABI_PERIOD_MAX)
            return CUPTI_INVALID_OPERATION;
        context->period = attribute->value.number;
        return CUPTI_ABI_SUCCESS;
    case PC_SAMPLING_ABI_HARDWARE_BYTES:
        context->hardware_bytes = attribute->value.bytes;
        return CUPTI_ABI_SUCCESS;
    case PC_SAMPLING_ABI_MODE:
        context->is_serialized = attribute->value.number == PC_SAMPLING_ABI_SERIALIZED;
        return CUPTI_ABI_SUCCESS;
    case PC_SAMPLING_ABI_DATA_BUFFER:
        context->final = attribute->value.pointer;
        return CUPTI_ABI_SUCCESS;
    case PC_SAMPLING_ABI_WORKER_SLEEP_MS:
        if (cupti_version_played() < 20)
            return CUPTI_INVALID_PARAMETER;
        context->worker_sleep_ms = attribute->value.number;
        return CUPTI_ABI_SUCCESS;
    default:
        return attribute->type > 0 && attribute->type < PC_SAMPLING_ABI_WORKER_SLEEP_MS ? CUPTI_ABI_SUCCESS
                                                                                        : CUPTI_INVALID_PARAMETER;
    }
}

int cuptiPCSamplingSetConfigurationAttribute(struct pc_sampling_abi_configuration_params *params)
{
    int result = call_begin("cuptiPCSamplingSetConfigurationAttribute", params->size, sizeof *params, params->context);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    struct context *context = context_of(params->context, false);
    if (context == NULL || !context->is_enabled || context->run_count > 0)
        result = CUPTI_INVALID_OPERATION;
    for (size_t i = 0; result == CUPTI_ABI_SUCCESS && i < params->attribute_count; i++) {
        params->attributes[i].status = (uint32_t)attribute_set(context, &params->attributes[i]);
        if (params->attributes[i].status != CUPTI_ABI_SUCCESS)
            result = CUPTI_INVALID_PARAMETER;
    }
    if (result == CUPTI_ABI_SUCCESS)
        context->is_configured = context->final != NULL;
    pthread_mutex_unlock(&lock);
    return result;
}

static int context_read(struct context *context, struct pc_sampling_abi_data *data, bool is_final)
{
    int result = CUPTI_ABI_SUCCESS;
    if (pc_recording_is_wanted()) {
        if (!pc_recording_read(data, PC_SAMPLING_ABI_PC_BYTES_12_4, is_final, &result))
            data->total_pcs = data->remaining_pcs = 0;
        return result;
    }
    context_sample(context, is_final ? clock_now_ns() : decoded_ns(context));
    if (context->unread * SAMPLE_BYTES <= context->hardware_bytes) {
        size_t least = (size_t)fault_number("pc_final", (int64_t)data->collect_pcs);
        data_fill(context, data, is_final && least < data->collect_pcs ? least : data->collect_pcs);
        return CUPTI_ABI_SUCCESS;
    }
    context->unread = 0;
    context->sampled_count = context->sampled_first = context->pc_first = 0;
    data->total_pcs = data->remaining_pcs = 0;
    data->is_hardware_buffer_full = 1;
    return PC_SAMPLING_ABI_OUT_OF_MEMORY;
}

int cuptiPCSamplingGetData(struct pc_sampling_abi_data_params *params)
{
    int result = call_begin("cuptiPCSamplingGetData", params->size, sizeof *params, params->context);
    if (result != CUPTI_ABI_SUCCESS) {
        is_damaged |= result != PC_SAMPLING_ABI_OUT_OF_MEMORY;
        return result;
    }
    if (params->data == NULL || params->data->size != sizeof *params->data)
        return CUPTI_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    struct context *context = context_of(params->context, false);
    result = context != NULL && context->is_enabled && context->is_configured
                 ? context_read(context, params->data, false)
                 : CUPTI_INVALID_OPERATION;
    pthread_mutex_unlock(&lock);
    return result;
}

void pc_sampling_crash_if_damaged(void)
{
    if (is_damaged)
        raise(SIGSEGV);
}

int cuptiPCSamplingDisable(struct pc_sampling_abi_context_params *params)
{
    pc_sampling_crash_if_damaged();
    int result = call_begin("cuptiPCSamplingDisable", params->size, sizeof *params, params->context);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    struct context *context = context_of(params->context, false);
    if (context == NULL || !context->is_enabled) {
        result = CUPTI_INVALID_OPERATION;
    } else {
        if (context->is_configured)
            (void)context_read(context, context->final, true);
        context->is_enabled = false;
        context->run_count = context->sampled_count = context->sampled_first = context->pc_first = 0;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int cuptiPCSamplingGetNumStallReasons(struct pc_sampling_abi_stall_count_params *params)
{
    const struct pc_recorded_stall *recorded;
    int result = call_begin("cuptiPCSamplingGetNumStallReasons", params->size, sizeof *params, params->context);
    if (result == CUPTI_ABI_SUCCESS)
        *params->count = pc_recording_is_wanted() ? pc_recording_stalls(&recorded) : (size_t)STALL_COUNT;
    return result;
}

int cuptiPCSamplingGetStallReasons(struct pc_sampling_abi_stall_params *params)
{
    int result = call_begin("cuptiPCSamplingGetStallReasons", params->size, sizeof *params, params->context);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    const struct pc_recorded_stall *recorded = NULL;
    size_t known = pc_recording_is_wanted() ? pc_recording_stalls(&recorded) : (size_t)STALL_COUNT;
    for (size_t i = 0; i < params->count && i < known; i++) {
        params->indexes[i] = recorded != NULL ? recorded[i].index : (uint32_t)i + FIRST_STALL_INDEX;
        strncpy(params->names[i], recorded != NULL ? recorded[i].name : stall_names[i],
                PC_SAMPLING_ABI_STALL_NAME_BYTES - 1);
    }
    return CUPTI_ABI_SUCCESS;
}
