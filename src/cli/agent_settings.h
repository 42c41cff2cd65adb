/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of `gpufl agent`: command line, then environment, then its config file. Single-threaded. */
#ifndef GPUFL_CLI_AGENT_SETTINGS_H
#define GPUFL_CLI_AGENT_SETTINGS_H

#include "agent/agent.h"
#include "cli/arguments.h"
#include "format/json.h"

#include <limits.h>

struct agent_settings {
    struct agent_options options;  /* borrows from everything below, argv and the environment */
    struct json_document document; /* the config file */
    char state_dir[PATH_MAX];
};

/* GPUFL_E_INVALID: the problem says what is wrong, and where. */
NODISCARD gpufl_status agent_settings_read(struct agent_settings *settings, const struct arguments *arguments,
                                           struct problem *problem);
void agent_settings_free(struct agent_settings *settings);

#endif
