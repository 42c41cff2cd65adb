/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote_config.h"

#include "base/directory.h"
#include "base/remote_config.h"
#include "base/upload_library.h"
#include "cli/command.h"
#include "format/json.h"
#include "upload/config_fetch.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 3000 }; /* a program waits for it */

typedef gpufl_status (*config_fetch_fn)(const struct config_fetch *fetch, bool *is_new, struct problem *problem);

static const char module_mark[] = "an address in this program";

bool remote_config_sets(const char *option)
{
    const char *name = getenv("GPUFL_REMOTE_CONFIG");
    char path[PATH_MAX + REMOTE_CONFIG_NAME_MAX + 8];
    struct bytes text = {0};
    struct json_document document;
    if (!name || !remote_config_name_is_valid(name))
        return false;
    remote_config_path(name, path, sizeof path);
    bool is_set = false;
    if (file_load(AT_FDCWD, path, REMOTE_CONFIG_BYTES_MAX, &text) == GPUFL_OK && text.size &&
        json_parse(&document, text.data, text.size, NULL) == GPUFL_OK) {
        is_set = json_member(document.root, option) != NULL;
        json_free(&document);
    }
    bytes_free(&text);
    return is_set;
}

void remote_config_refresh(const char *command, bool is_quiet)
{
    const char *name = getenv("GPUFL_REMOTE_CONFIG"), *server = getenv("GPUFL_BACKEND_URL");
    struct problem problem = {""};
    if (!name || !*name || !server || !*server)
        return;
    void *found = upload_library_symbol(module_mark, "gpufl_config_fetch", &problem);
    config_fetch_fn config_fetch = NULL;
    memcpy(&config_fetch, &found, sizeof config_fetch);
    const struct config_fetch fetch = {.struct_size = sizeof fetch,
                                       .server_url = server,
                                       .api_path = getenv("GPUFL_API_PATH"),
                                       .api_key = getenv("GPUFL_API_KEY"),
                                       .ca_file = getenv("GPUFL_CA_FILE"),
                                       .name = name,
                                       .timeout_ms = TIMEOUT_MS};
    if ((!config_fetch || config_fetch(&fetch, NULL, &problem) != GPUFL_OK) && !is_quiet)
        command_error(command, "%s\n  going on with the configuration from before, if there is one", problem.text);
}
