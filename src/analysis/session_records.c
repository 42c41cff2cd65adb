/* SPDX-License-Identifier: Apache-2.0 */
/* Single records: the program, its machine, and what was granted, lost and spent. */
#include "analysis/engine_word.h"
#include "analysis/session_loader.h"

#include "analysis/statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { loss_kinds_max = 256, capabilities_max = 256, clock_syncs_max = 65536 };

const char *loader_member_text(struct session_loader *loader, const struct json_value *object, const char *key)
{
    const struct json_value *value = json_member(object, key);
    return value && value->kind == JSON_STRING ? loader_text(loader, value->text, value->text_size) : "";
}

void loader_keep_text(struct session_loader *loader, const struct json_value *object, const char *key,
                      const char **field)
{
    const char *text = loader_member_text(loader, object, key);
    if (*text)
        *field = text;
}

uint32_t object_u32(const struct json_value *object, const char *key)
{
    int64_t value = json_get_int(object, key, -1);
    return value >= 0 && value < ID_UNKNOWN ? (uint32_t)value : ID_UNKNOWN;
}

bool object_time(const struct json_value *object, const char *key, int64_t *time_ns)
{
    int64_t value = json_get_int(object, key, -1);
    if (value <= 0 || value > INT64_MAX / 2)
        return false;
    *time_ns = value;
    return true;
}

static const char *engine_text(struct session_loader *loader, const char *text)
{
    const char *word = engine_word(text);
    return word ? word : loader_text(loader, text, strlen(text));
}

/* Known at the start, or only after CUDA and CUPTI were loaded; as text or as the libraries' version numbers. */
static void gpu_versions(struct session_loader *loader, const struct json_value *object)
{
    struct job_info *job = &loader->model->job;
    char text[48];
    loader_keep_text(loader, object, "cupti_version", &job->cupti_version);
    loader_keep_text(loader, object, "cuda_driver_version", &job->cuda_version);
    int64_t cupti = json_get_int(object, "cupti_version", 0), cuda = json_get_int(object, "cuda_driver_version", 0);
    job->has_rocprofiler |= json_get_int(object, "rocprofiler_version", 0) > 0;
    if (cupti > 0)
        job->cupti_version = loader_text(loader, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)cupti));
    if (cuda > 0) {
        int size = snprintf(text, sizeof text, "%lld.%lld", (long long)(cuda / 1000), (long long)(cuda % 1000 / 10));
        job->cuda_version = loader_text(loader, text, (size_t)size);
    }
}

static void job_start(struct session_loader *loader, const struct json_value *object)
{
    struct job_info *job = &loader->model->job;
    loader_keep_text(loader, object, "app", &job->app);
    loader_keep_text(loader, object, "session_id", &job->session_id);
    loader_keep_text(loader, object, "hostname", &job->hostname);
    loader_keep_text(loader, object, "command", &job->command);
    loader_keep_text(loader, object, "session_kind", &job->kind);
    loader_keep_text(loader, object, "driver_version", &job->driver_version);
    loader_keep_text(loader, object, "gpufl_version", &job->gpufl_version);
    gpu_versions(loader, object);
    const char *engine = json_get_text(object, "profiling_engine", "");
    if (*engine && !*job->engine)
        job->engine = engine_text(loader, engine);
    job->pid = json_get_int(object, "pid", job->pid);
    if (object_time(object, "ts_ns", &job->start_ns))
        loader_saw(loader, job->start_ns, job->start_ns);
    loader_listed_devices(loader, json_member(object, "devices"));
    loader_listed_devices(loader, json_member(object, "gpu_static_devices"));
    loader_listed_devices(loader, json_member(object, "cuda_static_devices"));
}

static struct session_loss *loss_find(struct session_loader *loader, const char *reason, const char *record_type)
{
    struct session_model *model = loader->model;
    for (size_t i = 0; model->losses && i < model->loss_count; i++)
        if (!strcmp(model->losses[i].reason, reason) && !strcmp(model->losses[i].record_type, record_type))
            return &model->losses[i];
    return NULL;
}

static struct session_loss *loss_add(struct session_loader *loader, const char *reason, const char *record_type)
{
    struct session_model *model = loader->model;
    if (model->loss_count >= loss_kinds_max) {
        /* Keep the count: the last entry collects the kinds that exceed the limit. */
        return &model->losses[model->loss_count - 1];
    }
    if (!loader_grow(loader, &model->losses, &loader->loss_capacity, model->loss_count, sizeof *model->losses))
        return NULL;
    struct session_loss *loss = &model->losses[model->loss_count++];
    *loss = (struct session_loss){.reason = reason, .record_type = record_type, .message = "", .cause = ""};
    return loss;
}

