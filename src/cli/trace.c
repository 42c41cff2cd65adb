/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace.h"

#include "analysis/message.h"
#include "base/environment.h"
#include "base/intern.h"
#include "cli/byte_size.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/disassemble.h"
#include "cli/engine_settings.h"
#include "cli/installation.h"
#include "cli/preloading.h"
#include "cli/recording.h"
#include "cli/remote_config.h"
#include "cli/upload.h"
#include "cli/view.h"
#include "driver/cuda.h"
#include "driver/rocprofiler_lookup.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

struct trace_messages {
    const char *command;
    struct intern seen; /* each distinct message is printed once */
    bool is_quiet, has_error;
};

enum { max_size_least = 4 << 20 };

static void print_message(void *user, const char *level, const char *text)
{
    struct trace_messages *messages = user;
    bool is_error = strcmp(level, "error") == 0;
    messages->has_error |= is_error;
    if (!is_error && (messages->is_quiet || strcmp(level, "warning") != 0))
        return;
    bool is_new = false;
    if (intern_id(&messages->seen, text, strlen(text), &is_new) && is_new)
        command_error(messages->command, "%s", text);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* python3.11 -u train.py is known to its user as train.py. */
static const char *program_name(char **argv)
{
    const char *name = base_name(argv[0]);
    if (strncmp(name, "python", 6) != 0 || strspn(name + 6, "0123456789.") != strlen(name + 6))
        return name;
    for (char **argument = argv + 1; *argument; argument++) {
        if (strcmp(*argument, "-c") == 0)
            return name;
        if (strcmp(*argument, "-m") == 0)
            return argument[1] ? argument[1] : name;
        if (strcmp(*argument, "-W") == 0 || strcmp(*argument, "-X") == 0) {
            if (!*++argument)
                return name;
        } else if (**argument != '-') {
            return base_name(*argument);
        }
    }
    return name;
}

/* ./<name> without .py; with .gpufl behind it where a file of that name (often the program itself) is in the way. */
static void default_directory(char *out, size_t size, const char *name)
{
    size_t length = strlen(name);
    if (length > 3 && strcmp(name + length - 3, ".py") == 0)
        length -= 3;
    snprintf(out, size, "./%.*s", (int)length, name);
    struct stat state;
    if (stat(out, &state) == 0 && !S_ISDIR(state.st_mode))
        snprintf(out, size, "./%.*s.gpufl", (int)length, name);
}

static bool has_amd_driver(void)
{
    return access("/dev/kfd", F_OK) == 0;
}

/* A flag on the command line overrides the environment; without the flag, the environment decides. */
static bool set_switch(struct child_options *child, const char *variable, bool is_given, const char *value)
{
    return !is_given || child_set(child, variable, value, false);
}

/* What the command line says; else what the environment or a remote configuration says; else our own default. */
static bool set_default(struct child_options *child, const char *variable, const char *option, const char *given,
                        const char *fallback)
{
    return (!given && remote_config_sets(option)) || child_set(child, variable, given ? given : fallback, !given);
}

/* rocprofiler takes several tools: the user's own stay, before ours. The last name of a list counts only with a colon
 * behind it. Where HIP would not find rocprofiler-sdk, a tool would make it abort the program: none is added. */
static bool set_rocprofiler_tools(struct child_options *child, const struct trace_request *request,
                                  const char *recorder)
{
    struct rocprofiler_lookup lookup = {""};
    struct problem problem = {""};
    if (rocprofiler_lookup_probe(&lookup, &problem) != GPUFL_OK) {
        if (has_amd_driver() && !request->is_quiet)
            command_error(request->command, "HIP programs are not recorded: %s", problem.text);
        return true;
    }
    if (lookup.library[0] && !child_set(child, ROCPROFILER_REGISTER_LIBRARY, lookup.library, false))
        return false;
    const char *own = getenv("ROCP_TOOL_LIBRARIES");
    char list[CHILD_VALUE_BYTES];
    if (!own || !*own || strcmp(own, recorder) == 0)
        return child_set(child, "ROCP_TOOL_LIBRARIES", recorder, false);
    size_t size = strlen(own);
    int length = snprintf(list, sizeof list, "%s%s%s:", own, own[size - 1] == ':' ? "" : ":", recorder);
    return length > 0 && (size_t)length < sizeof list && child_set(child, "ROCP_TOOL_LIBRARIES", list, false);
}

/* Lists the settings given on the command line: they override those in the code of a program that starts its own session. */
static bool set_given(struct child_options *child, const struct trace_request *request)
{
    char names[64];
    const char *const given[] = {request->engine ? "profiling_engine" : NULL, request->dir ? "log_path" : NULL,
                                 request->max_bytes ? "max_log_bytes" : NULL};
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i])
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? "," : "", given[i]);
    return !*names || child_set(child, "GPUFL_TRACE_GIVEN", names, false);
}

