/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/scope_path.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { path_bytes = 2048, depth_max = 64 };

enum { level_left = UINT16_MAX }; /* in place of a stack: the level ended before scopes that began in it */

struct scope_path {
    char text[path_bytes];
    uint16_t ends[depth_max];   /* length of the text before each level */
    uint16_t stacks[depth_max]; /* of each level, or level_left */
    uint32_t depth;
    uint32_t deeper, deeper_of_stack[SCOPE_STACK_COUNT]; /* open scopes nested more deeply: counted, not named */
};

/* Not in thread-local memory: a library that is loaded late has only a few bytes of it. */
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

const char *scope_path_push(uint32_t stack, const char *name, size_t name_size)
{
    struct scope_path *path = path_of_thread();
    if (!path)
        return "";
    if (path->depth == depth_max) {
        path->deeper++;
        path->deeper_of_stack[stack]++;
        return path->text;
    }
    size_t size = strlen(path->text);
    path->stacks[path->depth] = (uint16_t)stack;
    path->ends[path->depth++] = (uint16_t)size;
    if (size && size < path_bytes - 1)
        path->text[size++] = '|';
    size_t room = path_bytes - 1 - size;
    size_t taken = name_size < room ? name_size : room;
    memcpy(path->text + size, name, taken);
    path->text[size + taken] = '\0';
    return path->text;
}

int scope_path_pop(uint32_t stack)
{
    struct scope_path *path = path_of_thread();
    if (!path)
        return -1;
    if (path->deeper_of_stack[stack]) {
        path->deeper_of_stack[stack]--;
        path->deeper--;
        return 0;
    }
    int later = (int)path->deeper;
    uint32_t level = path->depth;
    for (; level && path->stacks[level - 1] != stack; level--)
        later += path->stacks[level - 1] != level_left;
    if (!level)
        return -1;
    path->stacks[level - 1] = level_left;
    while (path->depth && path->stacks[path->depth - 1] == level_left)
        path->text[path->ends[--path->depth]] = '\0';
    return later;
}
