/* SPDX-License-Identifier: Apache-2.0 */
#include "server/server_config.h"

#include "base/directory.h"
#include "base/environment.h"
#include "http/http_parse.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONFIG_BYTES_MAX = 1 << 20 };

enum setting_kind { SETTING_TEXT, SETTING_NUMBER, SETTING_SIZE, SETTING_WORDS };
struct setting {
    const char *name;
    enum setting_kind kind;
    size_t offset; /* in struct server_config */
    int64_t maximum;
};
#define FIELD(name) offsetof(struct server_config, name)

static const struct setting settings[] = {
    {"listen", SETTING_TEXT, FIELD(listen), 0},
    {"data", SETTING_TEXT, FIELD(data), 0},
    {"store", SETTING_TEXT, FIELD(store), 0},
    {"tls_cert", SETTING_TEXT, FIELD(tls_cert), 0},
    {"tls_key", SETTING_TEXT, FIELD(tls_key), 0},
    {"admin_key_file", SETTING_TEXT, FIELD(admin_key_file), 0},
    {"allow_hosts", SETTING_WORDS, FIELD(allow_hosts), 0},
    {"cors_origins", SETTING_WORDS, FIELD(cors_origins), 0},
    {"retention_days", SETTING_NUMBER, FIELD(retention_days), 36500},
    {"retention_bytes", SETTING_NUMBER, FIELD(retention_bytes), INT64_MAX},
    {"requests_per_s", SETTING_SIZE, FIELD(limits.requests_per_s), 1000000},
    {"bytes_per_s", SETTING_SIZE, FIELD(limits.bytes_per_s), INT64_MAX},
    {"bytes_per_day", SETTING_SIZE, FIELD(limits.bytes_per_day), INT64_MAX},
    {"connections_max", SETTING_NUMBER, FIELD(connections_max), 1000000},
    {"connections_peer_max", SETTING_NUMBER, FIELD(connections_peer_max), 1000000},
    {"cache_bytes", SETTING_NUMBER, FIELD(cache_bytes), INT64_MAX},
    {"head_timeout_ms", SETTING_NUMBER, FIELD(head_timeout_ms), 3600000},
    {"idle_timeout_ms", SETTING_NUMBER, FIELD(idle_timeout_ms), 3600000},
    {"body_timeout_ms", SETTING_NUMBER, FIELD(body_timeout_ms), 3600000},
};
enum { SETTING_COUNT = sizeof settings / sizeof *settings };

static const struct setting *setting_find(const char *name)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (!strcmp(settings[i].name, name))
            return &settings[i];
    return NULL;
}

static const char *setting_near(const char *name)
{
    const char *names[SETTING_COUNT + 1] = {NULL};
    for (size_t i = 0; i < SETTING_COUNT; i++)
        names[i] = settings[i].name;
    return nearest_word(name, names);
}

static const char *words_set(const char **words, const struct json_value *value)
{
    size_t count = 0;
    if (value->kind != JSON_ARRAY)
        return "a list of names";
    for (const struct json_value *word = value->child; word; word = word->next) {
        if (word->kind != JSON_STRING || count == SERVER_HOSTS_MAX)
            return "a list of at most 64 names";
        words[count++] = word->text;
    }
    words[count] = NULL;
    return NULL;
}

/* Returns NULL, or what was expected. */
static const char *setting_set(struct server_config *config, const struct setting *setting,
                               const struct json_value *value)
{
    char *at = (char *)config + setting->offset;
    if (setting->kind == SETTING_WORDS)
        return words_set((const char **)(void *)at, value);
    if (setting->kind == SETTING_TEXT) {
        if (value->kind != JSON_STRING)
            return "a string";
        memcpy(at, &value->text, sizeof value->text);
        return NULL;
    }
    if (value->kind != JSON_INT || value->integer < 0 || value->is_unsigned || value->integer > setting->maximum)
        return "a whole number from 0 to the setting's maximum";
    memcpy(at, &value->integer, sizeof value->integer); /* the same for int64_t and uint64_t */
    return NULL;
}

