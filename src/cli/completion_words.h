/* SPDX-License-Identifier: Apache-2.0 */
/* The words that completion scripts ask for when Tab is pressed: sessions, chips and metrics of this machine,
 * keys of a server.
 * Single-threaded. */
#ifndef GPUFL_CLI_COMPLETION_WORDS_H
#define GPUFL_CLI_COMPLETION_WORDS_H

#include "cli/command.h"

/* What completes an option's value or a command's operands, as the scripts call it; NULL: nothing to ask for. */
const char *completion_words_of_option(const struct option_info *option);
const char *completion_words_of_operand(const struct command *command);

/* KIND WORD [LINE...]: prints what can complete WORD, one candidate a line. LINE is the command line so far, from the
 * command's name on. A shell calls this while the user types, so it always succeeds, prints no messages, and stops
 * after a few seconds. */
int completion_words(int argc, char **argv);

#endif
