/* SPDX-License-Identifier: Apache-2.0 */
/* What `gpufl trace` does about the text of instructions when its program has ended. Single-threaded. */
#ifndef GPUFL_CLI_DISASSEMBLE_H
#define GPUFL_CLI_DISASSEMBLE_H

#include "logfile/reader.h"

/* For all these sessions together at most 10 s, and until Ctrl-C. Says nothing unless something went wrong, but for a
 * progress line on a terminal; a machine without a disassembler, a session without code and one that is still being
 * written are all in order. */
void disassemble_after_trace(const struct session_list *sessions, bool is_quiet);

#endif
