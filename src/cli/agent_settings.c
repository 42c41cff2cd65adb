/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_settings.h"

#include "base/directory.h"
#include "base/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_BYTES_MAX = 1 << 20 };

enum setting_kind { SETTING_TEXT, SETTING_U64, SETTING_I64, SETTING_DAYS, SETTING_KEEP, SETTING_ROOTS };

struct setting {
    const char *name; /* in the config file */
    enum setting_kind kind;
    size_t offset; /* in struct agent_options */
};

static const struct setting settings_table[] = {
    {"roots", SETTING_ROOTS, 0},
    {"server", SETTING_TEXT, offsetof(struct agent_options, server_url)},
    {"api_path", SETTING_TEXT, offsetof(struct agent_options, api_path)},
    {"api_key_file", SETTING_TEXT, offsetof(struct agent_options, api_key_file)},
    {"state", SETTING_TEXT, offsetof(struct agent_options, state_dir)},
    {"quarantine", SETTING_TEXT, offsetof(struct agent_options, quarantine_dir)},
    {"keep", SETTING_KEEP, 0},
    {"keep_days", SETTING_DAYS, 0},
    {"spool_bytes", SETTING_U64, offsetof(struct agent_options, spool_bytes_max)},
    {"rate", SETTING_U64, offsetof(struct agent_options, rate_bytes_per_s)},
    {"interval_ms", SETTING_I64, offsetof(struct agent_options, interval_ms)},
    {"listen", SETTING_TEXT, offsetof(struct agent_options, listen)},
    {"remote_config", SETTING_TEXT, offsetof(struct agent_options, remote_config)},
    {"remote_config_dir", SETTING_TEXT, offsetof(struct agent_options, remote_config_dir)},
};
enum { setting_count = sizeof settings_table / sizeof *settings_table };

