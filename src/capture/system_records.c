/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/system_records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/gpu_rows.h"
#include "format/json.h"

enum { BATCH_ROWS = 256 };

static const int64_t second_ns = 1000000000;

gpufl_status system_records_open(struct system_records *records, const struct system_records_options *options,
                                 struct problem *gpu_problem)
{
    memset(records, 0, sizeof *records);
    records->writer = options->writer;
    snprintf(records->session_id, sizeof records->session_id, "%s", options->session_id);
    records->slow_interval_ns = options->slow_interval_ms ? options->slow_interval_ms * INT64_C(1000000) : second_ns;
    records->host_sample = host_sample_unknown();
    host_metrics_init(&records->host, options->root);
    if (gpu_problem)
        gpu_problem->text[0] = '\0';

    gpufl_status status = GPUFL_E_NO_MEMORY;
    records->app_name = strdup(options->app_name);
    if (!records->app_name)
        goto fail;
    const struct {
        struct batch *batch;
        enum record_type type;
    } batches[] = {{&records->device_batch, RECORD_DEVICE_METRIC_BATCH},
                   {&records->process_batch, RECORD_PROCESS_METRIC_BATCH},
                   {&records->mig_batch, RECORD_MIG_METRIC_BATCH},
                   {&records->host_batch, RECORD_HOST_METRIC_BATCH}};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        if ((status = batch_init(batches[i].batch, batches[i].type, BATCH_ROWS)) != GPUFL_OK)
            goto fail;

    struct host_identity identity;
    host_identity_read(&identity);
    bytes_append_text(&records->host_members, "\"hostname\":");
    json_text(&records->host_members, identity.hostname);
    bytes_append_text(&records->host_members, ",\"ip_addr\":");
    json_text(&records->host_members, identity.ip_addr[0] ? identity.ip_addr : NULL);
    bytes_append_char(&records->host_members, ',');
    if (records->host_members.failed) {
        status = GPUFL_E_NO_MEMORY;
        goto fail;
    }
    /* The absence of a GPU is not a sampling failure. */
    if (options->gpus.vendors)
        (void)gpu_telemetry_open(&records->gpu, options->gpus, gpu_problem);
    return GPUFL_OK;
fail:
    system_records_close(records);
    return status;
}

static void memory_free(struct system_records *records)
{
    batch_free(&records->device_batch);
    batch_free(&records->process_batch);
    batch_free(&records->mig_batch);
    batch_free(&records->host_batch);
    bytes_free(&records->line);
    bytes_free(&records->host_members);
    free(records->app_name);
    records->app_name = NULL;
}

void system_records_close(struct system_records *records)
{
    gpu_telemetry_close(&records->gpu);
    memory_free(records);
}

void system_records_abandon(struct system_records *records)
{
    gpu_telemetry_abandon(&records->gpu);
    memory_free(records);
}

static struct bytes *line_begin(struct system_records *records, enum record_type type)
{
    struct bytes *line = &records->line;
    bytes_clear(line);
    bytes_append_format(line, "{\"version\":%d,\"type\":\"%s\",\"session_id\":", record_catalogue[type].version,
                        record_catalogue[type].name);
    json_text(line, records->session_id);
    return line;
}

/* The writer counts lines that it could not write, and those for which memory was exhausted, and writes loss records
 * for them. */
static void line_end(struct system_records *records, enum record_type type, uint64_t rows)
{
    (void)log_writer_line(records->writer, CHANNEL_SYSTEM, type, &records->line, rows);
}

static void batch_write(struct system_records *records, struct batch *batch)
{
    uint64_t rows = batch->row_count;
    if (!rows)
        return;
    enum record_type type = batch->info->type;
    bytes_clear(&records->line);
    batch_encode(batch, records->session_id, type == RECORD_HOST_METRIC_BATCH ? bytes_text(&records->host_members) : "",
                 &records->line);
    line_end(records, type, rows);
}

/* A row with its dt set in column 0; a full batch is written first. */
static int64_t *row_begin(struct system_records *records, struct batch *batch, int64_t wall_ns)
{
    if (batch_is_full(batch))
        batch_write(records, batch);
    if (!batch->row_count)
        batch->base_time_ns = wall_ns;
    if (!records->oldest_row_mono_ns)
        records->oldest_row_mono_ns = clock_mono_ns();
    int64_t *row = batch_row(batch);
    if (row)
        row[0] = wall_ns - batch->base_time_ns;
    return row;
}

void system_records_loss(struct system_records *records, const char *reason, const char *record_type, int64_t count,
                         const char *message)
{
    struct bytes *line = line_begin(records, RECORD_LOSS);
    json_key(line, "ts_ns");
    json_int(line, clock_log_ns());
    json_key(line, "reason");
    json_text(line, reason);
    json_key(line, "record_type");
    json_text(line, record_type);
    json_key(line, "count");
    if (count == CELL_UNKNOWN)
        json_text(line, NULL);
    else
        json_int(line, count);
    json_key(line, "message");
    json_text(line, message);
    line_end(records, RECORD_LOSS, 1);
}

