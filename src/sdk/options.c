/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/options.h"

#include "base/directory.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/message_socket.h"
#include "base/remote_config.h"
#include "format/json.h"
#include "logfile/disk_space.h"
#include "sdk/public_struct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

enum option_kind {
    OPTION_TEXT,
    OPTION_SWITCH,
    OPTION_INT32,
    OPTION_INT64,
    OPTION_ENGINE,
    OPTION_BACKEND,
    OPTION_PC_MODE,
    OPTION_RANGE_MODE
};

struct option_info {
    const char *name;        /* in code and config file */
    const char *environment; /* NULL: none */
    enum option_kind kind;
    size_t offset, size; /* in struct options */
    ptrdiff_t given;     /* offset in gpufl_options; -1: not there */
    int64_t minimum, maximum;
};

#define FIELD(member) offsetof(struct options, member), sizeof(((struct options *)0)->member)
#define GIVEN(member) (ptrdiff_t) offsetof(gpufl_options, member)

static const struct option_info option_table[] = {
    {"app_name", "GPUFL_APP_NAME", OPTION_TEXT, FIELD(app_name), GIVEN(app_name), 0, 0},
    {"log_path", "GPUFL_LOG_DIR", OPTION_TEXT, FIELD(log_path), GIVEN(log_path), 0, 0},
    {"backend_url", "GPUFL_BACKEND_URL", OPTION_TEXT, FIELD(backend_url), GIVEN(backend_url), 0, 0},
    {"api_key", "GPUFL_API_KEY", OPTION_TEXT, FIELD(api_key), GIVEN(api_key), 0, 0},
    {"api_path", "GPUFL_API_PATH", OPTION_TEXT, FIELD(api_path), GIVEN(api_path), 0, 0},
    {"profiling_engine", "GPUFL_PROFILING_ENGINE", OPTION_ENGINE, FIELD(profiling_engine), GIVEN(profiling_engine), 0,
     0},
    {"backend", "GPUFL_BACKEND", OPTION_BACKEND, FIELD(backend), GIVEN(backend), 0, 0},
    {"enabled", NULL, OPTION_SWITCH, FIELD(enabled), GIVEN(enabled), 0, 0},
    {"remote_upload", "GPUFL_REMOTE_UPLOAD", OPTION_SWITCH, FIELD(remote_upload), GIVEN(remote_upload), 0, 0},
    {"enable_stack_trace", "GPUFL_ENABLE_STACK_TRACE", OPTION_SWITCH, FIELD(enable_stack_trace),
     GIVEN(enable_stack_trace), 0, 0},
    {"enable_source_collection", "GPUFL_ENABLE_SOURCE_COLLECTION", OPTION_SWITCH, FIELD(enable_source_collection),
     GIVEN(enable_source_collection), 0, 0},
    {"enable_external_correlation", "GPUFL_ENABLE_EXTERNAL_CORRELATION", OPTION_SWITCH,
     FIELD(enable_external_correlation), GIVEN(enable_external_correlation), 0, 0},
    {"enable_synchronization", "GPUFL_ENABLE_SYNCHRONIZATION", OPTION_SWITCH, FIELD(enable_synchronization),
     GIVEN(enable_synchronization), 0, 0},
    {"enable_memory_tracking", "GPUFL_ENABLE_MEMORY_TRACKING", OPTION_SWITCH, FIELD(enable_memory_tracking),
     GIVEN(enable_memory_tracking), 0, 0},
    {"enable_cuda_graphs_tracking", "GPUFL_ENABLE_CUDA_GRAPHS_TRACKING", OPTION_SWITCH,
     FIELD(enable_cuda_graphs_tracking), GIVEN(enable_cuda_graphs_tracking), 0, 0},
    {"exclusive", "GPUFL_EXCLUSIVE", OPTION_SWITCH, FIELD(exclusive), -1, 0, 0},
    {"continuous_system_sampling", "GPUFL_CONTINUOUS_SYSTEM_SAMPLING", OPTION_SWITCH, FIELD(continuous_system_sampling),
     GIVEN(continuous_system_sampling), 0, 0},
    {"flush_logs_always", "GPUFL_FLUSH_LOGS_ALWAYS", OPTION_SWITCH, FIELD(flush_logs_always), GIVEN(flush_logs_always),
     0, 0},
    {"enable_debug_output", "GPUFL_DEBUG", OPTION_SWITCH, FIELD(enable_debug_output), GIVEN(enable_debug_output), 0, 0},
    {"system_sample_rate_ms", "GPUFL_SYSTEM_SAMPLE_RATE_MS", OPTION_INT32, FIELD(system_sample_rate_ms),
     GIVEN(system_sample_rate_ms), 0, 3600000},
    {"kernel_sample_rate_ms", NULL, OPTION_INT32, FIELD(kernel_sample_rate_ms), GIVEN(kernel_sample_rate_ms), 0,
     3600000},
    {"max_log_bytes", "GPUFL_MAX_LOG_BYTES", OPTION_INT64, FIELD(max_log_bytes), GIVEN(max_log_bytes), 0, INT64_MAX},
    {"min_free_bytes", "GPUFL_MIN_FREE_BYTES", OPTION_INT64, FIELD(min_free_bytes), GIVEN(min_free_bytes), 0,
     INT64_MAX},
    {"log_rotate_bytes", "GPUFL_LOG_ROTATE_BYTES", OPTION_INT64, FIELD(log_rotate_bytes), -1, 65536, INT64_MAX},
    {"log_rotate_after_ms", "GPUFL_LOG_ROTATE_AFTER_MS", OPTION_INT64, FIELD(log_rotate_after_ms), -1, 100, INT64_MAX},
    {"start_timeout_ms", "GPUFL_START_TIMEOUT_MS", OPTION_INT32, FIELD(start_timeout_ms), -1, 100, 3600000},
    {"exit_timeout_ms", "GPUFL_EXIT_TIMEOUT_MS", OPTION_INT32, FIELD(exit_timeout_ms), -1, 100, 3600000},
    {"pc_sampling_mode", "GPUFL_PC_SAMPLING_MODE", OPTION_PC_MODE, FIELD(pc_sampling_mode), -1, 0, 0},
    {"pc_sampling_rate_hz", "GPUFL_PC_SAMPLING_RATE_HZ", OPTION_INT32, FIELD(pc_sampling_rate_hz), -1, 1, 10000000},
    {"pc_sampling_period", "GPUFL_PC_SAMPLING_PERIOD", OPTION_INT32, FIELD(pc_sampling_period), -1, 5, 31},
    {"pc_sampling_drain_ms", "GPUFL_PC_SAMPLING_DRAIN_MS", OPTION_INT32, FIELD(pc_sampling_drain_ms), -1, 1, 10000},
    {"pc_sampling_share", "GPUFL_PC_SAMPLING_SHARE", OPTION_INT32, FIELD(pc_sampling_share), -1, 1, 100},
    {"pc_sampling_cycle_ms", "GPUFL_PC_SAMPLING_CYCLE_MS", OPTION_INT32, FIELD(pc_sampling_cycle_ms), -1, 20, 3600000},
    {"sass_metrics", "GPUFL_SASS_METRICS", OPTION_TEXT, FIELD(sass_metrics), -1, 0, 0},
    {"range_metrics", "GPUFL_RANGE_METRICS", OPTION_TEXT, FIELD(range_metrics), -1, 0, 0},
    {"range_mode", "GPUFL_RANGE_MODE", OPTION_RANGE_MODE, FIELD(range_mode), -1, 0, 0},
    {"range_scopes", "GPUFL_RANGE_SCOPES", OPTION_TEXT, FIELD(range_scopes), -1, 0, 0},
    {"pm_metrics", "GPUFL_PM_METRICS", OPTION_TEXT, FIELD(pm_metrics), -1, 0, 0},
    {"pm_interval_us", "GPUFL_PM_INTERVAL_US", OPTION_INT32, FIELD(pm_interval_us), -1, 1, 1000000},
    {"deep_counting_ms", "GPUFL_DEEP_COUNTING_MS", OPTION_INT32, FIELD(deep_counting_ms), -1, 10, 3600000},
    {"deep_sampling_ms", "GPUFL_DEEP_SAMPLING_MS", OPTION_INT32, FIELD(deep_sampling_ms), -1, 10, 3600000},
    {"code_bytes_max", "GPUFL_CODE_BYTES_MAX", OPTION_INT64, FIELD(code_bytes_max), -1, 1, INT64_MAX},
    {"config_file", "GPUFL_CONFIG_FILE", OPTION_TEXT, FIELD(config_file), GIVEN(config_file), 0, 0},
};
enum { option_count = sizeof option_table / sizeof *option_table };

