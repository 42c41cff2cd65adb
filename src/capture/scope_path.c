/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/scope_path.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { path_bytes = 2048, depth_max = 64 };

struct scope_path {
    char text[path_bytes];
    uint16_t ends[depth_max]; /* length of the text before each level */
    uint32_t depth;           /* may be more than depth_max: deeper levels are counted, not named */
};

/* Not thread-local memory: a library that is loaded late has only a few bytes of that. */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
    pthread_key_create(&key, free);
}

static struct scope_path *path_of_thread(void)
{
    pthread_once(&once, make_key);
    struct scope_path *path = pthread_getspecific(key);
    if (!path && (path = calloc(1, sizeof *path)))
        pthread_setspecific(key, path);
    return path;
}

const char *scope_path_push(const char *name, size_t name_size)
{
    struct scope_path *path = path_of_thread();
    if (!path)
        return "";
    if (path->depth++ >= depth_max)
        return path->text;
    size_t size = strlen(path->text);
    path->ends[path->depth - 1] = (uint16_t)size;
    if (size && size < path_bytes - 1)
        path->text[size++] = '|';
    size_t room = path_bytes - 1 - size;
    size_t taken = name_size < room ? name_size : room;
    memcpy(path->text + size, name, taken);
    path->text[size + taken] = '\0';
    return path->text;
}

void scope_path_pop(void)
{
    struct scope_path *path = path_of_thread();
    if (path && path->depth && --path->depth < depth_max)
        path->text[path->ends[path->depth]] = '\0';
}
