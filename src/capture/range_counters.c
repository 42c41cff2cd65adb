/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, memory and results of the range engine; range_scopes.c and range_kernels.c handle what happens on a
 * context. */
#include "capture/range_engine.h"

#include "base/log.h"
#include "driver/captures.h"

#include <stdlib.h>
#include <time.h>

enum { symbol_bytes_max = 8 << 20 };

static _Atomic uint64_t generation_latest;

struct range_thread *range_thread_state(const struct range_counters *counters)
{
    static _Thread_local struct range_thread thread;
    if (thread.generation != counters->generation)
        thread = (struct range_thread){.generation = counters->generation};
    return &thread;
}

bool range_quiet_begin(struct range_counters *counters)
{
    bool is_inside = range_thread_state(counters)->is_launching;
    if (launch_gate_close(&counters->gate, is_inside, atomic_load(&counters->wait_ms)))
        return true;
    atomic_store(&counters->wait_ms, RANGE_WAIT_SHORT_MS);
    return false;
}

void range_quiet_end(struct range_counters *counters)
{
    launch_gate_open(&counters->gate, range_thread_state(counters)->is_launching);
}

gpufl_status range_counters_make(struct range_counters **out, const struct range_counters_options *options,
                                 struct problem *problem)
{
    if (!options->metrics->count)
        return problem_set(problem, GPUFL_E_INVALID, "no metrics were chosen for the range profiler");
    struct range_counters *counters = calloc(1, sizeof *counters);
    if (!counters)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    counters->cupti = options->cupti;
    counters->recorder = options->recorder;
    counters->history = options->history;
    counters->mode = options->mode;
    counters->kernels_max = options->kernels_max ? options->kernels_max : RANGE_KERNELS_DEFAULT;
    atomic_init(&counters->wait_ms, options->wait_ms ? options->wait_ms : RANGE_WAIT_DEFAULT_MS);
    metric_choice_copy(&counters->metrics, options->metrics);
    counters->generation = atomic_fetch_add(&generation_latest, 1) + 1;
    counters->results_end = &counters->results;
    counters->symbols.text_bytes_max = symbol_bytes_max;
    launch_gate_init(&counters->gate);
    pthread_mutex_init(&counters->contexts_lock, NULL);
    pthread_mutex_init(&counters->chips_lock, NULL);
    pthread_mutex_init(&counters->results_lock, NULL);
    if (!range_scopes_parse(counters, options->scopes)) {
        range_counters_free(counters);
        return problem_set(problem, GPUFL_E_LIMIT, "at most %d scopes can be named", RANGE_SCOPE_NAMES_MAX);
    }
    *out = counters;
    return GPUFL_OK;
}

void *range_memory_take(struct range_counters *counters, size_t bytes)
{
    size_t held = atomic_fetch_add(&counters->held_bytes, bytes);
    void *memory = held + bytes <= RANGE_BYTES_MAX ? malloc(bytes) : NULL;
    if (!memory)
        atomic_fetch_sub(&counters->held_bytes, bytes);
    return memory;
}

void range_memory_give(struct range_counters *counters, void *memory, size_t bytes)
{
    if (memory)
        atomic_fetch_sub(&counters->held_bytes, bytes);
    free(memory);
}

struct range_result *range_result_make(struct range_context *context)
{
    struct range_result *result = range_memory_take(context->counters, sizeof *result);
    if (!result)
        return NULL;
    *result = (struct range_result){.chip = context->chip, .gpu = context->gpu, .image_bytes = context->image_bytes};
    return result;
}

void range_result_send(struct range_counters *counters, struct range_result *result)
{
    pthread_mutex_lock(&counters->results_lock);
    *counters->results_end = result;
    counters->results_end = &result->next;
    pthread_mutex_unlock(&counters->results_lock);
}

void range_result_free(struct range_counters *counters, struct range_result *result)
{
    range_memory_give(counters, result->image, result->image_bytes);
    range_memory_give(counters, result->launches, range_launches_bytes(counters));
    if (result->scope.path)
        range_memory_give(counters, result->scope.path, strlen(result->scope.path) + 1);
    range_memory_give(counters, result, sizeof *result);
}

/* ---- chips ---- */