static const char *const engine_names[] = {"Monitor",       "Trace", "PcSampling", "SassMetrics",
                                           "RangeProfiler", "Deep",  NULL};
static const char *const backend_names[] = {"Auto", "Nvidia", "Amd", "None", NULL};
static const char *const pc_mode_names[] = {"continuous", "serialized", NULL};
static const char *const range_mode_names[] = {"auto", "scope", "kernel", NULL};

/* The default rate of continuous sampling, as with `continuous_system_sampling = true` alone. */
enum { rate_unset = -1, continuous_rate_ms = 100 };

const char *engine_name(gpufl_engine engine)
{
    return engine >= GPUFL_ENGINE_MONITOR && engine <= GPUFL_ENGINE_DEEP ? engine_names[engine - 1] : "none";
}

void options_set_defaults(struct options *options)
{
    *options = (struct options){
        .profiling_engine = GPUFL_ENGINE_MONITOR,
        .app_name = "gpufl",
        .api_path = "/api/v1",
        .enabled = true,
        .enable_source_collection = true,
        .enable_external_correlation = true,
        .enable_synchronization = true,
        .system_sample_rate_ms = rate_unset,
        .start_timeout_ms = 30000,
        .exit_timeout_ms = 3000,
        .min_free_bytes = DISK_SPACE_DEFAULT,
    };
}

