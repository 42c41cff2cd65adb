/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/pc_sampling.h"

#include "driver/cupti_table.h"
#include "driver/pc_names.h"
#include "driver/pc_sampling_abi.h"
#include "driver/profiler_target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    PCS_DEFAULT = 2048,
    FINAL_FULL_MAX = 8,        /* buffers of the full size, 12 MiB each; later ones are small */
    FINAL_PCS_DEFAULT = 32768, /* 26,600 occurred in half a second of PyTorch, at one sample in 2^17 cycles */
    STALLS_MAX = 256,
    ROUNDS_MAX = 64, /* of one drain: a context that fills faster than it is read must not block the thread */
    BATCH_SAMPLES = 256,
    ATTRIBUTES_MAX = 7
};

struct table {
#define PC_MEMBER(member, symbol, parameters) int(*member) parameters;
    PC_SAMPLING_ABI_FUNCTIONS(PC_MEMBER)
#undef PC_MEMBER
};

/* Filled in by CUPTI: a header, its PCs, their stall reasons. */
struct buffer {
    struct pc_sampling_abi_data data;
    uint32_t pcs_max;
    uint8_t *pcs;
    struct pc_sampling_abi_stall *stalls;
};

struct pc_sampling {
    struct cupti *cupti;
    void *context;
    struct table call;
    struct pc_sampling_options options;
    struct stall_reasons stalls;
    uint32_t *stall_indexes;
    bool is_repeat[STALLS_MAX]; /* by index: its samples are also counted under another reason */
    size_t pc_bytes;            /* of one element: its size grew with 12.4 */
    struct buffer read, final;  /* of GetData; of Disable: what does not fit is lost */
    struct pc_name *read_names; /* scratch: one per PC */
    struct pc_names names;
    bool is_enabled, is_rare; /* is_rare: with the longest period */
    bool is_final_known;      /* CUPTI knows the buffer */
    struct pc_sampling *next_parked;
};

static pthread_mutex_t parked_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pc_sampling *parked;
static atomic_uint opened;          /* and not freed yet */
static struct pc_sampling *left_on; /* never used again, but CUPTI may write to their last buffer */

static gpufl_status failed(struct pc_sampling *sampling, const char *function, int result, struct problem *problem)
{
    (void)cupti_note(sampling->cupti, function, result);
    return profiler_problem(sampling->cupti, function, result, problem);
}

