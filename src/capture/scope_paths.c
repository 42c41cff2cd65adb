/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/scope_paths.h"

#include "base/crc32c.h"

#include <string.h>

enum {
    /* A path includes its parent's text, so texts grow with the square of the depth. Scopes below a path of this
     * depth or length are named "outer|...|inner" with U+2026. */
    path_levels_max = 250, /* readers support 256 */
    path_bytes_max = 4096,
    paths_bytes_max = 16 << 20,
    tags_bytes_max = 4 << 20
};
static const char ellipsis[] = "\u2026";

void scope_paths_open(struct scope_paths *paths, struct recorder *recorder, void (*use_open)(void *user), void *user)
{
    *paths = (struct scope_paths){.recorder = recorder,
                                  .use_open = use_open,
                                  .user = user,
                                  .paths = {.bytes_max = paths_bytes_max},
                                  .tags = {.bytes_max = tags_bytes_max}};
}

void scope_paths_close(struct scope_paths *paths)
{
    intern_cache_free(&paths->paths);
    intern_cache_free(&paths->tags);
    bytes_free(&paths->text);
}

size_t scope_paths_bytes(const struct scope_paths *paths)
{
    return intern_cache_bytes(&paths->paths) + intern_cache_bytes(&paths->tags) + paths->text.capacity;
}

void scope_paths_use(struct scope_paths *paths, const struct scope_place *place)
{
    intern_cache_use(&paths->paths, place->path_id);
    intern_cache_use(&paths->paths, place->ellipsis_id);
}

/* Composes "<parent's path>|<name>" in paths->text; false: no memory, or the parent's path was evicted. */
static bool spell(struct scope_paths *paths, uint32_t parent_id, const char *name, size_t size)
{
    bytes_clear(&paths->text);
    if (parent_id) {
        const struct intern_entry *parent = intern_cache_entry(&paths->paths, parent_id);
        if (!parent)
            return false;
        intern_cache_use(&paths->paths, parent_id);
        bytes_append(&paths->text, parent->text, parent->size);
        bytes_append_char(&paths->text, '|');
    }
    bytes_append(&paths->text, name, size);
    return !paths->text.failed;
}

/* Whether the most recent path in this slot belongs to this parent and name. */
static bool is_recent(const struct scope_paths *paths, const struct recent_path *recent, uint32_t parent_id,
                      const char *name, size_t size)
{
    if (!recent->path_id || recent->parent_id != parent_id)
        return false;
    const struct intern_entry *path = intern_cache_entry(&paths->paths, recent->path_id);
    const struct intern_entry *parent = intern_cache_entry(&paths->paths, parent_id);
    if (!path || (parent_id && !parent))
        return false;
    size_t before = parent ? parent->size + (size_t)1 : 0;
    return path->size == before + size && !memcmp(path->text + before, name, size);
}

/* The id of "<parent's path>|<name>"; 0 when there is no room for it. */
static uint32_t path_find(struct scope_paths *paths, uint32_t parent_id, const char *name, size_t size)
{
    struct recent_path *recent = &paths->recent[crc32c(parent_id, name, size) % SCOPE_PATH_SLOTS];
    if (is_recent(paths, recent, parent_id, name, size)) {
        intern_cache_use(&paths->paths, recent->path_id);
        return recent->path_id;
    }
    if (!spell(paths, parent_id, name, size))
        return 0;
    bool is_new;
    if (!intern_cache_has_room(&paths->paths, paths->text.size))
        paths->use_open(paths->user);
    uint32_t path_id = intern_cache_id(&paths->paths, paths->text.data, paths->text.size, &is_new);
    if (path_id && is_new)
        recorder_define(paths->recorder, DICTIONARY_SCOPE_NAME, path_id, paths->text.data, paths->text.size);
    *recent = (struct recent_path){path_id, parent_id};
    return path_id;
}

/* The parent path for scopes inside outer: outer itself, or the ellipsis below it if outer is too deep. 0: no room. */
static uint32_t path_inside(struct scope_paths *paths, const struct scope_place *outer, bool *is_ellipsis)
{
    *is_ellipsis = true;
    if (outer->ellipsis_id)
        return outer->ellipsis_id;
    const struct intern_entry *path = intern_cache_entry(&paths->paths, outer->path_id);
    *is_ellipsis = !path || outer->levels >= path_levels_max || path->size >= path_bytes_max;
    return *is_ellipsis ? path_find(paths, outer->path_id, ellipsis, sizeof ellipsis - 1) : outer->path_id;
}

struct scope_place scope_paths_place(struct scope_paths *paths, const struct scope_place *outer, const char *name,
                                     size_t size)
{
    struct scope_place place = {.levels = outer ? outer->levels + 1 : 1};
    bool is_ellipsis = false;
    uint32_t parent_id = outer && outer->path_id ? path_inside(paths, outer, &is_ellipsis) : 0;
    /* Inside a nameless scope nothing gets a name: its path would look like an outermost scope. */
    if (!outer || parent_id)
        place.path_id = path_find(paths, parent_id, name, size);
    if (!place.path_id)
        recorder_lose(paths->recorder, LOSS_SCOPE_NAMES, 1);
    else if (is_ellipsis)
        place.ellipsis_id = parent_id;
    return place;
}

uint32_t scope_paths_tag(struct scope_paths *paths, const char *tag, size_t size)
{
    if (!size)
        return 0;
    bool is_new;
    uint32_t tag_id = intern_cache_id(&paths->tags, tag, size, &is_new);
    if (!tag_id)
        recorder_lose(paths->recorder, LOSS_SCOPE_NAMES, 1);
    else if (is_new)
        recorder_define(paths->recorder, DICTIONARY_TAG, tag_id, tag, size);
    return tag_id;
}
