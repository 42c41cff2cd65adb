/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/published_window.h"

#include "logfile/session_source.h"
#include "logfile/windows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_candidate(const struct channel_stream *stream, const struct stream_source *source, size_t index)
{
    const struct session_file *file = &source->files->items[index];
    return file->channel == stream->channel && !source->is_shadowed[index] &&
           (file->kind == SESSION_FILE_WINDOW || file->kind == SESSION_FILE_RETIRED ||
            file->kind == SESSION_FILE_ACTIVE);
}

bool published_window_is_next(const struct channel_stream *stream, const struct stream_source *source,
                              const struct channel_state *state)
{
    if (state->pending.is_set)
        return state->pending.is_published;
    for (size_t i = 0; i < source->files->log_count; i++)
        if (is_candidate(stream, source, i))
            return true;
    return false;
}

/* The file with the lowest number that the server does not have, and its *number. log_count: there is none. */
static size_t find_file(const struct channel_stream *stream, const struct stream_source *source, uint64_t next,
                        uint64_t *number)
{
    uint64_t last = 0;
    for (size_t i = 0; i < source->files->log_count; i++) {
        if (!is_candidate(stream, source, i))
            continue;
        const struct session_file *file = &source->files->items[i];
        *number = file->kind == SESSION_FILE_ACTIVE ? last + 1 : file->index;
        last = *number;
        if (*number >= next)
            return i;
    }
    return source->files->log_count;
}

static enum stream_result refuse(struct stream_window *window, const struct session_file *file, const char *why)
{
    snprintf(window->reason, sizeof window->reason, "%.90s: %.130s; not sent", file->name, why);
    window->left_out_windows++;
    return STREAM_PASSED;
}

/* The file may become readable later. */
static enum stream_result fail(struct stream_window *window, const struct session_file *file, const char *why)
{
    snprintf(window->reason, sizeof window->reason, "%.100s: %.140s", file->name, why);
    return STREAM_FAILED;
}

static enum stream_result read_payload(struct stream_window *window, const struct session_file *file, int fd)
{
    struct bytes *body = &window->window.body;
    struct stat info;
    if (fstat(fd, &info) || (uint64_t)info.st_size > window_limits_of_server.gzip_bytes_max)
        return refuse(window, file, "it exceeds the server's size limit");
    if (!bytes_reserve(body, (size_t)info.st_size + 1))
        return fail(window, file, "no memory for a window");
    ssize_t got;
    while ((got = pread(fd, body->data + body->size, body->capacity - body->size, (off_t)body->size)) > 0)
        body->size += (size_t)got;
    if (got < 0)
        return fail(window, file, strerror(errno));
    window->coding = BODY_GZIP;
    return STREAM_WINDOW;
}

/* Unpublished lines become one window in our format, with the number that they would have got. */
static enum stream_result read_unpublished(struct stream_window *window, const struct session_file *file, int fd)
{
    struct line_source lines;
    if (line_source_open(&lines, fd, LINE_CODING_PLAIN, UINT64_MAX))
        return fail(window, file, "no memory for a window");
    enum line_result result;
    bool is_good = true, has_memory = true;
    const char *text;
    size_t size;
    while (is_good && has_memory && (result = line_source_next(&lines, &text, &size)) != LINE_NO_MORE &&
           result != LINE_FAILED) {
        gpufl_status status = result == LINE_TOO_LONG ? GPUFL_E_DAMAGED : wire_line_make(&window->line, text, size);
        if (status) {
            window->left_out_lines += result != LINE_UNENDED;
            has_memory = status != GPUFL_E_NO_MEMORY;
            continue;
        }
        window->window.lines++;
        window->window.events += window->line.events;
        window->window.raw_bytes += window->line.text.size;
        window->has_shutdown |= window->line.type == RECORD_SHUTDOWN;
        has_memory = body_coder_add(&window->coders[window->coding], &window->window.body, window->line.text.data,
                                    window->line.text.size);
        is_good = window->window.raw_bytes <= window_limits_of_server.raw_bytes_max &&
                  window->window.body.size <= window_limits_of_server.gzip_bytes_max;
    }
    bool is_read = !lines.has_failed && has_memory;
    if (!is_read)
        (void)fail(window, file, lines.has_failed ? lines.reason : "no memory for a window");
    line_source_close(&lines);
    if (!is_read)
        return STREAM_FAILED;
    if (!is_good)
        return refuse(window, file, "it exceeds the server's size limit");
    if (!window->window.lines)
        return STREAM_PASSED;
    if (!body_coder_end(&window->coders[window->coding], &window->window.body))
        return fail(window, file, "no memory for a window");
    return STREAM_WINDOW;
}

enum stream_result published_window_read(const struct channel_stream *stream, const struct stream_source *source,
                                         const struct channel_state *state, struct stream_window *window)
{
    uint64_t number = 0;
    size_t index = find_file(stream, source, state->next_window, &number);
    window->is_published = true;
    window->next = state->next_window;
    if (index == source->files->log_count)
        return STREAM_NOTHING;
    const struct session_file *file = &source->files->items[index];
    bool is_payload = file->kind == SESSION_FILE_WINDOW;
    if (!is_payload && !source->is_settled)
        return STREAM_NOTHING; /* the program publishes it when it is complete */
    int fd = session_file_open(source->files->dir_fd, file->name);
    if (fd < 0 && errno == ENOENT)
        return STREAM_AGAIN;
    window->first = window->last = number;
    window->next = number + 1;
    window->left_out_windows = number - state->next_window; /* windows that were never published */
    struct problem problem = {""};
    enum stream_result result;
    if (fd < 0)
        result = errno == ELOOP || errno == EINVAL ? refuse(window, file, session_file_error(errno))
                                                   : fail(window, file, session_file_error(errno));
    else
        result = is_payload ? read_payload(window, file, fd) : read_unpublished(window, file, fd);
    if (result == STREAM_WINDOW && is_payload && !window_matches_sidecar(source->files, file, fd, &problem))
        result = refuse(window, file, problem.text);
    if (fd >= 0)
        close(fd);
    if (result == STREAM_WINDOW) {
        window->window.crc32 = body_crc32(window->window.body.data, window->window.body.size);
        if (!is_payload || !window_sidecar_id(source->files, file, window->id))
            window_id_make(window->id, source->session_id, stream->channel, number);
    }
    return result;
}
