/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/session_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

gpufl_status session_root_open(struct session_root *root, const char *path, struct problem *problem)
{
    if (!realpath(path, root->path))
        return problem_set(problem, GPUFL_E_NOT_FOUND, "cannot open the directory '%s': %s", path, strerror(errno));
    int fd = open(root->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "cannot open the directory '%s': %s", path, strerror(errno));
    close(fd);
    return GPUFL_OK;
}

/* "" is the root itself. */
static const char *relative_path(const struct session_root *root, const struct session_place *place)
{
    const char *rest = place->path + strlen(root->path);
    while (*rest == '/')
        rest++;
    return rest;
}

/* Whether no part of the path below the root is a symbolic link. */
static bool is_inside(const struct session_root *root, const struct session_place *place)
{
    char rest[SESSION_PATH_SIZE];
    snprintf(rest, sizeof rest, "%s", relative_path(root, place));
    int fd = open(root->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *save = NULL;
    for (char *part = strtok_r(rest, "/", &save); part && fd >= 0; part = strtok_r(NULL, "/", &save)) {
        int next = strcmp(part, "..") ? openat(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        close(fd);
        fd = next;
    }
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

gpufl_status session_root_list(const struct session_root *root, struct session_scan *found, struct problem *problem)
{
    gpufl_status status = session_scan_find(found, root->path, problem);
    if (status != GPUFL_OK)
        return status;
    size_t kept = 0;
    for (size_t i = 0; i < found->count; i++)
        if (is_inside(root, &found->items[i]))
            found->items[kept++] = found->items[i];
    found->count = kept;
    session_scan_name(found);
    return GPUFL_OK;
}

/* Whether a client's word refers to a place outside the root. */
static bool is_outside(const struct session_root *root, const char *text)
{
    size_t size = strlen(root->path);
    if (*text == '/' && (strncmp(text, root->path, size) != 0 || (text[size] && text[size] != '/')))
        return true;
    for (const char *at = text; (at = strstr(at, "..")); at += 2)
        if ((at == text || at[-1] == '/') && (!at[2] || at[2] == '/'))
            return true;
    return false;
}

void session_root_label(const struct session_root *root, const struct session_scan *found,
                        const struct session_place *place, char out[SESSION_PATH_SIZE])
{
    size_t count = 0;
    for (size_t i = 0; *place->name && i < found->count; i++)
        count += !strcmp(found->items[i].name, place->name);
    const char *relative = relative_path(root, place);
    snprintf(out, SESSION_PATH_SIZE, "%s", count == 1 ? place->name : *relative ? relative : "latest");
}

/* The session in the directory that the word names, relative or absolute. */
static const struct session_place *place_find(const struct session_root *root, const struct session_scan *found,
                                              const char *word)
{
    size_t size = strlen(word);
    while (size > 1 && word[size - 1] == '/')
        size--;
    for (size_t i = 0; i < found->count; i++) {
        const char *path = found->items[i].path;
        const char *known = *word == '/' ? path : relative_path(root, &found->items[i]);
        if (!strncmp(known, word, size) && !known[size])
            return &found->items[i];
    }
    return NULL;
}

gpufl_status session_root_choose(const struct session_root *root, struct session_scan *found, const char *word,
                                 struct session_choice *choice, struct problem *problem)
{
    if (word && is_outside(root, word))
        return problem_set(problem, GPUFL_E_PERMISSION,
                           "'%.200s' is outside of '%.200s', the only directory that this server reads", word,
                           root->path);
    const struct session_place *place = word && *word ? place_find(root, found, word) : NULL;
    if (place) {
        *choice = (struct session_choice){.place = *place, .count = 1};
        return GPUFL_OK;
    }
    return session_scan_choose(found, root->path, word, choice, problem);
}
