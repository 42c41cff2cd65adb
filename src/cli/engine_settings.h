/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the engines above Trace on trace's command line: checked before the program starts, by the parsers
 * that the engines use, and handed to it as variables of its environment. Texts are borrowed. Single-threaded. */
#ifndef GPUFL_CLI_ENGINE_SETTINGS_H
#define GPUFL_CLI_ENGINE_SETTINGS_H

#include "cli/arguments.h"
#include "cli/child.h"

/* engine: of the command line, NULL: the environment's, else Trace. GPUFL_E_INVALID: a value that the engine would
 * refuse, or a setting of another engine. */
NODISCARD gpufl_status engine_settings_check(const struct arguments *arguments, const char *engine,
                                             struct problem *problem);
/* False: a value is too long. */
bool engine_settings_apply(const struct arguments *arguments, struct child_options *child);

#endif