static gpufl_status bind_functions(struct pc_sampling *sampling, struct problem *problem)
{
#define PC_BIND(member, symbol, parameters)                                                                      \
    sampling->call.member = __extension__(int(*) parameters) library_symbol(&sampling->cupti->library, #symbol); \
    if (!sampling->call.member) {                                                                                \
        (void)profiler_lacks(sampling->cupti, #symbol, problem);                                                 \
        return GPUFL_E_UNSUPPORTED;                                                                              \
    }
    PC_SAMPLING_ABI_FUNCTIONS(PC_BIND)
#undef PC_BIND
    return GPUFL_OK;
}

/* Returns the call's result; on success the device's stall reasons are set. */
static int read_stall_reasons(struct pc_sampling *sampling, const char **function)
{
    size_t count = 0;
    struct pc_sampling_abi_stall_count_params count_params = {sizeof count_params, NULL, sampling->context, &count};
    *function = "cuptiPCSamplingGetNumStallReasons";
    int result = sampling->call.get_stall_count(&count_params);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (!count || count > STALLS_MAX)
        return CUPTI_ABI_UNKNOWN;
    uint32_t indexes[STALLS_MAX] = {0};
    char *names[STALLS_MAX];
    struct stall_reason *reasons = calloc(count, sizeof *reasons);
    if (!reasons)
        return PC_SAMPLING_ABI_OUT_OF_MEMORY;
    _Static_assert(sizeof reasons->name == PC_SAMPLING_ABI_STALL_NAME_BYTES, "stall name");
    for (size_t i = 0; i < count; i++)
        names[i] = reasons[i].name;
    struct pc_sampling_abi_stall_params params = {sizeof params, NULL, sampling->context, count, indexes, names};
    *function = "cuptiPCSamplingGetStallReasons";
    result = sampling->call.get_stalls(&params);
    if (result != CUPTI_ABI_SUCCESS) {
        free(reasons);
        return result;
    }
    for (size_t i = 0; i < count; i++) {
        reasons[i].index = indexes[i];
        reasons[i].name[sizeof reasons[i].name - 1] = '\0';
    }
    sampling->stalls = (struct stall_reasons){(uint32_t)count, reasons};
    return CUPTI_ABI_SUCCESS;
}

static bool buffer_alloc(struct buffer *buffer, const struct pc_sampling *sampling, uint32_t pcs_max)
{
    buffer->pcs_max = pcs_max;
    buffer->pcs = calloc(pcs_max, sampling->pc_bytes);
    buffer->stalls = calloc((size_t)pcs_max * sampling->stalls.count, sizeof *buffer->stalls);
    return buffer->pcs && buffer->stalls;
}

/* CUPTI overwrites sizes and counts, so everything is set before each use. */
static void buffer_reset(struct buffer *buffer, const struct pc_sampling *sampling)
{
    buffer->data =
        (struct pc_sampling_abi_data){.size = sizeof buffer->data, .collect_pcs = buffer->pcs_max, .pcs = buffer->pcs};
    for (uint32_t i = 0; i < buffer->pcs_max; i++) {
        struct pc_sampling_abi_pc pc = {.size = sampling->pc_bytes,
                                        .stall_count = sampling->stalls.count,
                                        .stalls = buffer->stalls + (size_t)i * sampling->stalls.count};
        memcpy(buffer->pcs + i * sampling->pc_bytes, &pc, sampling->pc_bytes);
    }
}

static bool is_repeat(const struct stall_reason *reason)
{
    static const char ending[] = "_not_issued"; /* suffix of a second count of the same reason */
    size_t length = strlen(reason->name);
    return length >= sizeof ending - 1 && !strcmp(reason->name + length - (sizeof ending - 1), ending);
}

static bool alloc_buffers(struct pc_sampling *sampling)
{
    uint32_t read_max = sampling->options.pcs_max, final_max = sampling->options.final_pcs_max;
    sampling->stall_indexes = calloc(sampling->stalls.count, sizeof *sampling->stall_indexes);
    sampling->read_names = calloc(read_max > final_max ? read_max : final_max, sizeof *sampling->read_names);
    if (!sampling->stall_indexes || !sampling->read_names || !buffer_alloc(&sampling->read, sampling, read_max) ||
        !buffer_alloc(&sampling->final, sampling, final_max))
        return false;
    for (uint32_t i = 0; i < sampling->stalls.count; i++) {
        const struct stall_reason *reason = &sampling->stalls.reasons[i];
        sampling->stall_indexes[i] = reason->index;
        if (reason->index < STALLS_MAX)
            sampling->is_repeat[reason->index] = is_repeat(reason);
    }
    return true;
}

static int call_context(const struct pc_sampling *sampling, int (*call)(struct pc_sampling_abi_context_params *))
{
    struct pc_sampling_abi_context_params params = {sizeof params, NULL, sampling->context};
    return call(&params);
}

static int call_disable(struct pc_sampling *sampling)
{
    int result = call_context(sampling, sampling->call.disable);
    if (result == CUPTI_ABI_SUCCESS)
        sampling->is_enabled = false;
    return result;
}

static int configure(struct pc_sampling *sampling)
{
    const struct pc_sampling_options *options = &sampling->options;
    struct pc_sampling_abi_attribute attributes[ATTRIBUTES_MAX] = {
        {.type = PC_SAMPLING_ABI_MODE,
         .value.number = options->is_serialized ? PC_SAMPLING_ABI_SERIALIZED : PC_SAMPLING_ABI_CONTINUOUS},
        {.type = PC_SAMPLING_ABI_PERIOD,
         .value.number = sampling->is_rare ? PC_SAMPLING_ABI_PERIOD_MAX : options->period_exponent},
        {.type = PC_SAMPLING_ABI_HARDWARE_BYTES, .value.bytes = options->hardware_buffer_bytes},
        {.type = PC_SAMPLING_ABI_SCRATCH_BYTES, .value.bytes = options->scratch_bytes},
        {.type = PC_SAMPLING_ABI_STALL_REASONS, .value.stalls = {sampling->stalls.count, sampling->stall_indexes}},
        {.type = PC_SAMPLING_ABI_DATA_BUFFER, .value.pointer = &sampling->final.data},
        {.type = PC_SAMPLING_ABI_WORKER_SLEEP_MS, .value.number = options->worker_sleep_ms},
    };
    struct pc_sampling_abi_configuration_params params = {
        sizeof params, NULL, sampling->context, options->worker_sleep_ms ? ATTRIBUTES_MAX : ATTRIBUTES_MAX - 1,
        attributes};
    sampling->is_final_known = true;
    int result = sampling->call.configure(&params);
    if (result != CUPTI_ABI_SUCCESS && attributes[ATTRIBUTES_MAX - 1].status) {
        params.attribute_count = ATTRIBUTES_MAX - 1; /* an older CUPTI does not know the last one */
        result = sampling->call.configure(&params);
    }
    return result;
}

static int call_enable(struct pc_sampling *sampling)
{
    int result = sampling->is_enabled ? CUPTI_ABI_SUCCESS : call_context(sampling, sampling->call.enable);
    sampling->is_enabled = result == CUPTI_ABI_SUCCESS;
    return result;
}

static gpufl_status start(struct pc_sampling *sampling, bool is_rare, struct problem *problem)
{
    sampling->is_rare = is_rare;
    buffer_reset(&sampling->final, sampling);
    int result = call_enable(sampling);
    if (result != CUPTI_ABI_SUCCESS)
        return failed(sampling, "cuptiPCSamplingEnable", result, problem);
    result = configure(sampling);
    return result == CUPTI_ABI_SUCCESS ? GPUFL_OK
                                       : failed(sampling, "cuptiPCSamplingSetConfigurationAttribute", result, problem);
}

gpufl_status pc_sampling_start(struct pc_sampling *sampling, bool is_rare, struct problem *problem)
{
    gpufl_status status = start(sampling, is_rare, problem);
    if (status != GPUFL_OK && sampling->is_enabled)
        (void)call_disable(sampling); /* without a configuration it can neither be read nor left on */
    return status;
}

/* Removes the context's sampling from the parked ones; NULL: it is not parked. */
static struct pc_sampling *parked_take(const void *context)
{
    pthread_mutex_lock(&parked_lock);
    struct pc_sampling **place = &parked;
    while (*place && (*place)->context != context)
        place = &(*place)->next_parked;
    struct pc_sampling *found = *place;
    if (found)
        *place = found->next_parked;
    pthread_mutex_unlock(&parked_lock);
    return found;
}

bool pc_sampling_any_parked(void)
{
    pthread_mutex_lock(&parked_lock);
    bool is_any = parked != NULL;
    pthread_mutex_unlock(&parked_lock);
    return is_any;
}

static void throw_away(void *user, const struct pc_sample *samples, size_t count)
{
    (void)user, (void)samples, (void)count;
}

/* The context's parked sampling, emptied; NULL: there is none, or it belonged to a destroyed context with the same
 * address. */
static struct pc_sampling *unpark(void *context)
{
    struct pc_drain drain;
    struct pc_sampling *sampling = parked_take(context);
    if (sampling && pc_sampling_drain(sampling, throw_away, NULL, &drain, NULL) != GPUFL_OK) {
        pc_sampling_forget(sampling);
        sampling = NULL;
    }
    return sampling;
}

gpufl_status pc_sampling_open(struct pc_sampling **out, struct cupti *cupti, void *context,
                              const struct pc_sampling_options *options, struct problem *problem)
{
    struct pc_sampling *sampling = unpark(context);
    const char *refusal = NULL;
    if (sampling && sampling->options.is_serialized != options->is_serialized)
        refusal = "an earlier session of this process uses the other sampling mode, which cannot be changed";
    else if (sampling && sampling->is_rare && !options->is_rare)
        refusal = "an earlier session of this process left sampling on for SASS counters, too rarely for samples";
    if (refusal) {
        pc_sampling_park(sampling);
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s", refusal);
    }
    if (sampling) {
        *out = sampling;
        return GPUFL_OK;
    }
    sampling = calloc(1, sizeof *sampling);
    if (!sampling)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "not enough memory for PC sampling");
    sampling->cupti = cupti;
    sampling->context = context;
    sampling->options = *options;
    sampling->pc_bytes =
        cupti->version < CUPTI_ABI_VERSION_12_4 ? PC_SAMPLING_ABI_PC_BYTES_12_0 : PC_SAMPLING_ABI_PC_BYTES_12_4;
    if (!options->pcs_max)
        sampling->options.pcs_max = PCS_DEFAULT;
    bool is_one_of_few = atomic_fetch_add(&opened, 1) < FINAL_FULL_MAX;
    if (!options->final_pcs_max)
        sampling->options.final_pcs_max = is_one_of_few ? FINAL_PCS_DEFAULT : sampling->options.pcs_max;
    const char *function = "";
    gpufl_status status = bind_functions(sampling, problem);
    if (status != GPUFL_OK)
        goto refused;
    /* Everything is allocated before enabling: CUPTI refuses a late configuration. Only if CUPTI does not report the
     * stall reasons before, they are read in between. */
    int result = read_stall_reasons(sampling, &function);
    if (result != CUPTI_ABI_SUCCESS && call_enable(sampling) == CUPTI_ABI_SUCCESS)
        result = read_stall_reasons(sampling, &function);
    if (result != CUPTI_ABI_SUCCESS) {
        status = failed(sampling, function, result, problem);
        goto refused;
    }
    status = alloc_buffers(sampling)
                 ? start(sampling, options->is_rare, problem)
                 : problem_set(problem, GPUFL_E_NO_MEMORY, "not enough memory for the buffers of PC sampling");
    if (status == GPUFL_OK) {
        *out = sampling;
        return GPUFL_OK;
    }
refused:
    pc_sampling_forget(sampling);
    return status;
}

bool pc_sampling_is_on(const struct pc_sampling *sampling)
{
    return sampling->is_enabled;
}

const struct pc_sampling_options *pc_sampling_effective(const struct pc_sampling *sampling)
{
    return &sampling->options;
}

const struct stall_reasons *pc_sampling_stall_reasons(const struct pc_sampling *sampling)
{
    return &sampling->stalls;
}

static struct pc_sampling_abi_pc pc_at(const struct pc_sampling *sampling, const struct buffer *buffer, size_t at)
{
    struct pc_sampling_abi_pc pc = {0};
    memcpy(&pc, buffer->pcs + at * sampling->pc_bytes, sampling->pc_bytes);
    return pc;
}

static size_t pc_count(const struct buffer *buffer)
{
    size_t count = buffer->data.total_pcs;
    return count < buffer->pcs_max ? count : buffer->pcs_max;
}

static void names_release(struct pc_sampling *sampling, const struct buffer *buffer)
{
    size_t count = pc_count(buffer), kept = 0;
    struct pc_name *names = sampling->read_names;
    for (size_t i = 0; i < count; i++) {
        const struct pc_sampling_abi_pc pc = pc_at(sampling, buffer, i);
        if (pc.function_name && (!kept || names[kept - 1].text != pc.function_name))
            names[kept++] = (struct pc_name){pc.cubin_crc, pc.function_index, pc.function_name};
    }
    pc_names_release(&sampling->names, names, kept);
}

/* Takes all samples from a buffer that CUPTI filled in; returns how many there were. */
static uint64_t buffer_take(struct pc_sampling *sampling, struct buffer *buffer, pc_samples_fn *take, void *user,
                            struct pc_drain *drain)
{
    struct pc_sample samples[BATCH_SAMPLES];
    size_t waiting = 0, count = pc_count(buffer);
    uint64_t taken = 0;
    for (size_t i = 0; i < count; i++) {
        const struct pc_sampling_abi_pc pc = pc_at(sampling, buffer, i);
        const struct pc_sampling_abi_stall *stalls = buffer->stalls + i * sampling->stalls.count;
        size_t stall_count = pc.stall_count < sampling->stalls.count ? pc.stall_count : sampling->stalls.count;
        for (size_t j = 0; j < stall_count; j++) {
            if (!stalls[j].samples)
                continue;
            if (stalls[j].index >= STALLS_MAX || !sampling->is_repeat[stalls[j].index])
                taken += stalls[j].samples;
            samples[waiting++] = (struct pc_sample){pc.cubin_crc,     pc.function_name ? pc.function_name : "",
                                                    pc.pc_offset,     pc.function_index,
                                                    stalls[j].index,  stalls[j].samples,
                                                    pc.correlation_id};
            if (waiting == BATCH_SAMPLES) {
                take(user, samples, waiting);
                waiting = 0;
            }
        }
    }
    if (waiting)
        take(user, samples, waiting);
    drain->total += buffer->data.total_samples;
    drain->dropped += buffer->data.dropped_samples;
    drain->non_user += buffer->data.non_user_samples;
    drain->pcs += count;
    drain->was_buffer_full |= buffer->data.is_hardware_buffer_full != 0;
    names_release(sampling, buffer);
    buffer->data.total_pcs = 0;
    return taken;
}

gpufl_status pc_sampling_drain(struct pc_sampling *sampling, pc_samples_fn *take, void *user, struct pc_drain *drain,
                               struct problem *problem)
{
    *drain = (struct pc_drain){0};
    if (!sampling->is_enabled)
        return GPUFL_OK;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        buffer_reset(&sampling->read, sampling);
        struct pc_sampling_abi_data_params params = {sizeof params, NULL, sampling->context, &sampling->read.data};
        int result = sampling->call.get_data(&params);
        bool is_full = result == PC_SAMPLING_ABI_OUT_OF_MEMORY;
        if (result != CUPTI_ABI_SUCCESS && !is_full)
            return failed(sampling, "cuptiPCSamplingGetData", result, problem);
        drain->was_buffer_full |= is_full;
        size_t remaining = sampling->read.data.remaining_pcs, count = sampling->read.data.total_pcs;
        (void)buffer_take(sampling, &sampling->read, take, user, drain);
        if (!remaining || !count)
            return GPUFL_OK;
    }
    drain->has_more = true;
    return GPUFL_OK;
}

