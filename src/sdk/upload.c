/* SPDX-License-Identifier: Apache-2.0 */
/* gpufl_upload_logs: resolves options as for a session; libgpufl-upload.so, loaded on demand, does the work. A
 * program that never uploads never loads HTTP or TLS. */
#include "base/log.h"
#include "base/upload_library.h"
#include "sdk/options.h"
#include "sdk/public_struct.h"
#include "sdk/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool result_has_room(const gpufl_upload_result *result)
{
    return result && result->struct_size >= SIZE_THROUGH(gpufl_upload_result, message) &&
           result->struct_size <= STRUCT_SIZE_MAX;
}

/* The caller's result may be of an older header and shorter, or of a newer one and longer. */
static void result_give(gpufl_upload_result *result, const gpufl_upload_result *value)
{
    if (!result_has_room(result))
        return;
    uint32_t struct_size = result->struct_size;
    memset(result, 0, struct_size);
    memcpy(result, value, struct_size < sizeof *value ? struct_size : sizeof *value);
    result->struct_size = struct_size;
}

static gpufl_status result_set(gpufl_upload_result *result, gpufl_status status, const char *message)
{
    gpufl_upload_result value = {.success = status == GPUFL_OK};
    snprintf(value.message, sizeof value.message, "%s", message);
    result_give(result, &value);
    return status;
}

static gpufl_status options_from(struct options *options, const gpufl_upload_options *given, struct problem *problem)
{
    if (!given)
        return options_resolve(options, NULL, problem);
    if (given->struct_size < SIZE_THROUGH(gpufl_upload_options, config_file) || given->struct_size > STRUCT_SIZE_MAX)
        return problem_set(problem, GPUFL_E_INVALID, "upload: struct_size is %u; start from GPUFL_UPLOAD_OPTIONS_INIT",
                           given->struct_size);
    gpufl_options as_given = GPUFL_OPTIONS_INIT;
    as_given.backend_url = given->backend_url;
    as_given.api_key = given->api_key;
    as_given.api_path = given->api_path;
    as_given.config_file = given->config_file;
    return options_resolve(options, &as_given, problem);
}

/* Of this library; an address of the interface may be one of the program's, which has copies of the library's data. */
static const char here;

static gpufl_status run_upload(const gpufl_upload_options *given, gpufl_upload_result *result, struct problem *problem)
{
    if (options_are_disabled(NULL) || session_is_disabled())
        return result_set(result, GPUFL_OK, "gpufl is disabled; nothing was sent");
    struct options *options = calloc(1, sizeof *options);
    if (!options)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to upload");
    gpufl_upload_options resolved = GPUFL_UPLOAD_OPTIONS_INIT;
    upload_run_fn run = NULL;
    gpufl_status status = options_from(options, given, problem);
    if (status != GPUFL_OK)
        goto done;
    resolved.log_path = given && given->log_path && *given->log_path ? given->log_path : gpufl_session_dir();
    resolved.timeout_ms = given ? given->timeout_ms : 0;
    resolved.backend_url = options->backend_url;
    resolved.api_key = options->api_key;
    resolved.api_path = options->api_path;
    if (!options->enabled) {
        status = result_set(result, GPUFL_OK, "gpufl is disabled; nothing was sent");
        goto done;
    }
    if (!*resolved.log_path) {
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "there was no session to upload; name one in log_path");
        goto done;
    }
    run = upload_library_find(&here, problem);
    if (!run) {
        status = GPUFL_E_UNSUPPORTED;
        goto done;
    }
    gpufl_upload_result own = {.struct_size = sizeof own};
    status = run(&resolved, &own);
    if (status != GPUFL_OK)
        problem_set(problem, status, "%s", own.message);
    result_give(result, &own);
done:
    explicit_bzero(options->api_key, sizeof options->api_key);
    free(options);
    return status;
}

gpufl_status gpufl_upload_logs(const gpufl_upload_options *given, gpufl_upload_result *result)
{
    struct problem problem = {""};
    if (result_has_room(result))
        result->message[0] = '\0';
    gpufl_status status = run_upload(given, result, &problem);
    if (status == GPUFL_OK)
        return status;
    if (result_has_room(result) && !result->message[0])
        result_set(result, status, problem.text);
    log_message(GPUFL_LOG_WARNING, "%s", problem.text);
    return session_fail(status, &problem);
}
