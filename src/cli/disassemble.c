/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/disassemble.h"

#include "analysis/code_listings.h"
#include "analysis/message.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/session_operand.h"
#include "cli/terminal.h"
#include "code/disassembler.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { session_limit_ms = 60000, trace_limit_ms = 10000 };

static volatile sig_atomic_t is_interrupted;
static int interrupt_fd = -1; /* readable from Ctrl-C on */

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    int error = errno;
    is_interrupted = 1;
    (void)eventfd_write(interrupt_fd, 1);
    errno = error;
}

/* From now on Ctrl-C ends disassemblers instead of this program, unless it is ignored. */
static void interrupts_take(struct sigaction *before)
{
    is_interrupted = 0;
    interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, NULL, before);
    if (before->sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
}

static void interrupts_give_back(const struct sigaction *before)
{
    sigaction(SIGINT, before, NULL);
    if (interrupt_fd >= 0)
        close(interrupt_fd);
    interrupt_fd = -1;
}

static const char *functions(size_t count)
{
    return count == 1 ? "function" : "functions";
}

static void progress_write(char text[128], size_t done, size_t total)
{
    int size = snprintf(text, 128, "disassembling");
    if (total)
        size += snprintf(text + size, 128 - (size_t)size, " · %zu of %zu %s", done, total, functions(total));
    snprintf(text + size, 128 - (size_t)size, " · Ctrl-C skips it");
}

static void on_progress(void *user, size_t done, size_t total)
{
    char text[128];
    progress_write(text, done, total);
    progress_say(user, text, total ? (double)done / (double)total : 0);
}

/* code_listings_add with a progress line, and until Ctrl-C. */
static gpufl_status listings_add(const char *dir, struct code_listings_options options, bool is_quiet,
                                 struct code_listings *result, struct problem *problem)
{
    char text[128];
    progress_write(text, 0, 0);
    struct progress *progress = is_quiet ? NULL : progress_start(text, 0);
    if (interrupt_fd >= 0)
        options.stop_fd = &interrupt_fd;
    options.on_progress = on_progress;
    options.user = progress;
    gpufl_status status = code_listings_add(dir, &options, result, problem);
    progress_finish(progress);
    return status;
}

static void print_result(const char *dir, const struct code_listings *result)
{
    struct bytes line = {0};
    if (result->added)
        bytes_append_format(&line, "disassembled: %s, %zu %s, %.1f kB", dir, result->added, functions(result->added),
                            (double)result->bytes / 1e3);
    else
        bytes_append_format(&line, "nothing to disassemble: %s", dir);
    if (result->present)
        bytes_append_format(&line, ", %zu already disassembled", result->present);
    if (result->without_code)
        bytes_append_format(&line, ", %zu without code in the log", result->without_code);
    message_print(stdout, "%s", bytes_text(&line));
    bytes_free(&line);
}

static size_t functions_missing(const struct code_listings *result)
{
    return result->failed + result->left + result->without_tool;
}

static int disassemble_one(const char *dir, const struct code_listings_options *options)
{
    struct problem problem = {""};
    struct code_listings result;
    gpufl_status status = listings_add(dir, *options, false, &result, &problem);
    if (status != GPUFL_OK) {
        command_error("disassemble", "%s", problem.text);
        return EXIT_ENVIRONMENT;
    }
    print_result(dir, &result);
    size_t missing = functions_missing(&result);
    if (!missing)
        return EXIT_GOOD;
    if (is_interrupted)
        return EXIT_SIGNAL_BASE + SIGINT;
    command_error("disassemble", "%s: %zu %s without text: %s", dir, missing, functions(missing), result.reason.text);
    return EXIT_ANSWER_NO;
}

