/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/message.h"
#include "cli/command.h"
#include "cli/session_operand.h"
#include "cli/terminal.h"
#include "logfile/segment.h"

#include <string.h>

static int seal_one(const char *dir)
{
    uint64_t before = directory_bytes(dir);
    struct problem problem = {""};
    struct progress *progress = progress_start("sealing", before);
    gpufl_status status = seal_session(dir, &problem);
    progress_finish(progress);
    if (status != GPUFL_OK) {
        command_error("seal", "%s", problem.text);
        return status == GPUFL_E_DAMAGED ? EXIT_ANSWER_NO : EXIT_ENVIRONMENT;
    }
    uint64_t after = directory_bytes(dir);
    if (after == before)
        message_print(stdout, "already sealed: %s, %.1f kB", dir, (double)after / 1e3);
    else
        message_print(stdout, "sealed: %s, %.1f kB (was %.1f kB)", dir, (double)after / 1e3, (double)before / 1e3);
    return EXIT_GOOD;
}

int command_seal(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("seal", argc, argv, &arguments);
    if (code >= 0)
        return code;
    struct session_choice choice;
    const char *dir = session_operand_directory("seal", arguments.operands[0], &choice);
    if (!dir)
        return EXIT_ENVIRONMENT;
    terminal_on_interrupt("\ngpufl seal: interrupted; the session is intact; run the command again to continue\n");
    struct session_list list;
    if (session_list_find(&list, dir, NULL) != GPUFL_OK)
        memset(&list, 0, sizeof list);
    code = EXIT_GOOD;
    for (size_t i = 0; i < list.count; i++) {
        int one = seal_one(list.paths[i]);
        code = one > code ? one : code;
    }
    /* A session directory holds no others. */
    if (!list.count)
        code = seal_one(dir);
    session_list_free(&list);
    return code;
}
