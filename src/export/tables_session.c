/* SPDX-License-Identifier: Apache-2.0 */
/* The session: program, GPUs, launch configurations, and losses. */
#include "export/tables.h"

#include <gpufl/gpufl.h>
#include <inttypes.h>
#include <stdio.h>

static const struct table_column session_columns[] = {TEXT("key"), TEXT("value")};
enum session_key {
    KEY_ID,
    KEY_APP,
    KEY_KIND,
    KEY_HOSTNAME,
    KEY_COMMAND,
    KEY_PID,
    KEY_ENGINE,
    KEY_REQUESTED_ENGINE,
    KEY_DRIVER,
    KEY_CUDA,
    KEY_CUPTI,
    KEY_GPUFL,
    KEY_EXPORTER,
    KEY_CLOCK,
    KEY_START,
    KEY_END,
    KEY_FIRST,
    KEY_LAST,
    KEY_EXIT_CODE,
    KEY_SIGNAL,
    KEY_HAS_CRASHED,
    KEY_LOST,
    KEY_LOST_EXACT,
    KEY_COUNT
};

static const char *number_text(struct table_source *source, int64_t number)
{
    if (number == TIME_UNKNOWN)
        return NULL;
    snprintf(source->text, sizeof source->text, "%" PRId64, number);
    return source->text;
}

static const char *session_value(struct table_source *source, size_t key)
{
    const struct session_model *model = source->model;
    const struct job_info *job = &model->job;
    bool is_exact;
    uint64_t lost = session_lost(model, &is_exact);
    switch ((enum session_key)key) {
    case KEY_ID:
        return job->session_id;
    case KEY_APP:
        return job->app;
    case KEY_KIND:
        return job->kind;
    case KEY_HOSTNAME:
        return job->hostname;
    case KEY_COMMAND:
        return job->command;
    case KEY_PID:
        return job->pid < 0 ? NULL : number_text(source, job->pid);
    case KEY_ENGINE:
        return job->engine;
    case KEY_REQUESTED_ENGINE:
        return job->requested_engine;
    case KEY_DRIVER:
        return job->driver_version;
    case KEY_CUDA:
        return job->cuda_version;
    case KEY_CUPTI:
        return job->cupti_version;
    case KEY_GPUFL:
        return job->gpufl_version;
    case KEY_EXPORTER:
        return "gpufl " GPUFL_VERSION_STRING;
    case KEY_CLOCK:
        return "CLOCK_REALTIME, nanoseconds since 1970-01-01 UTC";
    case KEY_START:
        return number_text(source, job->start_ns);
    case KEY_END:
        return number_text(source, job->shutdown_ns);
    case KEY_FIRST:
        return number_text(source, model->first_ns);
    case KEY_LAST:
        return number_text(source, model->last_ns);
    case KEY_EXIT_CODE:
        return number_text(source, job->exit_code);
    case KEY_SIGNAL:
        return number_text(source, job->signal);
    case KEY_HAS_CRASHED:
        return job->has_crashed ? "1" : "0";
    case KEY_LOST:
        return number_text(source, lost > INT64_MAX ? INT64_MAX : (int64_t)lost);
    case KEY_LOST_EXACT:
        return is_exact ? "1" : "0";
    case KEY_COUNT:
        break;
    }
    return NULL;
}

static size_t session_count(const struct session_model *model)
{
    (void)model;
    return KEY_COUNT;
}
static bool session_row(struct table_source *source, size_t row, struct table_value *values)
{
    static const char *const keys[KEY_COUNT] = {"session_id",     "app",          "kind",          "hostname",
                                                "command",        "pid",          "engine",        "requested_engine",
                                                "driver_version", "cuda_version", "cupti_version", "gpufl_version",
                                                "exporter",       "clock",        "start_ns",      "end_ns",
                                                "first_ns",       "last_ns",      "exit_code",     "signal",
                                                "has_crashed",    "lost_records", "is_lost_exact"};
    value_text(&values[0], keys[row]);
    value_text(&values[1], session_value(source, row));
    return values[1].kind != VALUE_NONE; /* unknown values are left out */
}
const struct export_table table_of_session = {
    .name = "session", COLUMNS(session_columns), .count = session_count, .row = session_row};

static const struct table_column device_columns[] = {INTEGER("device_id"),
                                                     TEXT("name"),
                                                     TEXT("uuid"),
                                                     INTEGER("compute_major"),
                                                     INTEGER("compute_minor"),
                                                     INTEGER("multiprocessors"),
                                                     INTEGER("core_clock_khz"),
                                                     INTEGER("memory_bytes_per_s")};
static size_t devices_count(const struct session_model *model)
{
    return model->device_count;
}
static bool devices_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct device_info *device = &source->model->devices[row];
    value_device(&values[0], device->id);
    value_text(&values[1], device->name);
    value_text(&values[2], device->uuid);
    value_id(&values[3], device->compute_major);
    value_id(&values[4], device->compute_minor);
    value_id(&values[5], device->multiprocessors);
    if (device->has_limits) {
        value_id(&values[6], device->limits.core_clock_khz);
        value_time(&values[7], device->limits.memory_bandwidth_bps);
    }
    return true;
}
const struct export_table table_of_devices = {
    .name = "devices", COLUMNS(device_columns), .count = devices_count, .row = devices_row};