static gpufl_status set_environment(struct child_options *child, const struct trace_request *request,
                                    const char *recorder, const char *name, const char *dir, struct problem *problem)
{
    char absolute[PATH_MAX], sample_ms[24], max_bytes[24];
    if (!realpath(dir, absolute))
        return problem_set(problem, GPUFL_E_IO, "cannot record into '%s'", dir);
    snprintf(sample_ms, sizeof sample_ms, "%ld", request->sample_ms < 0 ? 100 : request->sample_ms);
    snprintf(max_bytes, sizeof max_bytes, "%lld", (long long)request->max_bytes);
    bool fits =
        set_rocprofiler_tools(child, request, recorder) && child_set(child, "CUDA_INJECTION64_PATH", recorder, false) &&
        child_set(child, "NVTX_INJECTION64_PATH", recorder, false) && child_set(child, "GPUFL_INJECT", "1", false) &&
        set_given(child, request) && child_set(child, "GPUFL_APP_NAME", name, !request->name) &&
        child_set(child, "GPUFL_LOG_DIR", absolute, false) &&
        set_default(child, "GPUFL_PROFILING_ENGINE", "profiling_engine", request->engine, "Trace") &&
        set_default(child, "GPUFL_SYSTEM_SAMPLE_RATE_MS", "system_sample_rate_ms",
                    request->sample_ms < 0 ? NULL : sample_ms, sample_ms) &&
        set_default(child, "GPUFL_CONTINUOUS_SYSTEM_SAMPLING", "continuous_system_sampling",
                    request->sample_ms < 0 ? NULL : "1", "1") &&
        preloading_set(child, recorder, request->is_exclusive) &&
        (!request->max_bytes || child_set(child, "GPUFL_MAX_LOG_BYTES", max_bytes, false)) &&
        set_switch(child, "GPUFL_ENABLE_STACK_TRACE", request->has_stacks, "1") &&
        set_switch(child, "GPUFL_ENABLE_MEMORY_TRACKING", request->has_memory, "1") &&
        set_switch(child, "GPUFL_ENABLE_CUDA_GRAPHS_TRACKING", request->has_graphs, "1") &&
        set_switch(child, "GPUFL_ENABLE_SYNCHRONIZATION", request->has_no_sync, "0") &&
        engine_settings_apply(request->settings, child);
    if (!fits)
        return problem_set(problem, GPUFL_E_LIMIT,
                           "cannot record into '%s': its path, the name or a setting is too long", dir);
    return GPUFL_OK;
}

static void warn_of_other_injection(const struct trace_request *request, const char *recorder)
{
    static const char *const variables[] = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};
    for (size_t i = 0; i < 2 && !request->is_quiet; i++) {
        const char *other = getenv(variables[i]);
        if (other && *other && strcmp(other, recorder) != 0)
            command_error(request->command, "%s was already set, to '%s'\n  replaced by gpufl's recorder for this run",
                          variables[i], other);
    }
}

static void explain_nothing_recorded(const struct trace_messages *messages, const struct recording *recording,
                                     const struct child_result *result)
{
    if (*recording->begun) {
        message_print(stderr, "gpufl: %s is still being written: nothing is in it yet", recording->begun);
        return;
    }
    struct cuda *cuda;
    struct problem problem = {""};
    const char *reason = "the program never initialized CUDA; if it should have, see `gpufl doctor`";
    if (environment_is_disabled(NULL))
        reason = "GPUFL_DISABLED is set";
    else if (messages->has_error)
        reason = "see the error above";
    else if (cuda_load(&cuda, true, &problem) != GPUFL_OK)
        reason =
            has_amd_driver() ? "the program never initialized HIP, or rocprofiler-sdk is not installed" : problem.text;
    else if (result->has_left)
        reason = "what the program started still runs, and may do some yet";
    message_print(stderr, "gpufl: no GPU work was recorded: %s", reason);
}

static int exit_code_of(gpufl_status status, const struct child_result *result)
{
    if (status == GPUFL_E_NOT_FOUND)
        return EXIT_NOT_FOUND;
    if (status == GPUFL_E_PERMISSION)
        return EXIT_NOT_EXECUTABLE;
    if (status != GPUFL_OK)
        return EXIT_ENVIRONMENT;
    return result->signal ? EXIT_SIGNAL_BASE + result->signal : result->exit_code;
}

/* Fills recording and the child's environment; false when the program has to run unrecorded, which has been said. */
static bool prepare(const struct trace_request *request, const char *recorder, const char *name, const char *dir,
                    struct child_options *child, struct recording *recording)
{
    /* A program that is not there must fail as itself: its directory could bear the name that it was called by. */
    bool is_missing = strchr(request->argv[0], '/') && access(request->argv[0], F_OK) != 0;
    if (environment_is_disabled(NULL) || is_missing)
        return false;
    struct problem problem = {""};
    gpufl_status status = recording_prepare(recording, dir, &problem);
    if (status == GPUFL_OK)
        status = set_environment(child, request, recorder, name, dir, &problem);
    if (status == GPUFL_OK) {
        warn_of_other_injection(request, recorder);
        return true;
    }
    child->variable_count = 0;
    command_error(request->command,
                  "%s\n  the program runs without being recorded\n"
                  "  to record it, choose another directory with -o DIR",
                  problem.text);
    return false;
}