static void loss_record(struct session_loader *loader, const struct json_value *object)
{
    const char *reason = loader_member_text(loader, object, "reason");
    const char *record_type = loader_member_text(loader, object, "record_type");
    /* Gaps are not merged: each has its own time and profiler. */
    bool is_gap = *loader_member_text(loader, object, "profiler") != '\0';
    struct session_loss *loss = is_gap ? NULL : loss_find(loader, reason, record_type);
    if (!loss)
        loss = loss_add(loader, reason, record_type);
    if (!loss)
        return;
    loss->is_gap = is_gap;
    loader_keep_text(loader, object, "message", &loss->message);
    if (!*loss->cause)
        loader_keep_text(loader, object, "cause", &loss->cause);
    int64_t count = json_get_int(object, "count", -1);
    if (count >= 0)
        loss->count = sum_saturated_u64(loss->count, (uint64_t)count);
    else
        loss->has_unknown_count = true;
}

/* The shutdown record repeats the losses as totals, without record types; they replace loss records that were
 * themselves lost. */
static void shutdown_losses(struct session_loader *loader, const struct json_value *object)
{
    struct session_model *model = loader->model;
    const struct json_value *lost = json_member(object, "lost");
    for (const struct json_value *entry = lost && lost->kind == JSON_OBJECT ? lost->child : NULL; entry;
         entry = entry->next) {
        if (entry->kind != JSON_INT || entry->integer <= 0)
            continue;
        uint64_t known = 0;
        for (size_t i = 0; i < model->loss_count; i++)
            if (!strcmp(model->losses[i].reason, entry->key))
                known = sum_saturated_u64(known, model->losses[i].count);
        if (known >= (uint64_t)entry->integer)
            continue;
        struct session_loss *loss = loss_find(loader, entry->key, "");
        if (!loss)
            loss = loss_add(loader, loader_text(loader, entry->key, entry->key_size), "");
        if (loss)
            loss->count += (uint64_t)entry->integer - known;
    }
}

static void shutdown(struct session_loader *loader, const struct json_value *object)
{
    struct job_info *job = &loader->model->job;
    int64_t time_ns;
    if (object_time(object, "ts_ns", &time_ns) && (job->shutdown_ns == TIME_UNKNOWN || time_ns > job->shutdown_ns)) {
        job->shutdown_ns = time_ns;
        loader_saw(loader, time_ns, time_ns);
    }
    if (json_get_bool(object, "synthetic", false)) {
        job->exit_code = json_get_int(object, "exit_code", CELL_UNKNOWN);
        if (json_get_bool(object, "signaled", false))
            job->signal = json_get_int(object, "signal", CELL_UNKNOWN);
        job->has_crashed = json_get_bool(object, "crashed", false);
    }
    shutdown_losses(loader, object);
    row_counts_take(&loader->row_counts, object);
}

static void capabilities(struct session_loader *loader, const struct json_value *object)
{
    struct session_model *model = loader->model;
    const char *requested = json_get_text(object, "requested_engine", "");
    const char *selected = json_get_text(object, "selected_engine", "");
    if (*requested)
        model->job.requested_engine = engine_text(loader, requested);
    if (*selected)
        model->job.engine = engine_text(loader, selected);
    gpu_versions(loader, object);
    const struct json_value *list = json_member(object, "capabilities");
    model->capability_count = 0; /* the latest record counts */
    for (const struct json_value *entry = list ? list->child : NULL; entry; entry = entry->next) {
        if (model->capability_count >= capabilities_max ||
            !loader_grow(loader, &model->capabilities, &loader->capability_capacity, model->capability_count,
                         sizeof *model->capabilities))
            return;
        model->capabilities[model->capability_count++] = (struct session_capability){
            .feature = loader_member_text(loader, entry, "feature"),
            .status = loader_member_text(loader, entry, "status"),
            .reason_code = loader_member_text(loader, entry, "reason_code"),
            .message = loader_member_text(loader, entry, "message"),
            .is_requested = json_get_bool(entry, "requested", false),
        };
    }
}

/* A log may contain any number: an impossible one becomes unknown. */
static int64_t bounded_ns(const struct json_value *object, const char *key, int64_t most_ns, int64_t unknown)
{
    int64_t ns = object && object->kind == JSON_OBJECT ? json_get_int(object, key, unknown) : unknown;
    return ns < 0 || ns > most_ns ? unknown : ns;
}

