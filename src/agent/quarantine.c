/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/quarantine.h"

#include "base/clock.h"
#include "base/directory.h"
#include "format/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static void describe(struct bytes *out, const char *session_id, enum channel channel,
                     const struct stream_window *window, const char *reason, const char *body_name)
{
    bytes_append_char(out, '{');
    json_key(out, "schema_version");
    json_int(out, 1);
    json_key(out, "type");
    json_text(out, "quarantined_window");
    json_key(out, "session_id");
    json_text(out, session_id);
    json_key(out, "channel");
    json_text(out, channel_names[channel]);
    json_key(out, "window_id");
    json_text(out, window->id);
    json_key(out, "first");
    json_uint(out, window->first);
    json_key(out, "last");
    json_uint(out, window->last);
    json_key(out, "coding");
    json_text(out, body_coding_names[window->coding]);
    json_key(out, "crc32");
    json_uint(out, window->window.crc32);
    json_key(out, "body");
    json_text(out, body_name);
    json_key(out, "reason");
    json_text(out, reason);
    json_key(out, "ts_ns");
    json_int(out, clock_wall_ns());
    bytes_append_text(out, "}\n");
}

gpufl_status quarantine_add(const char *dir, const char *session_id, enum channel channel,
                            const struct stream_window *window, const char *reason, struct problem *problem)
{
    char name[160], body_name[180], note_name[180];
    snprintf(name, sizeof name, "%.64s.%s.%" PRIu64, session_id, channel_names[channel], window->first);
    snprintf(body_name, sizeof body_name, "%s.%s", name, window->coding == BODY_ZSTD ? "zst" : "gz");
    snprintf(note_name, sizeof note_name, "%s.json", name);
    gpufl_status status = directory_make(dir, problem);
    if (status)
        return status;
    struct bytes note = {0};
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    describe(&note, session_id, channel, window, reason, body_name);
    errno = fd < 0 ? errno : ENOMEM;
    status = fd < 0 || note.failed ? GPUFL_E_IO : GPUFL_OK;
    if (!status)
        status = file_replace(fd, body_name, window->window.body.data, window->window.body.size);
    if (!status)
        status = file_replace(fd, note_name, note.data, note.size);
    if (status)
        problem_set(problem, status, "cannot write %.300s/%s: %s", dir, name, strerror(errno));
    bytes_free(&note);
    if (fd >= 0)
        close(fd);
    return status;
}