static const char *environment_text(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static const char *set_roots(struct agent_options *options, const struct json_value *value)
{
    static const char expected[] = "an array of at most 64 paths";
    if (value->kind != JSON_ARRAY || value->count > AGENT_ROOTS_MAX)
        return expected;
    for (const struct json_value *root = value->child; root; root = root->next) {
        if (root->kind != JSON_STRING)
            return expected;
        options->roots[options->root_count++] = root->text;
    }
    return NULL;
}

/* Puts the value into the options; what was expected when it does not fit. */
static const char *set_value(const struct setting *setting, struct agent_options *options,
                             const struct json_value *value)
{
    void *at = (char *)options + setting->offset;
    bool is_number = value->kind == JSON_INT && !value->is_unsigned && value->integer >= 0;
    switch (setting->kind) {
    case SETTING_ROOTS:
        return set_roots(options, value);
    case SETTING_TEXT:
        if (value->kind != JSON_STRING)
            return "text in quotes";
        *(const char **)at = value->text;
        return NULL;
    case SETTING_U64:
        if (!is_number)
            return "a whole number";
        *(uint64_t *)at = (uint64_t)value->integer;
        return NULL;
    case SETTING_I64:
        if (!is_number)
            return "a whole number";
        *(int64_t *)at = value->integer;
        return NULL;
    case SETTING_DAYS:
        if (!is_number || value->integer > 36500)
            return "a number of days";
        options->keep = AGENT_KEEP_DAYS;
        options->keep_days = (unsigned)value->integer;
        return NULL;
    case SETTING_KEEP:
        if (value->kind != JSON_TRUE && value->kind != JSON_FALSE)
            return "true, or false to delete what was acknowledged";
        options->keep = value->kind == JSON_TRUE ? AGENT_KEEP_ALL : AGENT_KEEP_UNACKNOWLEDGED;
        return NULL;
    }
    return NULL;
}

static gpufl_status apply_document(struct agent_settings *settings, const char *path, struct problem *problem)
{
    const struct json_value *root = settings->document.root;
    const char *names[setting_count + 1] = {NULL};
    for (int i = 0; i < setting_count; i++)
        names[i] = settings_table[i].name;
    if (root->kind != JSON_OBJECT)
        return problem_set(problem, GPUFL_E_INVALID, "%.300s: expected an object of settings", path);
    for (const struct json_value *member = root->child; member; member = member->next) {
        int i = 0;
        while (i < setting_count && strcmp(names[i], member->key) != 0)
            i++;
        const char *near = nearest_word(member->key, names);
        if (i == setting_count)
            return problem_set(problem, GPUFL_E_INVALID, "%.300s:%u:%u: no setting '%.60s'%s%s%s", path, member->line,
                               member->column, member->key, near ? "; did you mean '" : "", near ? near : "",
                               near ? "'?" : "");
        const char *expected = set_value(&settings_table[i], &settings->options, member);
        if (expected)
            return problem_set(problem, GPUFL_E_INVALID, "%.300s:%u:%u: %s wants %s", path, member->line,
                               member->column, member->key, expected);
    }
    return GPUFL_OK;
}

static gpufl_status read_file(struct agent_settings *settings, const char *path, struct problem *problem)
{
    struct bytes text = {0};
    struct json_error error;
    gpufl_status status = file_load(AT_FDCWD, path, CONFIG_BYTES_MAX, &text);
    if (status)
        status = problem_set(problem, GPUFL_E_INVALID, "config file %.300s: %s", path,
                             status == GPUFL_E_IO || status == GPUFL_E_NOT_FOUND ? strerror(errno)
                                                                                 : "not a plain file of at most 1 MiB");
    else if (json_parse(&settings->document, text.data, text.size, &error))
        status = problem_set(problem, GPUFL_E_INVALID, "%.300s:%u:%u: %s", path, error.line, error.column, error.text);
    else
        status = apply_document(settings, path, problem);
    bytes_free(&text);
    return status;
}

static void set_text(const char **out, const struct arguments *arguments, const char *option, const char *variable)
{
    const char *environment = variable ? environment_text(variable) : NULL;
    *out = arguments_text(arguments, option, environment ? environment : *out);
}

static gpufl_status set_keep(struct agent_options *options, const struct arguments *arguments, struct problem *problem)
{
    bool is_all = arguments_has(arguments, "keep"), is_deleted = arguments_has(arguments, "delete-after-ack"),
         has_days = arguments_has(arguments, "keep-days");
    if (is_all + is_deleted + has_days > 1)
        return problem_set(problem, GPUFL_E_INVALID, "give one of --keep, --delete-after-ack and --keep-days");
    if (has_days)
        options->keep_days = (unsigned)arguments_number(arguments, "keep-days", 0);
    if (is_all || is_deleted || has_days)
        options->keep = is_all ? AGENT_KEEP_ALL : is_deleted ? AGENT_KEEP_UNACKNOWLEDGED : AGENT_KEEP_DAYS;
    return GPUFL_OK;
}

static gpufl_status set_state_dir(struct agent_settings *settings, struct problem *problem)
{
    const char *state = environment_text("XDG_STATE_HOME"), *home = environment_text("HOME");
    if (settings->options.state_dir && *settings->options.state_dir)
        return GPUFL_OK;
    if (!state && !home)
        return problem_set(problem, GPUFL_E_INVALID, "there is no home directory; give --state DIR");
    snprintf(settings->state_dir, sizeof settings->state_dir, "%.4000s%s/gpufl/agent", state ? state : home,
             state ? "" : "/.local/state");
    settings->options.state_dir = settings->state_dir;
    return GPUFL_OK;
}

gpufl_status agent_settings_read(struct agent_settings *settings, const struct arguments *arguments,
                                 struct problem *problem)
{
    struct agent_options *options = &settings->options;
    *settings = (struct agent_settings){.options = {.struct_size = AGENT_STRUCTS_SIZE, .wake_fd = -1}};
    const char *config = arguments_text(arguments, "config", NULL);
    gpufl_status status = config ? read_file(settings, config, problem) : GPUFL_OK;
    if (status)
        return status;
    if (arguments_has(arguments, "root"))
        options->root_count = (size_t)arguments_texts(arguments, "root", options->roots, AGENT_ROOTS_MAX);
    set_text(&options->server_url, arguments, "server", "GPUFL_BACKEND_URL");
    set_text(&options->api_path, arguments, "api-path", "GPUFL_API_PATH");
    set_text(&options->api_key_file, arguments, "key-file", NULL);
    set_text(&options->state_dir, arguments, "state", NULL);
    set_text(&options->quarantine_dir, arguments, "quarantine", NULL);
    set_text(&options->listen, arguments, "listen", NULL);
    set_text(&options->remote_config, arguments, "remote-config", "GPUFL_REMOTE_CONFIG");
    set_text(&options->remote_config_dir, arguments, "remote-config-dir", NULL);
    options->api_key = environment_text("GPUFL_API_KEY");
    options->ca_file = environment_text("GPUFL_CA_FILE");
    options->spool_bytes_max = (uint64_t)arguments_number(arguments, "spool-bytes", (long)options->spool_bytes_max);
    options->rate_bytes_per_s = (uint64_t)arguments_number(arguments, "rate", (long)options->rate_bytes_per_s);
    options->interval_ms = arguments_number(arguments, "interval", (long)options->interval_ms);
    options->is_once = arguments_has(arguments, "once");
    if (!options->root_count)
        return problem_set(problem, GPUFL_E_INVALID, "nothing to watch: give --root DIR");
    if (!options->server_url)
        return problem_set(problem, GPUFL_E_INVALID, "no server: give --server URL, or set GPUFL_BACKEND_URL");
    status = set_keep(options, arguments, problem);
    return status ? status : set_state_dir(settings, problem);
}

void agent_settings_free(struct agent_settings *settings)
{
    json_free(&settings->document);
}
