/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/disassemble.h"

#include "analysis/code_listings.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "code/disassembler.h"

#include <stdlib.h>
#include <string.h>

enum { session_limit_ms = 60000, trace_limit_ms = 30000 };

static const char *functions(size_t count)
{
    return count == 1 ? "function" : "functions";
}

static void print_result(const char *dir, const struct code_listings *result)
{
    printf("disassembled: %s, ", dir);
    if (result->added)
        printf("%zu %s, %.1f kB", result->added, functions(result->added), (double)result->bytes / 1e3);
    else
        printf("nothing to add");
    if (result->present)
        printf(", %zu had text", result->present);
    if (result->without_code)
        printf(", %zu without code in the log", result->without_code);
    printf("\n");
}

static size_t functions_missing(const struct code_listings *result)
{
    return result->failed + result->left + result->without_tool;
}

static int disassemble_one(const char *dir, const struct code_listings_options *options)
{
    struct problem problem = {""};
    struct code_listings result;
    gpufl_status status = code_listings_add(dir, options, &result, &problem);
    if (status != GPUFL_OK) {
        command_error("disassemble", "%s", problem.text);
        return EXIT_ENVIRONMENT;
    }
    print_result(dir, &result);
    size_t missing = functions_missing(&result);
    if (!missing)
        return EXIT_GOOD;
    command_error("disassemble", "%s: %zu %s without text: %s", dir, missing, functions(missing), result.reason.text);
    return EXIT_ANSWER_NO;
}

static int disassemble_all(const char *dir, const struct code_listings_options *options)
{
    struct session_list list;
    if (session_list_find(&list, dir, NULL) != GPUFL_OK)
        memset(&list, 0, sizeof list);
    /* A session directory holds no others. */
    int code = list.count ? EXIT_GOOD : disassemble_one(dir, options);
    for (size_t i = 0; i < list.count; i++) {
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
    terminal_on_interrupt("\ngpufl disassemble: interrupted; the session is whole, run it again to go on\n");
    code = EXIT_GOOD;
    for (int i = 0; i < arguments.operand_count; i++) {
        int one = disassemble_all(arguments.operands[i], &options);
        code = one > code ? one : code;
    }
    return code;
}

static bool has_tool(enum image_vendor vendor)
{
    char tool[PATH_MAX];
    return disassembler_is_named(vendor) || disassembler_find(vendor, tool, NULL) == GPUFL_OK;
}

void disassemble_after_trace(const struct session_list *sessions, bool is_quiet)
{
    if (!has_tool(IMAGE_NVIDIA) && !has_tool(IMAGE_AMD))
        return;
    /* Without a tool there is nothing to say, unless somebody named one that is not there. */
    bool is_named = disassembler_is_named(IMAGE_NVIDIA) || disassembler_is_named(IMAGE_AMD);
    int64_t deadline_ns = clock_mono_ns() + (int64_t)trace_limit_ms * 1000000;
    for (size_t i = 0; i < sessions->count; i++) {
        const char *dir = sessions->paths[i];
        int64_t left_ns = deadline_ns - clock_mono_ns();
        const struct code_listings_options options = {.time_limit_ms = left_ns > 0 ? (unsigned)(left_ns / 1000000) : 0};
        struct code_listings result;
        struct problem problem = {""};
        gpufl_status status = code_listings_add(dir, &options, &result, &problem);
        if (is_quiet || status == GPUFL_E_BUSY || (result.without_tool && !is_named && status == GPUFL_E_NOT_FOUND))
            continue;
        size_t missing = is_named ? functions_missing(&result) : result.failed + result.left;
        if (status != GPUFL_OK)
            fprintf(stderr, "gpufl: instructions without text: %s\n", problem.text);
        else if (missing)
            fprintf(stderr, "gpufl: %zu %s without the text of instructions: %s · gpufl disassemble %s\n", missing,
                    functions(missing), result.reason.text, dir);
    }
}