/* Opens a host and a plan for the chip; contexts on the same chip share them. */
static gpufl_status chip_open(struct range_counters *counters, const char *name, const struct gpu_context *gpu,
                              struct range_chip *chip, struct problem *problem)
{
    uint8_t *availability = NULL;
    size_t availability_bytes = 0;
    gpufl_status status =
        profiler_target_availability(counters->cupti, gpu->handle, &availability, &availability_bytes, problem);
    if (status != GPUFL_OK)
        return status;
    status = profiler_host_open(&chip->host, counters->cupti, name, PROFILER_RANGE, availability, availability_bytes,
                                problem);
    free(availability);
    if (status != GPUFL_OK)
        return status;
    struct problem left_out;
    metric_choice_copy(&chip->metrics, &counters->metrics);
    status = metric_choice_plan(&chip->metrics, chip->host, &chip->plan, &left_out, problem);
    if (status == GPUFL_OK && left_out.text[0])
        log_message(GPUFL_LOG_WARNING, "RangeProfiler: %s does not support these metrics, logged as null: %s", name,
                    left_out.text);
    if (status != GPUFL_OK) {
        profiler_host_close(chip->host);
        chip->host = NULL;
        return status;
    }
    memcpy(chip->name, name, sizeof chip->name);
    return GPUFL_OK;
}

static gpufl_status chip_find(struct range_counters *counters, const struct gpu_context *gpu, struct range_chip **out,
                              struct problem *problem)
{
    char name[PROFILER_CHIP_NAME_BYTES];
    gpufl_status status = profiler_target_chip(counters->cupti, gpu->device_id, name, problem);
    if (status != GPUFL_OK)
        return status;
    pthread_mutex_lock(&counters->chips_lock);
    struct range_chip *chip = counters->chips, *end = chip + counters->chip_count;
    while (chip < end && strcmp(chip->name, name) != 0)
        chip++;
    if (chip == end) {
        if (counters->chip_count == RANGE_CHIPS_MAX)
            status = problem_set(problem, GPUFL_E_LIMIT, "more than %d kinds of GPU", RANGE_CHIPS_MAX);
        else
            status = chip_open(counters, name, gpu, chip, problem);
        counters->chip_count += status == GPUFL_OK;
    }
    pthread_mutex_unlock(&counters->chips_lock);
    if (status == GPUFL_OK)
        *out = chip;
    return status;
}

/* ---- contexts ---- */

