/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CONTAINER_ID_SIZE = 64, UID_SIZE = 36, PLAIN_UID_SIZE = 32 };

static const struct {
    const char *prefix, *runtime;
} prefixes[] = {
    {"docker-", "docker"}, {"cri-containerd-", "containerd"}, {"nerdctl-", "containerd"}, {"crio-", "cri-o"},
    {"libpod-", "podman"},
};

/* Parent directories of bare ids, where cgroups are not managed by systemd. */
static const struct {
    const char *parent, *runtime;
} parents[] = {{"docker", "docker"}, {"libpod_parent", "podman"}, {"crio", "cri-o"}};

struct part {
    const char *text;
    size_t size;
};

static bool is_hex(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    return true;
}

static bool part_is(const struct part *part, const char *word)
{
    return part->size == strlen(word) && !memcmp(part->text, word, part->size);
}

static bool part_drop_suffix(struct part *part, const char *suffix)
{
    size_t size = strlen(suffix);
    if (part->size < size || memcmp(part->text + part->size - size, suffix, size))
        return false;
    part->size -= size;
    return true;
}

/* "docker-ID.scope", "PREFIX:cri-containerd:ID" or a bare ID. */
static void container_take(struct cgroup_identity *identity, struct part part, const struct part *parent)
{
    part_drop_suffix(&part, ".scope");
    if (part.size < CONTAINER_ID_SIZE)
        return;
    const char *id = part.text + part.size - CONTAINER_ID_SIZE;
    size_t prefix_size = part.size - CONTAINER_ID_SIZE;
    if (!is_hex(id, CONTAINER_ID_SIZE))
        return;
    const char *runtime = "";
    if (prefix_size && (id[-1] == '-' || id[-1] == ':')) {
        const char *start = part.text;
        for (size_t i = 0; i + 1 < prefix_size; i++)
            if (part.text[i] == ':')
                start = part.text + i + 1;
        size_t size = (size_t)(id - start) - 1;
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            if (strlen(prefixes[i].prefix) == size + 1 && !memcmp(prefixes[i].prefix, start, size))
                runtime = prefixes[i].runtime;
        if (!*runtime)
            return; /* crio-conmon-ID.scope is the container's monitor, not a container */
    } else if (prefix_size) {
        return;
    }
    for (size_t i = 0; i < sizeof parents / sizeof *parents && !prefix_size; i++)
        if (part_is(parent, parents[i].parent))
            runtime = parents[i].runtime;
    memcpy(identity->container_id, id, CONTAINER_ID_SIZE);
    identity->container_id[CONTAINER_ID_SIZE] = '\0';
    snprintf(identity->runtime, sizeof identity->runtime, "%s", runtime);
}

/* "podUID" or "kubepods-burstable-podUID.slice"; in slice names systemd replaces the dashes of UID by _. */
static void pod_take(struct cgroup_identity *identity, struct part part)
{
    part_drop_suffix(&part, ".slice");
    const size_t sizes[] = {UID_SIZE, PLAIN_UID_SIZE};
    for (size_t i = 0; i < 2; i++) {
        size_t size = sizes[i];
        if (part.size < size + 3)
            continue;
        const char *uid = part.text + part.size - size;
        bool has_mark = !memcmp(uid - 3, "pod", 3) && (part.size == size + 3 || uid[-4] == '-');
        char text[UID_SIZE + 1] = "";
        memcpy(text, uid, size);
        bool is_valid = has_mark;
        for (size_t j = 0; j < size && is_valid; j++) {
            bool is_dash = size == UID_SIZE && (j == 8 || j == 13 || j == 18 || j == 23);
            is_valid = is_dash ? text[j] == '-' || text[j] == '_' : is_hex(&text[j], 1);
            if (is_dash)
                text[j] = '-';
        }
        if (is_valid) {
            memcpy(identity->pod_uid, text, sizeof text);
            return;
        }
    }
}

/* The innermost container wins: the process runs in it. */
static void path_take(struct cgroup_identity *identity, const char *path, size_t size)
{
    struct part parent = {"", 0};
    for (size_t at = 0; at < size;) {
        while (at < size && path[at] == '/')
            at++;
        const char *slash = memchr(path + at, '/', size - at);
        struct part part = {path + at, slash ? (size_t)(slash - path) - at : size - at};
        container_take(identity, part, &parent);
        pod_take(identity, part);
        parent = part;
        at += part.size;
    }
}

void cgroup_identify(struct cgroup_identity *identity, const char *text, size_t size)
{
    memset(identity, 0, sizeof *identity);
    for (size_t at = 0; at < size;) {
        const char *line = text + at, *newline = memchr(line, '\n', size - at);
        size_t line_size = newline ? (size_t)(newline - line) : size - at;
        /* hierarchy:controllers:path */
        const char *colon = memchr(line, ':', line_size);
        colon = colon ? memchr(colon + 1, ':', line_size - (size_t)(colon + 1 - line)) : NULL;
        if (colon)
            path_take(identity, colon + 1, line_size - (size_t)(colon + 1 - line));
        at += line_size + 1;
    }
}
