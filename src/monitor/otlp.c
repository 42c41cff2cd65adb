/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/otlp.h"

#include "format/json.h"

#include <inttypes.h>
#include <stdio.h>

enum otlp_kind { OTLP_GAUGE, OTLP_SUM, OTLP_COUNTER };

struct otlp_metric {
    const char *name, *unit;
    enum otlp_kind kind;
    enum gpu_metric metric;
    double divisor;
    const char *label, *value; /* an additional attribute, or NULL */
};

/* Entries with the same name must be adjacent. */
static const struct otlp_metric metrics[] = {
    {"hw.gpu.utilization", "1", OTLP_GAUGE, GPU_UTIL_PCT, 100, NULL, NULL},
    {"hw.gpu.memory.usage", "By", OTLP_SUM, GPU_MEM_USED_BYTES, 1, NULL, NULL},
    {"hw.gpu.memory.limit", "By", OTLP_SUM, GPU_MEM_TOTAL_BYTES, 1, NULL, NULL},
    {"hw.temperature", "Cel", OTLP_GAUGE, GPU_TEMP_C, 1, "hw.sensor_location", "gpu"},
    {"hw.temperature", "Cel", OTLP_GAUGE, GPU_TEMP_MEM_C, 1, "hw.sensor_location", "memory"},
    {"hw.temperature", "Cel", OTLP_GAUGE, GPU_TEMP_EDGE_C, 1, "hw.sensor_location", "edge"},
    {"hw.temperature", "Cel", OTLP_GAUGE, GPU_TEMP_JUNCTION_C, 1, "hw.sensor_location", "junction"},
    {"hw.voltage", "V", OTLP_GAUGE, GPU_VOLTAGE_MV, 1000, NULL, NULL},
    {"hw.power", "W", OTLP_GAUGE, GPU_POWER_MW, 1000, NULL, NULL},
    {"hw.energy", "J", OTLP_COUNTER, GPU_ENERGY_UJ, 1000000, NULL, NULL},
    {"hw.fan.speed", "rpm", OTLP_GAUGE, GPU_FAN_RPM, 1, NULL, NULL},
    {"hw.fan.speed_ratio", "1", OTLP_GAUGE, GPU_FAN_PCT, 100, NULL, NULL},
    {"hw.errors", "{error}", OTLP_COUNTER, GPU_ECC_CORRECTED, 1, "error.type", "corrected"},
    {"hw.errors", "{error}", OTLP_COUNTER, GPU_ECC_UNCORRECTED, 1, "error.type", "uncorrected"},
    {"gpufl.gpu.sm.active", "1", OTLP_GAUGE, GPU_SM_ACTIVE_BP, 10000, NULL, NULL},
    {"gpufl.gpu.sm.occupancy", "1", OTLP_GAUGE, GPU_SM_OCCUPANCY_BP, 10000, NULL, NULL},
    {"gpufl.gpu.dram.active", "1", OTLP_GAUGE, GPU_DRAM_ACTIVE_BP, 10000, NULL, NULL},
};
enum { metric_count = sizeof metrics / sizeof metrics[0] };

static void attribute(struct bytes *out, const char *key, const char *value)
{
    if (out->size && out->data[out->size - 1] == '}')
        bytes_append_char(out, ',');
    bytes_append_text(out, "{\"key\":");
    json_text(out, key);
    bytes_append_text(out, ",\"value\":{\"stringValue\":");
    json_text(out, value);
    bytes_append_text(out, "}}");
}

static void point_begin(struct bytes *out, const struct monitor_view *view, const struct view_gpu *gpu)
{
    if (out->data[out->size - 1] == '}')
        bytes_append_char(out, ',');
    bytes_append_text(out, "{\"attributes\":[");
    attribute(out, "hw.id", gpu->info.uuid);
    attribute(out, "hw.name", gpu->info.name);
    attribute(out, "hw.type", "gpu");
    attribute(out, "hw.vendor", gpu_vendor_name(gpu->info.vendor));
    attribute(out, "hw.driver_version", view->driver_versions[gpu->info.vendor]);
}

static void point_end(struct bytes *out, const struct monitor_view *view, double value)
{
    bytes_append_char(out, ']');
    json_key(out, "timeUnixNano"); /* 64-bit integers are strings in JSON */
    bytes_append_format(out, "\"%" PRId64 "\"", view->sampled_wall_ns);
    json_key(out, "asDouble");
    json_double(out, value);
    bytes_append_char(out, '}');
}