/* Disables and takes the last samples. */
static gpufl_status disable(struct pc_sampling *sampling, pc_samples_fn *take, void *user, struct pc_drain *drain,
                            struct problem *problem)
{
    int result = call_disable(sampling);
    if (result != CUPTI_ABI_SUCCESS)
        return failed(sampling, "cuptiPCSamplingDisable", result, problem);
    const struct pc_sampling_abi_data last = sampling->final.data;
    uint64_t taken = buffer_take(sampling, &sampling->final, take, user, drain);
    uint64_t known = taken + last.dropped_samples + last.non_user_samples;
    if (last.remaining_pcs) /* each PC has at least one sample */
        drain->unread +=
            last.total_samples > known + last.remaining_pcs ? last.total_samples - known : last.remaining_pcs;
    return GPUFL_OK;
}

gpufl_status pc_sampling_stop(struct pc_sampling *sampling, pc_samples_fn *take, void *user, struct pc_drain *drain,
                              struct problem *problem)
{
    gpufl_status status = pc_sampling_drain(sampling, take, user, drain, problem);
    if (status != GPUFL_OK || !sampling->is_enabled) /* after a failed read disabling crashes */
        return status;
    return disable(sampling, take, user, drain, problem);
}

gpufl_status pc_sampling_close(struct pc_sampling *sampling, pc_samples_fn *take, void *user, struct pc_drain *drain,
                               struct problem *problem)
{
    gpufl_status status = pc_sampling_stop(sampling, take, user, drain, problem);
    pc_sampling_forget(sampling);
    return status;
}