static const struct table_column launch_columns[] = {INTEGER("launch_id"),
                                                     NAME("kernel", DICTIONARY_KERNEL),
                                                     INTEGER("device_id"),
                                                     INTEGER("grid_x"),
                                                     INTEGER("grid_y"),
                                                     INTEGER("grid_z"),
                                                     INTEGER("block_x"),
                                                     INTEGER("block_y"),
                                                     INTEGER("block_z"),
                                                     INTEGER("cluster_x"),
                                                     INTEGER("cluster_y"),
                                                     INTEGER("cluster_z"),
                                                     INTEGER("registers"),
                                                     INTEGER("static_shared_bytes"),
                                                     INTEGER("dynamic_shared_bytes"),
                                                     INTEGER("shared_executed_bytes"),
                                                     INTEGER("local_bytes_per_thread"),
                                                     REAL("occupancy"),
                                                     REAL("occupancy_registers"),
                                                     REAL("occupancy_shared"),
                                                     REAL("occupancy_warps"),
                                                     REAL("occupancy_blocks"),
                                                     INTEGER("active_blocks_max"),
                                                     TEXT("limiter")};
static size_t launches_count(const struct session_model *model)
{
    return model->launch_count;
}
static bool launches_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct launch_config *launch = &source->model->launches[row];
    value_integer(&values[0], (int64_t)row + 1);
    value_name(&values[1], source->model, DICTIONARY_KERNEL, launch->kernel_id);
    value_device(&values[2], launch->device);
    for (unsigned i = 0; i < 3; i++) {
        if (launch->grid[0])
            value_id(&values[3 + i], launch->grid[i]);
        if (launch->block[0])
            value_id(&values[6 + i], launch->block[i]);
        if (launch->cluster[0])
            value_id(&values[9 + i], launch->cluster[i]);
    }
    value_id(&values[12], launch->num_regs);
    value_id(&values[13], launch->static_shared);
    value_id(&values[14], launch->dyn_shared);
    value_id(&values[15], launch->shared_executed);
    value_id(&values[16], launch->local_per_thread);
    const uint32_t shares_bp[] = {launch->occupancy_bp, launch->occupancy_regs_bp, launch->occupancy_shared_bp,
                                  launch->occupancy_warps_bp, launch->occupancy_blocks_bp};
    for (unsigned i = 0; i < sizeof shares_bp / sizeof *shares_bp; i++)
        if (shares_bp[i] != ID_UNKNOWN)
            value_real(&values[17 + i], shares_bp[i] / 10000.0);
    value_id(&values[22], launch->active_blocks_max);
    value_word(&values[23], "limiter", launch->limiter);
    return true;
}
const struct export_table table_of_launches = {
    .name = "launches", COLUMNS(launch_columns), .count = launches_count, .row = launches_row};

static const struct table_column loss_columns[] = {TEXT("reason"),   TEXT("record_type"),
                                                   INTEGER("count"), INTEGER("has_unknown_count"),
                                                   TEXT("message"),  TEXT("cause")};
static size_t losses_count(const struct session_model *model)
{
    return model->loss_count;
}
static bool losses_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct session_loss *loss = &source->model->losses[row];
    value_text(&values[0], loss->reason);
    value_text(&values[1], loss->record_type);
    if (loss->count || !loss->has_unknown_count)
        value_unsigned(&values[2], loss->count);
    value_integer(&values[3], loss->has_unknown_count);
    value_text(&values[4], loss->message);
    value_text(&values[5], loss->cause);
    return true;
}
const struct export_table table_of_losses = {
    .name = "losses", COLUMNS(loss_columns), .count = losses_count, .row = losses_row};

static const struct table_column capability_columns[] = {TEXT("feature"), TEXT("status"), INTEGER("is_requested"),
                                                         TEXT("reason"), TEXT("message")};
static size_t capabilities_count(const struct session_model *model)
{
    return model->capability_count;
}
static bool capabilities_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct session_capability *capability = &source->model->capabilities[row];
    value_text(&values[0], capability->feature);
    value_text(&values[1], capability->status);
    value_integer(&values[2], capability->is_requested);
    value_text(&values[3], capability->reason_code);
    value_text(&values[4], capability->message);
    return true;
}
const struct export_table table_of_capabilities = {
    .name = "capabilities", COLUMNS(capability_columns), .count = capabilities_count, .row = capabilities_row};

static const struct table_column issue_columns[] = {TEXT("file"), INTEGER("line"), INTEGER("count"), TEXT("text")};
static size_t issues_count(const struct session_model *model)
{
    return model->issue_count;
}
static bool issues_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct log_issue *issue = &source->model->issues[row];
    value_text(&values[0], issue->file);
    if (issue->line)
        value_unsigned(&values[1], issue->line);
    if (issue->count)
        value_unsigned(&values[2], issue->count);
    value_text(&values[3], issue->text);
    return true;
}
const struct export_table table_of_issues = {
    .name = "log_issues", COLUMNS(issue_columns), .count = issues_count, .row = issues_row};

static const struct table_column window_columns[] = {INTEGER("window_id"), INTEGER("start_ns"),
                                                     INTEGER("end_ns"),    TEXT("source"),
                                                     TEXT("name"),         NAME("scope", DICTIONARY_SCOPE_NAME),
                                                     INTEGER("launches"),  TEXT("close_reason")};
static size_t windows_count(const struct session_model *model)
{
    return model->deep.window_count;
}
static bool windows_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct deep_window *window = &source->model->deep.windows[row];
    if (window->id)
        value_integer(&values[0], window->id);
    value_time(&values[1], window->start_ns);
    value_time(&values[2], window->end_ns);
    value_text(&values[3], window->source);
    value_text(&values[4], window->name);
    value_name(&values[5], source->model, DICTIONARY_SCOPE_NAME, window->path_id);
    value_time(&values[6], window->launches);
    value_text(&values[7], window->close_reason);
    return true;
}
const struct export_table table_of_windows = {
    .name = "windows", COLUMNS(window_columns), .count = windows_count, .row = windows_row};