static void context_free(struct range_context *context)
{
    for (uint32_t i = 0; i < context->target_count; i++) {
        free(context->targets[i].scope.path);
        range_memory_give(context->counters, context->targets[i].image, context->image_bytes);
    }
    free(context->targets);
    range_memory_give(context->counters, context->image, context->image_bytes);
    range_memory_give(context->counters, context->launches, range_launches_bytes(context->counters));
    pthread_cond_destroy(&context->idle);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

static struct range_context *context_make(struct range_counters *counters, const struct gpu_context *gpu)
{
    struct range_context *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->counters = counters;
    context->gpu = *gpu;
    context->focus = context->open = -1;
    pthread_mutex_init(&context->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&context->idle, &attributes);
    pthread_condattr_destroy(&attributes);
    if (counters->mode == RANGE_PER_SCOPE &&
        !(context->targets = calloc(RANGE_TARGETS_MAX, sizeof *context->targets))) {
        context_free(context);
        return NULL;
    }
    return context;
}

/* Call with the profiler acquired. */
static gpufl_status context_open(struct range_context *context, struct problem *problem)
{
    struct range_counters *counters = context->counters;
    gpufl_status status = profiler_target_check(counters->cupti, context->gpu.device_id, PROFILER_API_RANGE, problem);
    if (status == GPUFL_OK)
        status = chip_find(counters, &context->gpu, &context->chip, problem);
    if (status == GPUFL_OK)
        status = range_profiler_open(&context->profiler, counters->cupti, context->gpu.handle, problem);
    if (status == GPUFL_OK && counters->mode == RANGE_PER_KERNEL)
        status = range_kernels_begin(context, problem);
    else if (status == GPUFL_OK)
        status = range_profiler_image_bytes(context->profiler, context->chip->metrics.list,
                                            context->chip->metrics.count, 1, &context->image_bytes, problem);
    if (status != GPUFL_OK) {
        range_profiler_close(context->profiler);
        context->profiler = NULL;
    }
    return status;
}

/* Checks for room for one more context; the caller has not added it yet. */
static gpufl_status context_check(struct range_counters *counters, const struct gpu_context *gpu,
                                  struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    pthread_mutex_lock(&counters->contexts_lock);
    if (counters->attached_count >= RANGE_CONTEXTS_MAX)
        status = problem_set(problem, GPUFL_E_LIMIT, "counters are collected on at most %d contexts at a time",
                             RANGE_CONTEXTS_MAX);
    for (struct range_context *context = counters->contexts; context; context = context->next)
        if (context->is_attached && context->gpu.handle == gpu->handle)
            status = problem_set(problem, GPUFL_E_INVALID, "context %u is attached already", gpu->id);
    pthread_mutex_unlock(&counters->contexts_lock);
    return status;
}

gpufl_status range_counters_attach(struct range_counters *counters, const struct gpu_context *gpu,
                                   struct problem *problem)
{
    gpufl_status status = context_check(counters, gpu, problem);
    if (status != GPUFL_OK)
        goto refuse;
    struct range_context *context = context_make(counters, gpu);
    if (!context) {
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
        goto refuse;
    }
    if ((status = profiler_target_acquire(counters->cupti, problem)) != GPUFL_OK)
        goto discard;
    if (!range_quiet_begin(counters)) {
        status = problem_set(problem, GPUFL_E_BUSY, "a launch did not end in time, and none may be in progress");
        goto release;
    }
    status = captures_any()
                 ? problem_set(problem, GPUFL_E_BUSY, "a CUDA graph is being captured, which this would invalidate")
                 : context_open(context, problem);
    range_quiet_end(counters);
    if (status != GPUFL_OK)
        goto release;
    pthread_mutex_lock(&counters->contexts_lock);
    context->is_attached = true;
    context->next = counters->contexts;
    counters->contexts = context;
    counters->attached_count++;
    pthread_mutex_unlock(&counters->contexts_lock);
    return GPUFL_OK;
release:
    profiler_target_release(counters->cupti);
discard:
    context_free(context);
refuse:
    atomic_store(&counters->has_refused, true);
    return status;
}

struct range_context *range_context_take(struct range_counters *counters, void *handle)
{
    struct range_context *found = NULL;
    pthread_mutex_lock(&counters->contexts_lock);
    if (handle || counters->attached_count == 1)
        for (struct range_context *context = counters->contexts; context && !found; context = context->next)
            if (context->is_attached && (!handle || context->gpu.handle == handle))
                found = context;
    if (found)
        found->users++;
    pthread_mutex_unlock(&counters->contexts_lock);
    return found;
}

void range_context_give(struct range_context *context)
{
    struct range_counters *counters = context->counters;
    pthread_mutex_lock(&counters->contexts_lock);
    bool is_unused = --context->users == 0 && !context->is_attached;
    for (struct range_context **at = &counters->contexts; is_unused && *at; at = &(*at)->next)
        if (*at == context) {
            *at = context->next;
            break;
        }
    pthread_mutex_unlock(&counters->contexts_lock);
    if (is_unused)
        context_free(context);
}

void range_failure_note(struct range_counters *counters, uint32_t context_id, const struct problem *problem)
{
    pthread_mutex_lock(&counters->contexts_lock);
    bool is_first = !counters->has_failure;
    if (is_first)
        counters->failure = *problem;
    counters->has_failure = true;
    pthread_mutex_unlock(&counters->contexts_lock);
    if (is_first)
        log_message(GPUFL_LOG_WARNING, "RangeProfiler: counters of context %u are missing: %s", context_id,
                    problem->text);
}

void range_context_fail(struct range_context *context, const struct problem *problem)
{
    struct range_counters *counters = context->counters;
    context->has_failed = true;
    context->problem = *problem;
    context->open = context->focus = -1;
    if (context->launch_count)
        recorder_lose_because(counters->recorder, LOSS_RANGES_DROPPED, context->launch_count, problem->text);
    context->launch_count = 0;
    if (!context->is_stuck)
        range_profiler_close(context->profiler);
    context->profiler = NULL;
    range_failure_note(counters, context->gpu.id, problem);
}

/* The caller holds a reference, and nobody else can find the context. */
static void context_end(struct range_context *context)
{
    struct range_counters *counters = context->counters;
    pthread_mutex_lock(&context->lock);
    /* Reading or closing would invalidate a graph that is being captured. */
    bool is_quiet = !context->is_stuck && !captures_any() && range_quiet_begin(counters);
    context->is_stuck |= !is_quiet;
    if (counters->mode == RANGE_PER_KERNEL)
        range_kernels_end(context);
    else
        range_scopes_end(context);
    if (is_quiet) {
        range_profiler_close(context->profiler);
        range_quiet_end(counters);
    }
    context->profiler = NULL;
    context->has_failed = true; /* for a thread that is still in one of its scopes or launches */
    bool is_stuck = context->is_stuck;
    pthread_mutex_unlock(&context->lock);
    if (!is_stuck)
        profiler_target_release(counters->cupti);
}

void range_counters_detach(struct range_counters *counters, void *handle)
{
    struct range_context *context = handle ? range_context_take(counters, handle) : NULL;
    if (!context)
        return;
    pthread_mutex_lock(&counters->contexts_lock);
    bool is_ours = context->is_attached;
    context->is_attached = false;
    counters->attached_count -= is_ours;
    pthread_mutex_unlock(&counters->contexts_lock);
    if (is_ours)
        context_end(context);
    range_context_give(context);
}

/* Before a graph is captured: stops counting on all contexts. A caller that holds the lock of a counting context
 * knows that no capture has begun yet. */
static void contexts_pause(struct range_counters *counters)
{
    void *handles[RANGE_CONTEXTS_MAX];
    uint32_t count = 0;
    pthread_mutex_lock(&counters->contexts_lock);
    for (struct range_context *context = counters->contexts; context && count < RANGE_CONTEXTS_MAX;
         context = context->next)
        if (context->is_attached)
            handles[count++] = context->gpu.handle;
    pthread_mutex_unlock(&counters->contexts_lock);
    for (uint32_t i = 0; i < count; i++) {
        struct range_context *context = range_context_take(counters, handles[i]);
        if (!context)
            continue;
        pthread_mutex_lock(&context->lock);
        if (counters->mode == RANGE_PER_KERNEL)
            range_kernels_pause(context);
        else
            range_scopes_drop_open(context);
        pthread_mutex_unlock(&context->lock);
        range_context_give(context);
    }
}

void range_counters_capture(struct range_counters *counters, int change, bool is_enter)
{
    struct range_thread *thread = range_thread_state(counters);
    if (is_enter && !thread->is_at_capture_call) {
        if (change > 0)
            contexts_pause(counters);
        launch_gate_enter(&counters->gate); /* none begins while another thread reads counters */
    } else if (!is_enter && thread->is_at_capture_call) {
        launch_gate_leave(&counters->gate);
    }
    thread->is_at_capture_call = is_enter;
}

void range_counters_stop(struct range_counters *counters)
{
    for (;;) {
        void *handle = NULL;
        pthread_mutex_lock(&counters->contexts_lock);
        for (struct range_context *context = counters->contexts; context && !handle; context = context->next)
            if (context->is_attached)
                handle = context->gpu.handle;
        pthread_mutex_unlock(&counters->contexts_lock);
        if (!handle)
            return;
        range_counters_detach(counters, handle);
    }
}

void range_counters_unblock_launches(struct range_counters *counters)
{
    launch_gate_force_open(&counters->gate);
}

void range_counters_free(struct range_counters *counters)
{
    if (!counters)
        return;
    for (struct range_result *next; counters->results; counters->results = next) {
        next = counters->results->next;
        range_result_free(counters, counters->results);
    }
    for (struct range_context *next; counters->contexts; counters->contexts = next) {
        next = counters->contexts->next; /* of threads that are still in a scope or a launch */
        context_free(counters->contexts);
    }
    for (uint32_t i = 0; i < counters->chip_count; i++) {
        profiler_host_close(counters->chips[i].host);
        metric_plan_free(&counters->chips[i].plan);
    }
    launch_gate_destroy(&counters->gate);
    pthread_mutex_destroy(&counters->contexts_lock);
    pthread_mutex_destroy(&counters->chips_lock);
    pthread_mutex_destroy(&counters->results_lock);
    intern_free(&counters->symbols);
    bytes_free(&counters->text);
    free(counters->scope_text);
    free(counters);
}

void range_counters_abandon(struct range_counters *counters)
{
    (void)counters; /* CUPTI's objects and the locks belong to the parent; only leaking is safe */
}

size_t range_counters_bytes(struct range_counters *counters)
{
    pthread_mutex_lock(&counters->results_lock);
    size_t symbol_bytes =
        counters->symbols.text_bytes + (size_t)counters->symbols.capacity * sizeof(struct intern_entry);
    pthread_mutex_unlock(&counters->results_lock);
    return sizeof *counters + atomic_load(&counters->held_bytes) + symbol_bytes;
}

struct range_totals range_counters_totals(const struct range_counters *counters)
{
    return (struct range_totals){.passes = atomic_load(&counters->passes),
                                 .scope_events = atomic_load(&counters->scope_events),
                                 .kernel_events = atomic_load(&counters->kernel_events),
                                 .short_scopes = atomic_load(&counters->short_scopes)};
}

bool range_counters_failure(struct range_counters *counters, struct problem *problem)
{
    pthread_mutex_lock(&counters->contexts_lock);
    bool has_failure = counters->has_failure;
    if (has_failure)
        *problem = counters->failure;
    pthread_mutex_unlock(&counters->contexts_lock);
    return has_failure;
}