static const char *words_of(const char *const *words, char *out, size_t size)
{
    size_t used = 0;
    for (; *words && used < size; words++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", *words);
    return out;
}

/* Index of the word, ignoring case, or -1 with the problem set. */
static int word_index(const char *text, const char *const *words, const char *where, struct problem *problem)
{
    for (int i = 0; words[i]; i++)
        if (!strcasecmp(text, words[i]))
            return i;
    char known[160];
    const char *nearest = nearest_word(text, words);
    problem_set(problem, GPUFL_E_INVALID, "%s: no such value '%.60s'%s%s%s; known: %s", where, text,
                nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "",
                words_of(words, known, sizeof known));
    return -1;
}

static gpufl_status set_text(const struct option_info *info, struct options *options, const char *text,
                             const char *where, struct problem *problem)
{
    size_t size = strlen(text);
    if (size >= info->size)
        return problem_set(problem, GPUFL_E_INVALID, "%s: %s is longer than %zu bytes", where, info->name,
                           info->size - 1);
    memcpy((char *)options + info->offset, text, size + 1);
    return GPUFL_OK;
}

static gpufl_status set_number(const struct option_info *info, struct options *options, int64_t value,
                               const char *where, struct problem *problem)
{
    if (value < info->minimum || value > info->maximum)
        return problem_set(problem, GPUFL_E_INVALID, "%s: %s must be %lld to %lld, not %lld", where, info->name,
                           (long long)info->minimum, (long long)info->maximum, (long long)value);
    if (info->kind == OPTION_INT32)
        *(int32_t *)(void *)((char *)options + info->offset) = (int32_t)value;
    else
        *(int64_t *)(void *)((char *)options + info->offset) = value;
    return GPUFL_OK;
}

static gpufl_status set_word(const struct option_info *info, struct options *options, const char *text,
                             const char *where, struct problem *problem)
{
    static const char *const *const words[] = {[OPTION_ENGINE] = engine_names,
                                               [OPTION_BACKEND] = backend_names,
                                               [OPTION_PC_MODE] = pc_mode_names,
                                               [OPTION_RANGE_MODE] = range_mode_names};
    int index = word_index(text, words[info->kind], where, problem);
    if (index < 0)
        return GPUFL_E_INVALID;
    if (info->kind == OPTION_ENGINE)
        options->profiling_engine = (gpufl_engine)(index + 1);
    else if (info->kind == OPTION_BACKEND)
        options->backend = (gpufl_backend)index;
    else
        *(int32_t *)(void *)((char *)options + info->offset) = index;
    return GPUFL_OK;
}

static gpufl_status set_from_environment(const struct option_info *info, struct options *options, const char *text,
                                         struct problem *problem)
{
    switch (info->kind) {
    case OPTION_TEXT:
        return set_text(info, options, text, info->environment, problem);
    case OPTION_SWITCH:
        if (!word_is_true(text) && !word_is_false(text))
            return problem_set(problem, GPUFL_E_INVALID,
                               "%s: '%.60s' is neither on (1, true, yes, on) nor off (0, false, no, off)",
                               info->environment, text);
        *(bool *)((char *)options + info->offset) = word_is_true(text);
        return GPUFL_OK;
    case OPTION_ENGINE:
    case OPTION_BACKEND:
    case OPTION_PC_MODE:
    case OPTION_RANGE_MODE:
        return set_word(info, options, text, info->environment, problem);
    case OPTION_INT32:
    case OPTION_INT64:
        break;
    }
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end)
        return problem_set(problem, GPUFL_E_INVALID, "%s: '%.60s' is not a whole number", info->environment, text);
    return set_number(info, options, value, info->environment, problem);
}