static void list_add(struct pc_sampling **list, struct pc_sampling *sampling)
{
    pthread_mutex_lock(&parked_lock);
    sampling->next_parked = *list;
    *list = sampling;
    pthread_mutex_unlock(&parked_lock);
}

void pc_sampling_abandon(void)
{
    pthread_mutex_init(&parked_lock, NULL); /* a thread of the parent may have held it */
    parked = NULL;
}

void pc_sampling_park(struct pc_sampling *sampling)
{
    list_add(&parked, sampling);
}

void pc_sampling_forget(struct pc_sampling *sampling)
{
    if (!sampling)
        return;
    /* Names whose ownership was never determined are leaked: kernel records may still refer to them. */
    free(sampling->stalls.reasons);
    free(sampling->read_names);
    free(sampling->read.pcs);
    free(sampling->read.stalls);
    if (sampling->is_enabled && sampling->is_final_known) {
        list_add(&left_on, sampling);
        return;
    }
    free(sampling->stall_indexes);
    free(sampling->final.pcs);
    free(sampling->final.stalls);
    free(sampling);
    atomic_fetch_sub(&opened, 1);
}

size_t pc_sampling_bytes(const struct pc_sampling *sampling)
{
    size_t per_pc = sampling->pc_bytes + sampling->stalls.count * sizeof(struct pc_sampling_abi_stall);
    size_t read_max = sampling->read.pcs_max, final_max = sampling->final.pcs_max;
    return sizeof *sampling + sampling->stalls.count * sizeof(struct stall_reason) + (read_max + final_max) * per_pc +
           (read_max > final_max ? read_max : final_max) * sizeof(struct pc_name);
}