static void processes_write(struct system_records *records, const struct gpu_device *device)
{
    if (device->process_count > GPU_PROCESSES_MAX && !records->has_reported_process_limit) {
        records->has_reported_process_limit = true;
        system_records_loss(records, "process_limit", "process_metric_batch", CELL_UNKNOWN,
                            "a GPU has more processes than can be listed; the rest is omitted");
    }
    int64_t wall_ns = clock_log_ns();
    for (int i = 0; i < device->process_count && i < GPU_PROCESSES_MAX; i++) {
        const struct gpu_process *process = &device->processes[i];
        int64_t *row = row_begin(records, &records->process_batch, wall_ns);
        if (!row)
            return;
        row[PROCESS_METRIC_DEVICE_ID] = device->info.index;
        row[PROCESS_METRIC_PID] = process->pid;
        row[PROCESS_METRIC_USED_MIB] = process->has_used_bytes ? (int64_t)(process->used_bytes >> 20) : CELL_UNKNOWN;
        row[PROCESS_METRIC_GPU_INSTANCE_ID] =
            process->has_gpu_instance ? (int64_t)process->gpu_instance_id : CELL_UNKNOWN;
    }
}

static void migs_write(struct system_records *records, struct gpu_device *device)
{
    for (uint32_t i = 0; i < device->mig_count && device->has_new_migs; i++) {
        const struct gpu_mig_info *info = &device->migs[i].info;
        struct bytes *line = line_begin(records, RECORD_MIG_DEVICE);
        bytes_append_format(line,
                            ",\"ts_ns\":%" PRId64 ",\"device_id\":%" PRIu32 ",\"gpu_instance_id\":%" PRIu32
                            ",\"compute_instance_id\":%" PRIu32,
                            clock_log_ns(), device->info.index, info->gpu_instance_id, info->compute_instance_id);
        json_key(line, "uuid");
        json_text(line, info->uuid[0] ? info->uuid : NULL);
        json_key(line, "name");
        json_text(line, info->name[0] ? info->name : NULL);
        line_end(records, RECORD_MIG_DEVICE, 1);
    }
    device->has_new_migs = false;
    for (uint32_t i = 0; i < device->mig_count; i++) {
        int64_t *row = row_begin(records, &records->mig_batch, device->sampled_wall_ns);
        if (row)
            gpu_mig_row_fill(row, row[MIG_METRIC_DT_NS], device->info.index, &device->migs[i]);
    }
}

static void gpu_loss_report(struct system_records *records, struct gpu_device *device)
{
    if (device->is_loss_reported)
        return;
    device->is_loss_reported = true;
    char message[320];
    snprintf(message, sizeof message, "GPU %" PRIu32 " (%s, %s) fell off the bus and is no longer sampled",
             device->info.index, device->info.name, device->info.uuid);
    system_records_loss(records, "gpu_lost", "device_metric_batch", CELL_UNKNOWN, message);
}

static void gpus_sample(struct system_records *records, bool with_slow)
{
    for (uint32_t i = 0; i < records->gpu.device_count; i++) {
        struct gpu_device *device = &records->gpu.devices[i];
        if (!gpu_telemetry_sample(&records->gpu, i, with_slow)) {
            gpu_loss_report(records, device);
            continue;
        }
        int64_t *row = row_begin(records, &records->device_batch, device->sampled_wall_ns);
        if (row)
            gpu_row_fill(row, row[DEVICE_METRIC_DT_NS], i, &device->sample);
        migs_write(records, device);
        if (with_slow)
            processes_write(records, device);
    }
}

void system_records_sample(struct system_records *records)
{
    int64_t mono_ns = clock_mono_ns();
    bool with_slow = !records->slow_mono_ns || mono_ns - records->slow_mono_ns >= records->slow_interval_ns;
    if (with_slow)
        records->slow_mono_ns = mono_ns;
    gpus_sample(records, with_slow);
    int64_t wall_ns = clock_log_ns();
    records->host_sample = host_metrics_sample(&records->host, clock_mono_ns());
    int64_t *row = row_begin(records, &records->host_batch, wall_ns);
    if (row) {
        row[HOST_METRIC_CPU_PCT_X100] = records->host_sample.cpu_pct_x100;
        row[HOST_METRIC_RAM_USED_MIB] = records->host_sample.ram_used_mib;
        row[HOST_METRIC_RAM_TOTAL_MIB] = records->host_sample.ram_total_mib;
        row[HOST_METRIC_PROCESS_CPU_PCT_X100] = records->host_sample.process_cpu_pct_x100;
        row[HOST_METRIC_PROCESS_RSS_MIB] = records->host_sample.process_rss_mib;
    }
}