static gpufl_status set_from_json(const struct option_info *info, struct options *options,
                                  const struct json_value *value, const char *where, struct problem *problem)
{
    const char *expected;
    switch (info->kind) {
    case OPTION_SWITCH:
        if (value->kind == JSON_TRUE || value->kind == JSON_FALSE) {
            *(bool *)((char *)options + info->offset) = value->kind == JSON_TRUE;
            return GPUFL_OK;
        }
        expected = "true or false";
        break;
    case OPTION_INT32:
    case OPTION_INT64:
        if (value->kind == JSON_INT && !value->is_unsigned)
            return set_number(info, options, value->integer, where, problem);
        expected = "a whole number";
        break;
    default:
        if (value->kind == JSON_STRING && strlen(value->text) == value->text_size)
            return info->kind == OPTION_TEXT ? set_text(info, options, value->text, where, problem)
                                             : set_word(info, options, value->text, where, problem);
        expected = "text in quotes";
        break;
    }
    return problem_set(problem, GPUFL_E_INVALID, "%s: %s requires %s", where, info->name, expected);
}

static gpufl_status apply_json(struct options *options, const char *text, size_t size, const char *file_name,
                               bool is_remote, struct problem *problem)
{
    struct json_document document;
    struct json_error error;
    if (json_parse(&document, text, size, &error) != GPUFL_OK)
        return problem_set(problem, GPUFL_E_INVALID, "%.200s:%u:%u: %s", file_name, error.line, error.column,
                           error.text);
    gpufl_status status = GPUFL_OK;
    if (document.root->kind != JSON_OBJECT)
        status = problem_set(problem, GPUFL_E_INVALID, "%.200s:%u:%u: expected an object of options", file_name,
                             document.root->line, document.root->column);
    const char *names[option_count + 1] = {NULL};
    for (int i = 0; i < option_count; i++)
        names[i] = option_table[i].name;
    const struct json_value *member = status == GPUFL_OK ? document.root->child : NULL;
    for (; member && status == GPUFL_OK; member = member->next) {
        char where[256];
        snprintf(where, sizeof where, "%.200s:%u:%u", file_name, member->line, member->column);
        const struct option_info *info = NULL;
        for (int i = 0; i < option_count; i++)
            if (!strcmp(option_table[i].name, member->key))
                info = &option_table[i];
        if (info && is_remote && !remote_config_may_set(info->name)) {
            status = problem_set(problem, GPUFL_E_INVALID, "%s: '%s' cannot be set by a remote configuration", where,
                                 info->name);
            continue;
        }
        if (info) {
            status = set_from_json(info, options, member, where, problem);
            continue;
        }
        const char *nearest = nearest_word(member->key, names);
        status = problem_set(problem, GPUFL_E_INVALID, "%s: no option '%.60s'%s%s%s", where, member->key,
                             nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    }
    json_free(&document);
    return status;
}

gpufl_status options_apply_json(struct options *options, const char *text, size_t size, const char *file_name,
                                struct problem *problem)
{
    return apply_json(options, text, size, file_name, false, problem);
}

static gpufl_status apply_file(struct options *options, const char *path, bool is_remote, struct problem *problem)
{
    enum { file_bytes_max = 1 << 20 };
    struct bytes text = {0};
    gpufl_status status = file_load(AT_FDCWD, path, file_bytes_max, &text);
    if (status == GPUFL_OK)
        status = apply_json(options, text.data, text.size, path, is_remote, problem);
    else if (status == GPUFL_E_INVALID || status == GPUFL_E_LIMIT)
        status = problem_set(problem, GPUFL_E_INVALID, "config file %.300s: not a plain file of at most 1 MiB", path);
    else
        status = problem_set(problem, GPUFL_E_INVALID, "config file %.300s: %s", path,
                             status == GPUFL_E_NO_MEMORY ? "no memory" : strerror(errno));
    bytes_free(&text);
    return status;
}

/* A remote configuration never stops a program: one with an error is reported and ignored entirely. */
static void apply_remote(struct options *options, const char *name)
{
    char path[PATH_MAX + REMOTE_CONFIG_NAME_MAX + 8];
    if (!remote_config_name_is_valid(name)) {
        problem_set(&options->remote_problem, GPUFL_E_INVALID, "GPUFL_REMOTE_CONFIG: invalid name '%.80s'", name);
        return;
    }
    remote_config_path(name, path, sizeof path);
    struct options *changed = malloc(sizeof *changed);
    struct problem problem = {"no memory"};
    if (changed)
        *changed = *options;
    if (changed && apply_file(changed, path, true, &problem) == GPUFL_OK)
        *options = *changed;
    else
        problem_set(&options->remote_problem, GPUFL_E_INVALID, "remote configuration '%s' is not used: %.400s", name,
                    problem.text);
    free(changed);
}

static bool list_has(const char *names, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = names; (at = strstr(at, name)); at += size)
        if ((at == names || at[-1] == ',') && (at[size] == ',' || !at[size]))
            return true;
    return false;
}

