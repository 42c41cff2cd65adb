/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/preloading.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool is_exclusive_by_environment(void)
{
    const char *value = getenv("GPUFL_EXCLUSIVE");
    return value && *value && strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0 &&
           strcasecmp(value, "off") != 0 && strcasecmp(value, "no") != 0;
}

/* Puts text before (or after) what the variable holds, unless it is there already. */
static bool set_joined(struct child_options *child, const char *name, const char *text, bool is_first)
{
    const char *own = getenv(name);
    char joined[CHILD_VALUE_BYTES];
    if (!own || !*own)
        return child_set(child, name, text, false);
    if (strstr(own, text))
        return true;
    int length = snprintf(joined, sizeof joined, "%s:%s", is_first ? text : own, is_first ? own : text);
    return length > 0 && (size_t)length < sizeof joined && child_set(child, name, joined, false);
}

bool preloading_set(struct child_options *child, const char *recorder, bool is_exclusive)
{
    static const char file[] = "libgpufl_preload.so";
    char path[PATH_MAX];
    if (is_exclusive)
        return child_set(child, "GPUFL_EXCLUSIVE", "1", false);
    if (is_exclusive_by_environment())
        return true;
    const char *slash = strrchr(recorder, '/');
    int length = snprintf(path, sizeof path, "%.*s/%s", (int)(slash ? slash - recorder : 0), recorder, file);
    /* LD_PRELOAD is separated by blanks and colons. Without the library the program is still recorded. */
    if (length <= 0 || (size_t)length >= sizeof path || access(path, R_OK) != 0 || strpbrk(path, " :"))
        return true;
    /* The address sanitizer refuses to start behind another library, unless this option allows it. */
    return set_joined(child, "LD_PRELOAD", path, true) &&
           set_joined(child, "ASAN_OPTIONS", "verify_asan_link_order=0", false);
}