static void metric_begin(struct bytes *out, const char *name, const char *unit, enum otlp_kind kind)
{
    if (out->data[out->size - 1] == '}')
        bytes_append_char(out, ',');
    bytes_append_format(out, "{\"name\":\"%s\",\"unit\":\"%s\",\"%s\":{", name, unit,
                        kind == OTLP_GAUGE ? "gauge" : "sum");
    if (kind != OTLP_GAUGE) /* 2: cumulative */
        bytes_append_format(out, "\"aggregationTemporality\":2,\"isMonotonic\":%s,",
                            kind == OTLP_COUNTER ? "true" : "false");
    bytes_append_text(out, "\"dataPoints\":[");
}

static void metric_end(struct bytes *out)
{
    bytes_append_text(out, "]}}");
}

static bool is_known_anywhere(const struct monitor_view *view, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        for (uint32_t j = 0; j < view->gpu_count; j++)
            if (gpu_sample_knows(&view->gpus[j].sample, metrics[i].metric))
                return true;
    return false;
}

static void metrics_write(struct bytes *out, const struct monitor_view *view)
{
    for (size_t first = 0, end; first < metric_count; first = end) {
        for (end = first + 1; end < metric_count && !strcmp(metrics[end].name, metrics[first].name);)
            end++;
        if (!is_known_anywhere(view, first, end))
            continue;
        metric_begin(out, metrics[first].name, metrics[first].unit, metrics[first].kind);
        for (size_t i = first; i < end; i++)
            for (uint32_t j = 0; j < view->gpu_count; j++) {
                const struct gpu_sample *sample = &view->gpus[j].sample;
                if (!gpu_sample_knows(sample, metrics[i].metric))
                    continue;
                point_begin(out, view, &view->gpus[j]);
                if (metrics[i].label)
                    attribute(out, metrics[i].label, metrics[i].value);
                point_end(out, view, (double)sample->values[metrics[i].metric] / metrics[i].divisor);
            }
        metric_end(out);
    }
}

/* hw.gpu.memory.utilization is usage divided by size, which the driver does not report; hw.status is 1 for the current state and 0 for the other. */
static void derived_write(struct bytes *out, const struct monitor_view *view)
{
    if (!view->gpu_count)
        return;
    bool has_memory = false;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gpu_sample *sample = &view->gpus[i].sample;
        if (!gpu_sample_knows(sample, GPU_MEM_USED_BYTES) || !gpu_sample_knows(sample, GPU_MEM_TOTAL_BYTES) ||
            !sample->values[GPU_MEM_TOTAL_BYTES])
            continue;
        if (!has_memory)
            metric_begin(out, "hw.gpu.memory.utilization", "1", OTLP_GAUGE);
        has_memory = true;
        point_begin(out, view, &view->gpus[i]);
        point_end(out, view, (double)sample->values[GPU_MEM_USED_BYTES] / (double)sample->values[GPU_MEM_TOTAL_BYTES]);
    }
    if (has_memory)
        metric_end(out);
    static const char *const states[] = {"ok", "failed"};
    metric_begin(out, "hw.status", "1", OTLP_SUM);
    for (uint32_t i = 0; i < view->gpu_count; i++)
        for (int j = 0; j < 2; j++) {
            point_begin(out, view, &view->gpus[i]);
            attribute(out, "hw.state", states[j]);
            point_end(out, view, view->gpus[i].is_up == (j == 0));
        }
    metric_end(out);
}

void otlp_request(struct bytes *out, struct monitor_view *view)
{
    pthread_mutex_lock(&view->mutex);
    bytes_append_text(out, "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[");
    attribute(out, "service.name", "gpufl-monitor");
    attribute(out, "service.version", GPUFL_VERSION_STRING);
    attribute(out, "host.name", view->hostname);
    bytes_append_text(out, "]},\"scopeMetrics\":[{\"scope\":{\"name\":\"gpufl\",\"version\":\"" GPUFL_VERSION_STRING
                           "\"},\"metrics\":[");
    metrics_write(out, view);
    derived_write(out, view);
    bytes_append_text(out, "]}]}]}");
    pthread_mutex_unlock(&view->mutex);
}

gpufl_status otlp_url_split(const char *url, char *server, size_t server_size, char *path, size_t path_size,
                            struct problem *problem)
{
    const char *host = strstr(url, "://");
    const char *slash = host ? strchr(host + 3, '/') : NULL;
    size_t size = slash ? (size_t)(slash - url) : strlen(url);
    bool has_path = slash && slash[1];
    if (!host || !host[3] || slash == host + 3 || size >= server_size || (has_path && strlen(slash) >= path_size))
        return problem_set(problem, GPUFL_E_INVALID, "invalid collector address '%.100s': use http://localhost:4318",
                           url);
    memcpy(server, url, size);
    server[size] = '\0';
    snprintf(path, path_size, "%s", has_path ? slash : "/v1/metrics");
    return GPUFL_OK;
}
