/* SPDX-License-Identifier: Apache-2.0 */
#include "base/remote_config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool remote_config_name_is_valid(const char *name)
{
    size_t size = strlen(name);
    return size && size <= REMOTE_CONFIG_NAME_MAX && name[0] != '.' &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == size;
}

bool remote_config_home(char *out, size_t size)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int needed = -1;
    if (config && *config == '/')
        needed = snprintf(out, size, "%s/gpufl/remote", config);
    else if (home && *home == '/')
        needed = snprintf(out, size, "%s/.config/gpufl/remote", home);
    return needed > 0 && (size_t)needed < size;
}

void remote_config_path(const char *name, char *out, size_t size)
{
    char home[PATH_MAX];
    if (remote_config_home(home, sizeof home)) {
        snprintf(out, size, "%s/%s.json", home, name);
        if (access(out, F_OK) == 0)
            return;
    }
    snprintf(out, size, "%s/%s.json", REMOTE_CONFIG_SYSTEM_DIR, name);
}

bool remote_config_may_set(const char *option)
{
    /* By default, app_name is also the directory's name. */
    static const char *const local[] = {"app_name", "log_path",    "backend_url",   "api_key",
                                        "api_path", "config_file", "remote_upload", "enable_debug_output"};
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (!strcmp(option, local[i]))
            return false;
    return true;
}