void system_records_flush(struct system_records *records, int64_t next_mono_ns)
{
    if (!records->oldest_row_mono_ns || next_mono_ns - records->oldest_row_mono_ns <= second_ns)
        return;
    records->oldest_row_mono_ns = 0;
    batch_write(records, &records->device_batch);
    batch_write(records, &records->process_batch);
    batch_write(records, &records->mig_batch);
    batch_write(records, &records->host_batch);
}

void system_records_move(struct system_records *records, struct log_writer *writer, const char *session_id)
{
    system_records_flush(records, INT64_MAX);
    records->writer = writer;
    snprintf(records->session_id, sizeof records->session_id, "%s", session_id);
    records->device_batch.batch_id = records->process_batch.batch_id = 0;
    records->mig_batch.batch_id = records->host_batch.batch_id = 0;
    records->has_reported_process_limit = false;
    records->slow_mono_ns = 0; /* each session begins with a complete sample */
    for (uint32_t i = 0; i < records->gpu.device_count; i++) {
        records->gpu.devices[i].has_new_migs = true;
        records->gpu.devices[i].is_loss_reported = false;
    }
}

static void member_mib(struct bytes *out, const char *key, int64_t mib)
{
    json_key(out, key);
    if (mib == CELL_UNKNOWN)
        json_text(out, NULL);
    else
        json_int(out, mib);
}

static void host_json(struct bytes *out, const struct host_sample *sample)
{
    json_key(out, "host");
    bytes_append_char(out, '{');
    json_key(out, "cpu_pct");
    if (sample->cpu_pct_x100 == CELL_UNKNOWN) {
        json_text(out, NULL);
    } else {
        /* v1 has one decimal; printf's %f would depend on the program's locale. */
        int64_t tenths = (sample->cpu_pct_x100 + 5) / 10;
        bytes_append_format(out, "%" PRId64 ".%" PRId64, tenths / 10, tenths % 10);
    }
    member_mib(out, "ram_used_mib", sample->ram_used_mib);
    member_mib(out, "ram_total_mib", sample->ram_total_mib);
    bytes_append_char(out, '}');
}

static void devices_json(const struct system_records *records, struct bytes *out, bool with_sample)
{
    json_key(out, "devices");
    bytes_append_char(out, '[');
    for (uint32_t i = 0; i < records->gpu.device_count; i++) {
        const struct gpu_device *device = &records->gpu.devices[i];
        if (i)
            bytes_append_char(out, ',');
        gpu_sample_json(out, &device->info, with_sample ? &device->sample : NULL);
    }
    bytes_append_char(out, ']');
}

void system_records_window(struct system_records *records, bool is_start, const char *name, int64_t wall_ns,
                           bool with_sample)
{
    enum record_type type = is_start ? RECORD_SYSTEM_START : RECORD_SYSTEM_STOP;
    struct host_sample unknown = host_sample_unknown();
    struct bytes *line = line_begin(records, type);
    json_key(line, "pid");
    json_int(line, getpid());
    json_key(line, "app");
    json_text(line, records->app_name);
    json_key(line, "name");
    json_text(line, name);
    json_key(line, "ts_ns");
    json_int(line, wall_ns);
    host_json(line, with_sample ? &records->host_sample : &unknown);
    devices_json(records, line, with_sample);
    line_end(records, type, 1);
}

/* vendors: a bit per enum gpu_vendor. */
static void static_devices_json(const struct system_records *records, struct bytes *out, const char *key,
                                unsigned vendors)
{
    bool is_first = true;
    json_key(out, key);
    bytes_append_char(out, '[');
    for (uint32_t i = 0; i < records->gpu.device_count; i++) {
        const struct gpu_device_info *info = &records->gpu.devices[i].info;
        if (!(vendors >> info->vendor & 1))
            continue;
        if (!is_first)
            bytes_append_char(out, ',');
        is_first = false;
        gpu_static_json(out, info);
    }
    bytes_append_char(out, ']');
}

void system_records_describe(struct system_records *records, struct bytes *out)
{
    for (uint32_t i = 0; i < records->gpu.device_count; i++)
        (void)gpu_telemetry_sample(&records->gpu, i, false);
    struct host_sample sample = host_metrics_sample(&records->host, clock_mono_ns());
    host_json(out, &sample);
    devices_json(records, out, true);
    static_devices_json(records, out, "gpu_static_devices", GPU_VENDORS_ALL);
    static_devices_json(records, out, "cuda_static_devices", 1u << GPU_VENDOR_NVIDIA);
    static_devices_json(records, out, "rocm_static_devices", 1u << GPU_VENDOR_AMD);
}