bool options_are_disabled(const gpufl_options *given)
{
    if (environment_is_disabled(NULL))
        return true;
    return given && given->struct_size >= SIZE_THROUGH(gpufl_options, enabled) && given->enabled == GPUFL_OFF;
}

void options_warn_disabled(const gpufl_options *given)
{
    const char *invalid;
    if (!environment_is_disabled(&invalid) || !invalid)
        return;
    bool has_listener = given && given->struct_size >= SIZE_THROUGH(gpufl_options, log_user);
    log_configure(has_listener ? given->log_fn : NULL, has_listener ? given->log_user : NULL, false,
                  message_socket_find());
    log_message(GPUFL_LOG_WARNING,
                "not recording: GPUFL_DISABLED: '%.60s' is neither on (1, true, yes, on) nor off (0, false, no, off), "
                "and counts as on",
                invalid);
    log_print_held();
}

static gpufl_status apply_given(struct options *options, const gpufl_options *given, struct problem *problem)
{
    for (int i = 0; i < option_count; i++) {
        const struct option_info *info = &option_table[i];
        if (info->given < 0)
            continue;
        const char *at = (const char *)given + info->given;
        gpufl_status status = GPUFL_OK;
        switch (info->kind) {
        case OPTION_TEXT: {
            const char *text;
            memcpy(&text, at, sizeof text);
            if (text && *text)
                status = set_text(info, options, text, "options", problem);
            break;
        }
        case OPTION_SWITCH: {
            gpufl_switch value;
            memcpy(&value, at, sizeof value);
            if (value == GPUFL_ON || value == GPUFL_OFF)
                *(bool *)((char *)options + info->offset) = value == GPUFL_ON;
            else if (value != GPUFL_UNSET)
                status = problem_set(problem, GPUFL_E_INVALID, "options: %s is not a gpufl_switch value (%d)",
                                     info->name, (int)value);
            break;
        }
        case OPTION_INT32: {
            int32_t value;
            memcpy(&value, at, sizeof value);
            if (value)
                status = set_number(info, options, value < 0 ? 0 : value, "options", problem);
            break;
        }
        case OPTION_INT64: {
            int64_t value;
            memcpy(&value, at, sizeof value);
            if (value)
                status = set_number(info, options, value < 0 ? 0 : value, "options", problem);
            break;
        }
        default:
            break;
        }
        if (status != GPUFL_OK)
            return status;
    }
    if (given->profiling_engine < GPUFL_ENGINE_DEFAULT || given->profiling_engine > GPUFL_ENGINE_DEEP)
        return problem_set(problem, GPUFL_E_INVALID,
                           "options: unknown engine %d; valid are GPUFL_ENGINE_MONITOR to GPUFL_ENGINE_DEEP",
                           (int)given->profiling_engine);
    if (given->backend < GPUFL_BACKEND_AUTO || given->backend > GPUFL_BACKEND_NONE)
        return problem_set(problem, GPUFL_E_INVALID, "options: unknown backend %d", (int)given->backend);
    if (given->profiling_engine != GPUFL_ENGINE_DEFAULT)
        options->profiling_engine = given->profiling_engine;
    if (given->backend != GPUFL_BACKEND_AUTO)
        options->backend = given->backend;
    return GPUFL_OK;
}

