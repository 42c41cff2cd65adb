/* SPDX-License-Identifier: Apache-2.0 */
/* Names of scopes as they are in the log: "outer|inner", and tags. Each path is written to its dictionary before the
 * first row that uses it. Bounded and never full: paths that are no longer used are forgotten, and written again under
 * a new id when they come back. Collector thread only. */
#ifndef GPUFL_CAPTURE_SCOPE_PATHS_H
#define GPUFL_CAPTURE_SCOPE_PATHS_H

#include "base/intern_cache.h"
#include "capture/recorder.h"

enum { SCOPE_PATH_SLOTS = 4096 };

struct scope_place {      /* a scope's path, and where those of the scopes inside hang */
    uint32_t path_id;     /* of scope_name_dict; 0: nameless */
    uint32_t ellipsis_id; /* the path it hangs below when it is too deep to be told apart; 0: none */
    uint32_t levels;
};

struct scope_paths {
    struct recorder *recorder; /* borrowed */
    /* Calls scope_paths_use for every open scope, whose paths must not be forgotten. */
    void (*use_open)(void *user);
    void *user;
    struct intern_cache paths, tags;
    struct bytes text;
    struct recent_path { /* by parent and name: most scopes repeat a path, which then need not be spelled */
        uint32_t path_id, parent_id;
    } recent[SCOPE_PATH_SLOTS];
};

void scope_paths_open(struct scope_paths *paths, struct recorder *recorder, void (*use_open)(void *user), void *user);
void scope_paths_close(struct scope_paths *paths);
/* outer: the scope that it is in, or NULL. Nameless, and counted, when there is no room or outer is nameless. */
struct scope_place scope_paths_place(struct scope_paths *paths, const struct scope_place *outer, const char *name,
                                     size_t size);
void scope_paths_use(struct scope_paths *paths, const struct scope_place *place);
/* The id of a tag in tag_dict; 0: none, or no room for it (counted). */
uint32_t scope_paths_tag(struct scope_paths *paths, const char *tag, size_t size);
size_t scope_paths_bytes(const struct scope_paths *paths);

#endif
