/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/upload.h"

#include "analysis/message.h"
#include "base/environment.h"
#include "base/key_file.h"
#include "base/upload_library.h"
#include "cli/command.h"
#include "cli/session_operand.h"
#include "cli/terminal.h"
#include "format/json.h"
#include "logfile/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char module_mark[] = "an address in this program";

static const char *environment_text(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static void print_json(const gpufl_upload_result *result)
{
    struct bytes out = {0};
    bytes_append_char(&out, '{');
    json_key(&out, "success");
    json_bool(&out, result->success);
    json_key(&out, "http_status");
    json_int(&out, result->http_status);
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"sessions", result->sessions},
                   {"files_uploaded", result->files_uploaded},
                   {"files_already_sent", result->files_already_sent},
                   {"files_skipped", result->files_skipped},
                   {"events_uploaded", result->events_uploaded},
                   {"bytes_sent", result->bytes_sent}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_key(&out, numbers[i].name);
        json_uint(&out, numbers[i].value);
    }
    json_key(&out, "message");
    json_text(&out, result->message);
    bytes_append_text(&out, "}\n");
    fputs(bytes_text(&out), stdout);
    bytes_free(&out);
}

static int exit_code_of(gpufl_status status, const gpufl_upload_result *result)
{
    if (status == GPUFL_OK)
        return EXIT_GOOD;
    if (status == GPUFL_E_INVALID)
        return EXIT_USAGE;
    /* Something was not sent; or there was nobody to send it to. */
    return status == GPUFL_E_DAMAGED || (status == GPUFL_E_IO && result->http_status) ? EXIT_ANSWER_NO
                                                                                      : EXIT_ENVIRONMENT;
}

/* Bytes to read below the directory, for the progress line. */
static uint64_t bytes_below(const char *dir)
{
    struct session_list list;
    uint64_t bytes = directory_bytes(dir);
    if (session_list_find(&list, dir, NULL) != GPUFL_OK)
        return bytes;
    for (size_t i = 0; i < list.count; i++)
        bytes += directory_bytes(list.paths[i]);
    session_list_free(&list);
    return bytes;
}

static gpufl_status run(const gpufl_upload_options *options, gpufl_upload_result *result)
{
    *result = (gpufl_upload_result){.struct_size = sizeof *result};
    struct problem problem = {""};
    upload_run_fn upload = upload_library_find(module_mark, &problem);
    if (!upload) {
        snprintf(result->message, sizeof result->message, "%s", problem.text);
        return GPUFL_E_UNSUPPORTED;
    }
    struct progress *progress = progress_start("uploading", bytes_below(options->log_path));
    gpufl_status status = upload(options, result);
    progress_finish(progress);
    return status;
}

bool upload_address_check(const char *command, const char *option, const char *url, const char *api_path)
{
    struct problem problem = {""};
    upload_check_fn check = upload_library_find_check(module_mark, &problem);
    if (!check || check(url, api_path, &problem) != GPUFL_E_INVALID)
        return true;
    command_error(command, "--%s: %s", option, problem.text);
    return false;
}

void upload_after_trace(const char *dir, const char *url, bool is_quiet)
{
    gpufl_upload_options options = GPUFL_UPLOAD_OPTIONS_INIT;
    gpufl_upload_result result;
    options.log_path = dir;
    options.backend_url = url;
    options.api_key = getenv("GPUFL_API_KEY");
    options.api_path = getenv("GPUFL_API_PATH");
    struct bytes words = {0};
    shell_word_append(&words, dir);
    bytes_append_text(&words, " --server ");
    shell_word_append(&words, url);
    if (run(&options, &result) != GPUFL_OK)
        message_print(stderr, "gpufl: not uploaded: %s; to try again: gpufl upload %s", result.message,
                      bytes_text(&words));
    else if (!is_quiet)
        message_print(stderr, "gpufl: uploaded: %s", result.message);
    bytes_free(&words);
}

int command_upload(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("upload", argc, argv, &arguments);
    if (code >= 0)
        return code;
    char key[KEY_FILE_BYTES_MAX] = "";
    struct problem problem = {""};
    const char *key_file = arguments_text(&arguments, "key-file", NULL);
    gpufl_upload_options options = GPUFL_UPLOAD_OPTIONS_INIT;
    gpufl_upload_result result = {0};
    options.backend_url = arguments_text(&arguments, "server", environment_text("GPUFL_BACKEND_URL"));
    options.api_path = arguments_text(&arguments, "api-path", environment_text("GPUFL_API_PATH"));
    options.api_key = key_file ? key : environment_text("GPUFL_API_KEY");
    options.timeout_ms = (int32_t)arguments_number(&arguments, "timeout-ms", 0);
    gpufl_status status = GPUFL_OK;
    if (environment_is_disabled(NULL)) {
        result.success = 1;
        snprintf(result.message, sizeof result.message, "GPUFL_DISABLED is set; nothing was sent");
    } else if (!options.backend_url) {
        command_error("upload", "no server: give --server URL, or set GPUFL_BACKEND_URL");
        return EXIT_USAGE;
    } else {
        struct session_choice choice;
        options.log_path = session_operand_directory("upload", arguments.operands[0], &choice);
        if (!options.log_path)
            return EXIT_ENVIRONMENT;
        if (key_file && key_file_read(key_file, key, sizeof key, &problem) != GPUFL_OK) {
            command_error("upload", "%s", problem.text);
            return EXIT_ENVIRONMENT;
        }
        terminal_on_interrupt("\ngpufl upload: interrupted; run it again to send the rest\n");
        status = run(&options, &result);
        explicit_bzero(key, sizeof key);
    }
    if (arguments_has(&arguments, "json"))
        print_json(&result);
    else if (status == GPUFL_OK)
        printf("%s\n", result.message);
    if (status != GPUFL_OK)
        command_error("upload", "%s", result.message);
    return exit_code_of(status, &result);
}