static void user_time(struct session_overhead *overhead, const struct json_value *object)
{
    const int64_t decade_ns = INT64_C(315576000) * 1000000000;
    const struct json_value *user = json_member(object, "user_ns"), *cost = json_member(object, "cupti_cost");
    for (int i = 0; i < USER_TIME_COUNT; i++)
        overhead->user_ns[i] = bounded_ns(user, user_time_name((enum user_time)i), decade_ns,
                                          user && i == USER_TIME_START ? 0 : CELL_UNKNOWN); /* as in older versions */
    const struct json_value *calls = json_member(object, "calls");
    for (int i = 0; i < RECORD_COST_COUNT; i++) /* older versions did not distinguish cold launches */
        overhead->record_cost_ns[i] = bounded_ns(cost, record_costs[i].name, RECORD_COST_NS_MAX,
                                                 i == RECORD_COST_HOST_COLD ? overhead->record_cost_ns[RECORD_COST_HOST]
                                                                            : record_costs[i].shipped_ns);
    for (int i = 0; i < CALL_STATE_COUNT; i++) {
        const struct json_value *state =
            calls && calls->kind == JSON_OBJECT ? json_member(calls, call_state_name((enum call_state)i)) : NULL;
        overhead->calls[i] = (struct call_state_use){bounded_ns(state, "launches", decade_ns, CELL_UNKNOWN),
                                                     bounded_ns(state, "calls_ns", decade_ns, CELL_UNKNOWN),
                                                     bounded_ns(state, "typical_ns", decade_ns, CELL_UNKNOWN)};
    }
    overhead->is_default_cost = !cost || cost->kind != JSON_OBJECT || json_get_bool(cost, "is_default", false);
}

static void overhead(struct session_loader *loader, const struct json_value *object)
{
    loader->model->overhead = (struct session_overhead){
        .is_known = true,
        .wall_ns = json_get_int(object, "wall_ns", CELL_UNKNOWN),
        .collector_cpu_ns = json_get_int(object, "collector_cpu_ns", CELL_UNKNOWN),
        .sampler_cpu_ns = json_get_int(object, "sampler_cpu_ns", CELL_UNKNOWN),
        .seal_cpu_ns = json_get_int(object, "seal_cpu_ns", CELL_UNKNOWN),
        .flush_ns = json_get_int(object, "flush_ns", CELL_UNKNOWN),
        .cupti_ns = json_get_int(object, "cupti_ns", CELL_UNKNOWN),
        .memory_peak_bytes = json_get_int(object, "memory_peak_bytes", CELL_UNKNOWN),
    };
    user_time(&loader->model->overhead, object);
}

static void clock_sync(struct session_loader *loader, const struct json_value *object)
{
    struct session_model *model = loader->model;
    struct clock_reading_record reading = {
        .mono_ns = json_get_int(object, "mono_ns", CELL_UNKNOWN),
        .cupti_ns = json_get_int(object, "cupti_ns", CELL_UNKNOWN),
        .wall_step_ns = json_get_int(object, "wall_step_ns", CELL_UNKNOWN),
        .is_continuous = json_member(object, "boot_ns") != NULL,
    };
    if (!object_time(object, "ts_ns", &reading.wall_ns) || model->clock_sync_count >= clock_syncs_max)
        return;
    loader_saw(loader, reading.wall_ns, reading.wall_ns);
    if (loader_grow(loader, &model->clock_syncs, &loader->clock_sync_capacity, model->clock_sync_count, sizeof reading))
        model->clock_syncs[model->clock_sync_count++] = reading;
}

static void dictionary_update(struct session_loader *loader, const struct json_value *object)
{
    for (unsigned i = 0; i < DICTIONARY_COUNT; i++) {
        const struct json_value *entries = json_member(object, dictionary_catalogue[i].name);
        if (!entries || entries->kind != JSON_OBJECT)
            continue;
        for (const struct json_value *entry = entries->child; entry; entry = entry->next) {
            char *end;
            unsigned long long id = strtoull(entry->key, &end, 10);
            if (entry->kind == JSON_STRING && !*end)
                loader_define(loader, (enum dictionary)i, id, entry->text, entry->text_size);
        }
    }
}

void loader_record(struct session_loader *loader, enum record_type type, const struct json_value *object)
{
    switch (type) {
    case RECORD_JOB_START:
        job_start(loader, object);
        break;
    case RECORD_SHUTDOWN:
        shutdown(loader, object);
        break;
    case RECORD_DICTIONARY_UPDATE:
        dictionary_update(loader, object);
        break;
    case RECORD_CAPTURE_CAPABILITIES:
        capabilities(loader, object);
        break;
    case RECORD_CLOCK_SYNC:
        clock_sync(loader, object);
        break;
    case RECORD_LOSS:
        loss_record(loader, object);
        break;
    case RECORD_OVERHEAD:
        overhead(loader, object);
        break;
    case RECORD_DEVICE_LIMITS:
        loader_device_limits(loader, object);
        break;
    case RECORD_MIG_DEVICE:
        loader_mig_device(loader, object);
        break;
    default:
        if (!loader_deep_record(loader, type, object) && !loader_code_record(loader, type, object))
            loader_v1_record(loader, type, object);
        break;
    }
}