static int disassemble_all(const char *word, const struct code_listings_options *options)
{
    struct session_choice choice;
    const char *dir = session_operand_directory("disassemble", word, &choice);
    if (!dir)
        return EXIT_ENVIRONMENT;
    struct session_list list;
    if (session_list_find(&list, dir, NULL) != GPUFL_OK)
        memset(&list, 0, sizeof list);
    /* A session directory holds no others. */
    int code = list.count ? EXIT_GOOD : disassemble_one(dir, options);
    for (size_t i = 0; i < list.count && !is_interrupted; i++) {
        int one = disassemble_one(list.paths[i], options);
        code = one > code ? one : code;
    }
    session_list_free(&list);
    return code;
}

int command_disassemble(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("disassemble", argc, argv, &arguments);
    if (code >= 0)
        return code;
    const struct code_listings_options options = {
        .is_all = arguments_has(&arguments, "all"),
        .time_limit_ms = (unsigned)arguments_number(&arguments, "timeout-ms", session_limit_ms),
    };
    struct sigaction before;
    interrupts_take(&before);
    code = EXIT_GOOD;
    int count = arguments.operand_count ? arguments.operand_count : 1; /* none: the last session recorded here */
    for (int i = 0; i < count && !is_interrupted; i++) {
        int one = disassemble_all(arguments.operands[i], &options);
        code = one > code ? one : code;
    }
    interrupts_give_back(&before);
    if (!is_interrupted)
        return code;
    command_error("disassemble", "interrupted; the session is intact; run the command again to continue");
    return EXIT_SIGNAL_BASE + SIGINT;
}

static bool has_tool(enum image_vendor vendor)
{
    char tool[PATH_MAX];
    return disassembler_is_named(vendor) || disassembler_find(vendor, tool, NULL) == GPUFL_OK;
}

/* Without a tool there is nothing to say, unless somebody named one that is not there. */
static void session_after_trace(const char *dir, const struct code_listings_options *options, bool is_quiet,
                                bool is_named)
{
    struct code_listings result;
    struct problem problem = {""};
    gpufl_status status = listings_add(dir, *options, is_quiet, &result, &problem);
    if (is_quiet || status == GPUFL_E_BUSY || (result.without_tool && !is_named && status == GPUFL_E_NOT_FOUND))
        return;
    struct bytes word = {0};
    shell_word_append(&word, dir);
    size_t missing = is_named ? functions_missing(&result) : result.failed + result.left;
    if (status != GPUFL_OK)
        message_print(stderr, "gpufl: kernels were not disassembled: %s", problem.text);
    else if (missing)
        message_print(stderr, "gpufl: %zu %s not disassembled: %s; to try again: gpufl disassemble %s", missing,
                      functions(missing), result.reason.text, bytes_text(&word));
    bytes_free(&word);
}

void disassemble_after_trace(const struct session_list *sessions, bool is_quiet)
{
    if (!has_tool(IMAGE_NVIDIA) && !has_tool(IMAGE_AMD))
        return;
    bool is_named = disassembler_is_named(IMAGE_NVIDIA) || disassembler_is_named(IMAGE_AMD);
    int64_t deadline_ns = clock_mono_ns() + (int64_t)trace_limit_ms * 1000000;
    struct sigaction before;
    interrupts_take(&before);
    size_t tried = 0;
    for (; tried < sessions->count && !is_interrupted; tried++) {
        int64_t left_ns = deadline_ns - clock_mono_ns();
        const struct code_listings_options options = {.time_limit_ms = left_ns > 0 ? (unsigned)(left_ns / 1000000) : 0};
        session_after_trace(sessions->paths[tried], &options, is_quiet, is_named);
    }
    interrupts_give_back(&before);
    size_t skipped = sessions->count - tried;
    if (!skipped || is_quiet)
        return;
    const char *path = sessions->paths[tried], *name = strrchr(path, '/');
    message_print(stderr, "gpufl: interrupted: %zu more %s not disassembled; to try again: gpufl disassemble %.*s",
                  skipped, skipped == 1 ? "session" : "sessions", name ? (int)(name - path) : 1, name ? path : ".");
}