static gpufl_status file_read(struct server_config *config, const char *path, struct problem *problem)
{
    struct bytes text = {0};
    struct json_error error = {0};
    gpufl_status status = file_load(AT_FDCWD, path, CONFIG_BYTES_MAX, &text);
    if (status) {
        problem_set(problem, status, "%.300s: %s", path,
                    status == GPUFL_E_LIMIT     ? "larger than 1 MiB"
                    : status == GPUFL_E_INVALID ? "not a regular file"
                                                : strerror(errno));
        bytes_free(&text);
        return status;
    }
    status = json_parse(&config->document, bytes_text(&text), text.size, &error);
    bytes_free(&text);
    if (status)
        return problem_set(problem, GPUFL_E_INVALID, "%.300s:%" PRIu32 ":%" PRIu32 ": %s", path, error.line,
                           error.column, error.text);
    if (config->document.root->kind != JSON_OBJECT)
        return problem_set(problem, GPUFL_E_INVALID, "%.300s: expected an object with settings", path);
    for (const struct json_value *value = config->document.root->child; value; value = value->next) {
        const struct setting *setting = setting_find(value->key);
        const char *near = setting ? NULL : setting_near(value->key);
        const char *expected = setting ? setting_set(config, setting, value) : NULL;
        if (!setting)
            return problem_set(problem, GPUFL_E_INVALID, "%.200s:%" PRIu32 ": no setting '%.60s'%s%s%s", path,
                               value->line, value->key, near ? "; did you mean '" : "", near ? near : "",
                               near ? "'?" : "");
        if (expected)
            return problem_set(problem, GPUFL_E_INVALID, "%.200s:%" PRIu32 ": %s: expected %s", path, value->line,
                               setting->name, expected);
    }
    return GPUFL_OK;
}

/* Splits "a.example, b.example"; memory: owned, contains the words. */
static gpufl_status words_split(const char **words, char **memory, const char *list, const char *option,
                                struct problem *problem)
{
    *memory = strdup(list);
    if (!*memory)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %s", option);
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(*memory, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
        if (count == SERVER_HOSTS_MAX)
            return problem_set(problem, GPUFL_E_INVALID, "%s: at most %d names", option, SERVER_HOSTS_MAX);
        words[count++] = word;
    }
    words[count] = NULL;
    return GPUFL_OK;
}

static gpufl_status origins_check(const struct server_config *config, struct problem *problem)
{
    for (const char *const *origin = config->cors_origins; *origin; origin++)
        if (!http_origin_is_valid(*origin))
            return problem_set(problem, GPUFL_E_INVALID,
                               "--cors-origin: invalid origin '%.100s'; an example is https://grafana.example.com",
                               *origin);
    return GPUFL_OK;
}

static gpufl_status data_default(struct server_config *config, struct problem *problem)
{
    const char *base = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int size = -1;
    if (base && *base == '/')
        size = asprintf(&config->text_memory, "%s/gpufl/server", base);
    else if (home && *home == '/')
        size = asprintf(&config->text_memory, "%s/.local/share/gpufl/server", home);
    else
        return problem_set(problem, GPUFL_E_INVALID, "the data directory is missing; set --data DIR");
    if (size < 0) {
        config->text_memory = NULL;
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a path");
    }
    config->data = config->text_memory;
    return GPUFL_OK;
}

static gpufl_status command_apply(struct server_config *config, const struct server_command *command,
                                  struct problem *problem)
{
    const struct {
        const char **to;
        const char *from;
    } texts[] = {{&config->listen, command->listen},   {&config->data, command->data},
                 {&config->store, command->store},     {&config->tls_cert, command->tls_cert},
                 {&config->tls_key, command->tls_key}, {&config->admin_key_file, command->admin_key_file}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].from)
            *texts[i].to = texts[i].from;
    if (command->retention_days >= 0)
        config->retention_days = command->retention_days;
    if (command->retention_bytes >= 0)
        config->retention_bytes = command->retention_bytes;
    config->is_verbose = command->is_verbose;
    if (command->store && store_location_has_secret(command->store))
        return problem_set(problem, GPUFL_E_INVALID,
                           "--store: every user of this machine can see a password on a command line; "
                           "set it in GPUFL_CLICKHOUSE_PASSWORD, with ?password_file=FILE, or in the file of --config");
    gpufl_status status = GPUFL_OK;
    if (command->allow_hosts)
        status = words_split(config->allow_hosts, &config->host_memory, command->allow_hosts, "--allow-host", problem);
    if (!status && command->cors_origins)
        status =
            words_split(config->cors_origins, &config->origin_memory, command->cors_origins, "--cors-origin", problem);
    return status;
}

gpufl_status server_config_load(struct server_config *config, const struct server_command *command,
                                struct problem *problem)
{
    *config = (struct server_config){.listen = SERVER_LISTEN_DEFAULT, .store = ""};
    gpufl_status status = command->config ? file_read(config, command->config, problem) : GPUFL_OK;
    if (!status)
        status = command_apply(config, command, problem);
    if (!status)
        status = origins_check(config, problem);
    if (!status && !config->data)
        status = data_default(config, problem);
    if (!status && !config->tls_cert != !config->tls_key)
        status =
            problem_set(problem, GPUFL_E_INVALID, "TLS needs both a certificate (--tls-cert) and its key (--tls-key)");
    if (status)
        server_config_free(config);
    return status;
}

void server_config_free(struct server_config *config)
{
    free(config->text_memory);
    free(config->host_memory);
    free(config->origin_memory);
    json_free(&config->document);
    *config = (struct server_config){0};
}
