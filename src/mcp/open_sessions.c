/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/open_sessions.h"

#include "logfile/session_dir.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void session_close(struct open_session *session)
{
    if (!*session->path)
        return;
    if (session->has_tracks)
        track_set_free(&session->tracks);
    analysis_free(&session->analysis);
    session_free(session->model);
    *session = (struct open_session){.path = ""};
}

void open_sessions_free(struct open_sessions *sessions)
{
    for (size_t i = 0; i < OPEN_SESSIONS_MAX; i++)
        session_close(&sessions->items[i]);
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15) + (sum >> 29);
}

static gpufl_status fingerprint_read(const char *path, uint64_t *out, struct problem *problem)
{
    struct session_files files;
    gpufl_status status = session_files_list(&files, path, problem);
    if (status != GPUFL_OK)
        return status;
    uint64_t sum = files.count;
    for (size_t i = 0; i < files.count; i++) {
        struct stat info;
        for (const char *c = files.items[i].name; *c; c++)
            sum = mix(sum, (unsigned char)*c);
        if (fstatat(files.dir_fd, files.items[i].name, &info, AT_SYMLINK_NOFOLLOW))
            continue;
        sum = mix(mix(sum, (uint64_t)info.st_size), (uint64_t)info.st_mtim.tv_sec);
        sum = mix(sum, (uint64_t)info.st_mtim.tv_nsec);
    }
    session_files_free(&files);
    *out = sum;
    return GPUFL_OK;
}

static gpufl_status session_open(struct open_session *session, const char *path, struct problem *problem)
{
    gpufl_status status = session_load(&session->model, path, problem);
    if (status != GPUFL_OK)
        return status;
    status = analysis_make_with(&session->analysis, session->model, CODE_NAMED_TOOLS);
    if (status != GPUFL_OK) {
        session_free(session->model);
        session->model = NULL;
        return problem_set(problem, status, "no memory to analyse the session");
    }
    snprintf(session->path, sizeof session->path, "%s", path);
    return GPUFL_OK;
}

gpufl_status open_sessions_get(struct open_sessions *sessions, const char *path, struct open_session **out,
                               struct problem *problem)
{
    uint64_t fingerprint;
    gpufl_status status = fingerprint_read(path, &fingerprint, problem);
    if (status != GPUFL_OK)
        return status;
    struct open_session *place = &sessions->items[0];
    for (size_t i = 0; i < OPEN_SESSIONS_MAX; i++) {
        struct open_session *at = &sessions->items[i];
        bool is_it = !strcmp(at->path, path);
        if (is_it || at->used_at < place->used_at)
            place = at;
        if (is_it)
            break;
    }
    place->used_at = ++sessions->uses;
    if (strcmp(place->path, path) != 0 || place->fingerprint != fingerprint) {
        session_close(place);
        status = session_open(place, path, problem);
        place->fingerprint = fingerprint;
        place->used_at = sessions->uses;
    }
    if (status == GPUFL_OK)
        *out = place;
    return status;
}

const struct track_set *open_session_tracks(struct open_session *session)
{
    if (!session->has_tracks)
        session->has_tracks = track_set_make(&session->tracks, session->model) == GPUFL_OK;
    return session->has_tracks ? &session->tracks : NULL;
}