/* A shorter struct of an older caller is padded with zeros; a longer one of a newer caller is accepted if it uses no
 * unknown field. */
static gpufl_status copy_given(gpufl_options *copy, const gpufl_options *given, struct problem *problem)
{
    size_t size = given->struct_size;
    memset(copy, 0, sizeof *copy);
    if (size < SIZE_THROUGH(gpufl_options, log_user) || size > STRUCT_SIZE_MAX)
        return problem_set(problem, GPUFL_E_INVALID, "options: struct_size is %zu; start from GPUFL_OPTIONS_INIT",
                           size);
    for (size_t i = sizeof *copy; i < size; i++)
        if (((const unsigned char *)given)[i])
            return problem_set(problem, GPUFL_E_VERSION, "options: a field of a newer gpufl is set; this library is %s",
                               GPUFL_VERSION_STRING);
    memcpy(copy, given, size < sizeof *copy ? size : sizeof *copy);
    return GPUFL_OK;
}

/* The command line of `gpufl trace` overrides the program's own options. */
static gpufl_status apply_command_line(struct options *options, struct problem *problem)
{
    const char *names = getenv("GPUFL_TRACE_GIVEN");
    gpufl_status status = GPUFL_OK;
    for (int i = 0; names && i < option_count && status == GPUFL_OK; i++) {
        const struct option_info *info = &option_table[i];
        const char *text = info->environment && list_has(names, info->name) ? getenv(info->environment) : NULL;
        if (text && *text)
            status = set_from_environment(info, options, text, problem);
    }
    return status;
}

/* The app's name; .gpufl is appended if a file of that name (often the program itself) exists. */
static void default_log_path(struct options *options)
{
    struct stat state;
    memcpy(options->log_path, options->app_name, sizeof options->app_name);
    if (stat(options->log_path, &state) == 0 && !S_ISDIR(state.st_mode))
        snprintf(options->log_path, sizeof options->log_path, "%s.gpufl", options->app_name);
}

gpufl_status options_resolve(struct options *options, const gpufl_options *given, struct problem *problem)
{
    gpufl_options copy = GPUFL_OPTIONS_INIT;
    options_set_defaults(options);
    gpufl_status status = given ? copy_given(&copy, given, problem) : GPUFL_OK;
    if (status != GPUFL_OK)
        return status;
    options->log_fn = copy.log_fn; /* receives errors in options, too */
    options->log_user = copy.log_user;
    const char *config_file = copy.config_file && *copy.config_file ? copy.config_file : getenv("GPUFL_CONFIG_FILE");
    if (config_file && *config_file)
        status = apply_file(options, config_file, false, problem);
    const char *remote = getenv("GPUFL_REMOTE_CONFIG");
    if (status == GPUFL_OK && remote && *remote)
        apply_remote(options, remote);
    for (int i = 0; i < option_count && status == GPUFL_OK; i++) {
        const char *text = option_table[i].environment ? getenv(option_table[i].environment) : NULL;
        if (text && *text)
            status = set_from_environment(&option_table[i], options, text, problem);
    }
    if (status == GPUFL_OK)
        status = apply_given(options, &copy, problem);
    if (status == GPUFL_OK)
        status = apply_command_line(options, problem);
    if (options->system_sample_rate_ms == rate_unset)
        options->system_sample_rate_ms = options->continuous_system_sampling ? continuous_rate_ms : 0;
    if (status == GPUFL_OK && !options->log_path[0])
        default_log_path(options);
    return status;
}
