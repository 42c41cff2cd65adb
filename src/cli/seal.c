/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/segment.h"

#include "cli/command.h"
#include "cli/terminal.h"

int command_seal(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("seal", argc, argv, &arguments);
    if (code >= 0)
        return code;
    const char *dir = arguments.operands[0];
    uint64_t before = directory_bytes(dir);
    terminal_on_interrupt("\ngpufl seal: interrupted; the session is whole, run it again to go on\n");
    struct progress *progress = progress_start("sealing", before);
    struct problem problem = {""};
    gpufl_status status = seal_session(dir, &problem);
    progress_finish(progress);
    if (status != GPUFL_OK) {
        command_error("seal", "%s", problem.text);
        return status == GPUFL_E_DAMAGED ? EXIT_ANSWER_NO : EXIT_ENVIRONMENT;
    }
    uint64_t after = directory_bytes(dir);
    printf("sealed: %.1f KB, before %.1f KB\n", (double)after / 1e3, (double)before / 1e3);
    return EXIT_GOOD;
}