/* Whatever the network does, the program has ended and its status stands. */
static void upload_recording(const struct trace_request *request, const struct recording *recording)
{
    for (size_t i = 0; request->upload_url && i < recording->found.count; i++)
        upload_after_trace(recording->found.paths[i], request->upload_url, request->is_quiet);
}

int trace_run(const struct trace_request *request, char *session_dir)
{
    if (session_dir)
        session_dir[0] = '\0';
    char recorder[PATH_MAX], own_dir[512];
    if (!installation_find_recorder(recorder)) {
        command_error(request->command, "libgpufl_inject.so is not beside this program, nor in ../lib\n"
                                        "  install gpufl again, or name the file in GPUFL_INJECT_LIB");
        return EXIT_ENVIRONMENT;
    }
    const char *name = request->name ? request->name : program_name(request->argv);
    const char *dir = request->dir ? request->dir : getenv("GPUFL_LOG_DIR");
    if (!dir || !*dir) {
        default_directory(own_dir, sizeof own_dir, name);
        dir = own_dir;
    }
    struct trace_messages messages = {
        .command = request->command, .seen = {.text_bytes_max = 65536}, .is_quiet = request->is_quiet};
    struct child_options child = {.argv = request->argv, .on_message = print_message, .user = &messages};
    struct recording recording = {0};
    remote_config_refresh(request->command, request->is_quiet);
    bool is_recording = prepare(request, recorder, name, dir, &child, &recording);

    struct child_result result = {0};
    struct problem problem = {""};
    gpufl_status status = child_run(&child, &result, &problem);
    if (request->result)
        *request->result = result;
    if (status != GPUFL_OK) {
        command_error(request->command, "%s", problem.text);
    } else if (is_recording) {
        recording_collect(&recording, &result);
        if (!request->is_quiet)
            recording_print(&recording);
        if (!request->has_no_disassembly)
            disassemble_after_trace(&recording.found, request->is_quiet);
        if (session_dir && recording.found.count)
            snprintf(session_dir, PATH_MAX, "%s", recording.found.paths[0]);
    }
    upload_recording(request, &recording);
    if (status == GPUFL_OK && !recording.found.count && !request->is_quiet &&
        (is_recording || environment_is_disabled(NULL)))
        explain_nothing_recorded(&messages, &recording, &result);
    recording_free(&recording);
    intern_free(&messages.seen);
    return exit_code_of(status, &result);
}

int command_trace(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("trace", argc, argv, &arguments);
    if (code >= 0)
        return code;
    struct trace_request request = {
        .command = "trace",
        .argv = arguments.rest,
        .settings = &arguments,
        .engine = arguments_text(&arguments, "engine", NULL),
        .name = arguments_text(&arguments, "name", NULL),
        .dir = arguments_text(&arguments, "output", NULL),
        .sample_ms = arguments_number(&arguments, "sample-ms", -1),
        .upload_url = arguments_text(&arguments, "upload", NULL),
        .has_stacks = arguments_has(&arguments, "stacks"),
        .has_memory = arguments_has(&arguments, "memory"),
        .has_graphs = arguments_has(&arguments, "graphs"),
        .has_no_sync = arguments_has(&arguments, "no-sync"),
        .has_no_disassembly = arguments_has(&arguments, "no-disassemble"),
        .is_quiet = arguments_has(&arguments, "quiet"),
        .is_exclusive = arguments_has(&arguments, "exclusive"),
    };
    struct problem problem = {""};
    const char *max_size = arguments_text(&arguments, "max-size", NULL);
    if (max_size && (!byte_size_parse(max_size, &request.max_bytes) || request.max_bytes < max_size_least)) {
        command_error("trace", "--max-size: '%s' is not a size of at least 4M, such as 500M or 2G", max_size);
        return EXIT_USAGE;
    }
    if (engine_settings_check(&arguments, request.engine, &problem) != GPUFL_OK) {
        command_error("trace", "%s", problem.text);
        return EXIT_USAGE;
    }
    if (request.upload_url && !upload_address_check("trace", "upload", request.upload_url, getenv("GPUFL_API_PATH")))
        return EXIT_USAGE;
    char session[PATH_MAX];
    code = trace_run(&request, session);
    if (arguments_has(&arguments, "view") && session[0]) {
        /* What becomes of the view is printed; the status is the program's. */
        const struct view_request view = {.command = "trace", .session = session};
        (void)view_session(&view);
    }
    return code;
}
