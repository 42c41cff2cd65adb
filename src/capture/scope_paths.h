/* SPDX-License-Identifier: Apache-2.0 */
/* Names of scopes as they appear in the log ("outer|inner"), and tags. Each path is written to its dictionary before
 * the first row that uses it. Bounded: when a limit is reached, unused paths are forgotten; they get a new id when
 * they are used again. Collector thread only. */
#ifndef GPUFL_CAPTURE_SCOPE_PATHS_H
#define GPUFL_CAPTURE_SCOPE_PATHS_H

#include "base/intern_cache.h"
#include "capture/recorder.h"

enum { SCOPE_PATH_SLOTS = 4096 };

struct scope_place {      /* a scope's path, and the parent path for scopes inside it */
    uint32_t path_id;     /* of scope_name_dict; 0: nameless */
    uint32_t ellipsis_id; /* the parent path for scopes inside one that is too deep for a full path; 0: none */
    uint32_t levels;
};

struct scope_paths {
    struct recorder *recorder; /* borrowed */
    /* Calls scope_paths_use for every open scope, whose paths must not be forgotten. */
    void (*use_open)(void *user);
    void *user;
    struct intern_cache paths, tags;
    struct bytes text;
    struct recent_path { /* by parent and name: most scopes repeat a path, which then need not be composed again */
        uint32_t path_id, parent_id;
    } recent[SCOPE_PATH_SLOTS];
};

void scope_paths_open(struct scope_paths *paths, struct recorder *recorder, void (*use_open)(void *user), void *user);
void scope_paths_close(struct scope_paths *paths);
/* outer: the enclosing scope, or NULL. The result is nameless, and counted, when there is no room or outer is
 * nameless. */
struct scope_place scope_paths_place(struct scope_paths *paths, const struct scope_place *outer, const char *name,
                                     size_t size);
void scope_paths_use(struct scope_paths *paths, const struct scope_place *place);
/* The id of a tag in tag_dict; 0: none, or no room for it (counted). */
uint32_t scope_paths_tag(struct scope_paths *paths, const char *tag, size_t size);
size_t scope_paths_bytes(const struct scope_paths *paths);

#endif
