/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/session_origin.h"

#include "format/json.h"
#include "logfile/reader.h"
#include "logfile/session_dir.h"

#include <stdio.h>
#include <string.h>

static bool take_origin(void *user, const struct log_line *line)
{
    struct session_origin *origin = user;
    if (line->type == RECORD_JOB_START && line->object) {
        snprintf(origin->id, sizeof origin->id, "%s", json_get_text(line->object, "session_id", ""));
        snprintf(origin->host, sizeof origin->host, "%s", json_get_text(line->object, "hostname", ""));
    }
    return false; /* job_start comes first, if it exists */
}

gpufl_status session_origin_read(struct session_origin *origin, const char *dir, struct problem *problem)
{
    *origin = (struct session_origin){.id = ""};
    struct log_summary summary;
    gpufl_status status = log_read(dir, take_origin, NULL, origin, &summary, problem);
    if (status)
        return status;
    char path[512];
    snprintf(path, sizeof path, "%s", dir);
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        path[--size] = '\0';
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!origin->id[0] && session_id_is_valid(name))
        snprintf(origin->id, sizeof origin->id, "%.*s", (int)sizeof origin->id - 1, name);
    if (!origin->id[0])
        return problem_set(problem, GPUFL_E_DAMAGED, "%.300s: cannot identify the session: no job_start record", dir);
    return GPUFL_OK;
}
