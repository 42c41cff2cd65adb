/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cupti_cost.h"

#include "base/directory.h"
#include "format/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { file_bytes_max = 1 << 20 };

static const char system_file[] = "/var/cache/gpufl/calibration.json";

static void cpu_name(char *out, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    snprintf(out, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        bool is_name = !strncmp(line, "model name", 10) || !strncmp(line, "CPU part", 8);
        if (!is_name || !colon)
            continue;
        snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

void cupti_cost_key_fill(struct cupti_cost_key *key, int cuda_version, uint32_t cupti_version)
{
    *key = (struct cupti_cost_key){.cuda_version = cuda_version, .cupti_version = cupti_version};
    cpu_name(key->cpu, sizeof key->cpu);
}

/* GPUFL_CALIBRATION_FILE, or a file in the user's cache; false: neither is available. */
static bool user_file(char path[PATH_MAX])
{
    const char *given = getenv("GPUFL_CALIBRATION_FILE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int size = given && *given == '/'   ? snprintf(path, PATH_MAX, "%s", given)
               : cache && *cache == '/' ? snprintf(path, PATH_MAX, "%s/gpufl/calibration.json", cache)
               : home && *home == '/'   ? snprintf(path, PATH_MAX, "%s/.cache/gpufl/calibration.json", home)
                                        : -1;
    return size > 0 && size < PATH_MAX;
}

static bool entry_fits(const struct json_value *entry, const struct cupti_cost_key *key)
{
    return entry->kind == JSON_OBJECT && !strcmp(json_get_text(entry, "cpu", ""), key->cpu) &&
           json_get_int(entry, "cuda_version", -1) == key->cuda_version &&
           json_get_int(entry, "cupti_version", -1) == (int64_t)key->cupti_version;
}

static bool entry_read(const struct json_value *entry, struct cupti_cost *cost)
{
    struct cupti_cost read = {.is_default = false};
    for (size_t i = 0; i < RECORD_COST_COUNT; i++) {
        read.ns[i] = json_get_int(entry, record_costs[i].name, -1);
        if (read.ns[i] < 0 || read.ns[i] > RECORD_COST_NS_MAX)
            return false;
    }
    *cost = read;
    return true;
}

static bool file_parse(const char *path, struct json_document *document)
{
    struct bytes text = {0};
    struct json_error error;
    bool is_read = file_load(AT_FDCWD, path, file_bytes_max, &text) == GPUFL_OK &&
                   json_parse(document, text.data, text.size, &error) == GPUFL_OK;
    bytes_free(&text);
    return is_read;
}

static const struct json_value *first_entry(const struct json_document *document)
{
    const struct json_value *list =
        document->root->kind == JSON_OBJECT ? json_member(document->root, "calibrations") : NULL;
    return list && list->kind == JSON_ARRAY ? list->child : NULL;
}

static bool file_find(const char *path, const struct cupti_cost_key *key, struct cupti_cost *cost)
{
    struct json_document document;
    if (!file_parse(path, &document))
        return false;
    bool is_found = false;
    for (const struct json_value *entry = first_entry(&document); entry && !is_found; entry = entry->next)
        is_found = entry_fits(entry, key) && entry_read(entry, cost);
    json_free(&document);
    return is_found;
}

void cupti_cost_find(struct cupti_cost *cost, const struct cupti_cost_key *key)
{
    char path[PATH_MAX];
    if (user_file(path) && file_find(path, key, cost))
        return;
    if (file_find(system_file, key, cost))
        return;
    cost->is_default = true;
    for (size_t i = 0; i < RECORD_COST_COUNT; i++)
        cost->ns[i] = record_costs[i].shipped_ns;
}

static void entry_append(struct bytes *out, const struct cupti_cost *cost, const struct cupti_cost_key *key)
{
    bytes_append_text(out, out->data[out->size - 1] == '[' ? "\n{\"cpu\":" : ",\n{\"cpu\":");
    json_text(out, key->cpu);
    bytes_append_format(out, ",\"cuda_version\":%d,\"cupti_version\":%u", key->cuda_version, key->cupti_version);
    for (size_t i = 0; i < RECORD_COST_COUNT; i++) {
        json_key(out, record_costs[i].name);
        json_int(out, cost->ns[i]);
    }
    bytes_append_char(out, '}');
}

static void others_append(struct bytes *out, const char *path, const struct cupti_cost_key *key)
{
    struct json_document document;
    if (!file_parse(path, &document))
        return;
    for (const struct json_value *entry = first_entry(&document); entry; entry = entry->next) {
        struct cupti_cost cost;
        struct cupti_cost_key other;
        if (entry->kind != JSON_OBJECT || entry_fits(entry, key) || !entry_read(entry, &cost))
            continue;
        snprintf(other.cpu, sizeof other.cpu, "%s", json_get_text(entry, "cpu", ""));
        other.cuda_version = (int)json_get_int(entry, "cuda_version", 0);
        other.cupti_version = (uint32_t)json_get_int(entry, "cupti_version", 0);
        entry_append(out, &cost, &other);
    }
    json_free(&document);
}

gpufl_status cupti_cost_store(const struct cupti_cost *cost, const struct cupti_cost_key *key, char path[PATH_MAX],
                              struct problem *problem)
{
    if (!user_file(path))
        return problem_set(problem, GPUFL_E_INVALID,
                           "there is no directory for the calibration: set HOME or GPUFL_CALIBRATION_FILE");
    struct bytes text = {0};
    bytes_append_text(&text, "{\"calibrations\":[");
    entry_append(&text, cost, key);
    others_append(&text, path, key);
    bytes_append_text(&text, "\n]}\n");
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s", path);
    *strrchr(directory, '/') = '\0';
    gpufl_status status = text.failed ? GPUFL_E_NO_MEMORY : directory_make(directory, problem);
    if (status == GPUFL_OK)
        status = file_replace(AT_FDCWD, path, text.data, text.size);
    bytes_free(&text);
    return status == GPUFL_OK
               ? status
               : problem_set(problem, status, "cannot write the calibration to '%.300s': %s", path, strerror(errno));
}
