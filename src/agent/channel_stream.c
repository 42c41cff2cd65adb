/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/channel_stream.h"

#include "agent/published_window.h"
#include "base/crc32c.h"
#include "logfile/segment.h"
#include "logfile/session_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A body must fit in memory, and the server must be able to store it as one piece; a longer line is sent alone. */
enum { RAW_BYTES_MAX = 16 << 20, BODY_BYTES_MAX = 8 << 20, MARK_BYTES = 256 };

gpufl_status stream_window_open(struct stream_window *window)
{
    *window = (struct stream_window){.is_published = false};
    for (int i = 0; i < BODY_CODING_COUNT; i++)
        if (body_coder_open(&window->coders[i], (enum body_coding)i)) {
            stream_window_close(window);
            return GPUFL_E_NO_MEMORY;
        }
    return GPUFL_OK;
}

void stream_window_close(struct stream_window *window)
{
    for (int i = 0; i < BODY_CODING_COUNT; i++)
        body_coder_close(&window->coders[i]);
    wire_line_free(&window->line);
    window_free(&window->window);
}

static bool is_ours(const struct stream_source *source, const struct channel_stream *stream, size_t index)
{
    const struct session_file *file = &source->files->items[index];
    if (file->channel != stream->channel || source->is_shadowed[index])
        return false;
    return file->kind == SESSION_FILE_LIVE || file->kind == SESSION_FILE_ROTATED || file->kind == SESSION_FILE_SEALED ||
           (file->kind == SESSION_FILE_FLAT && source->is_settled);
}

/* The next file of the channel from `index` on; log_count: there is none. */
static size_t next_file(const struct stream_source *source, const struct channel_stream *stream, size_t index)
{
    while (index < source->files->log_count && !is_ours(source, stream, index))
        index++;
    return index;
}

/* An open file of the stream. */
struct stream_file {
    const char *name; /* borrowed */
    int fd;
    enum line_coding coding;
    struct stat info;
    bool is_final; /* nothing more will be appended */
};

static bool file_open(struct stream_file *file, const struct stream_source *source, size_t index)
{
    const struct session_file *item = &source->files->items[index];
    *file = (struct stream_file){.name = item->name,
                                 .fd = session_file_open(source->files->dir_fd, item->name),
                                 .coding = session_file_coding(item),
                                 .is_final = item->kind != SESSION_FILE_LIVE};
    if (file->fd >= 0 && fstat(file->fd, &file->info)) {
        close(file->fd);
        file->fd = -1;
    }
    return file->fd >= 0;
}

/* The number of the file's first line; 0: no line has one. */
static uint64_t first_number(const struct stream_source *source, size_t index)
{
    struct stream_file file;
    uint64_t number = 0;
    if (!file_open(&file, source, index))
        return 0;
    struct segment_footer footer;
    struct line_source lines;
    if (file.coding == LINE_CODING_ZSTD && !segment_footer_read(file.fd, &footer, NULL)) {
        number = footer.first_seq;
    } else if (lseek(file.fd, 0, SEEK_SET) == 0 && !line_source_open(&lines, file.fd, file.coding, UINT64_MAX)) {
        const char *text;
        size_t size;
        if (line_source_next(&lines, &text, &size) == LINE_WHOLE) {
            struct line_end end = line_end_read(text, size);
            number = end.crc == LINE_CRC_GOOD && end.seq > 0 ? (uint64_t)end.seq : 0;
        }
        line_source_close(&lines);
    }
    close(file.fd);
    return number;
}

static uint32_t mark_of(int fd, size_t size)
{
    char begin[MARK_BYTES];
    ssize_t got = pread(fd, begin, size < sizeof begin ? size : sizeof begin, 0);
    return got > 0 ? crc32c(0, begin, (size_t)got) : 0;
}

static bool has_inode(const struct stream_source *source, size_t index, const struct stream_place *place)
{
    struct stat info;
    const struct session_file *file = &source->files->items[index];
    return session_file_coding(file) == LINE_CODING_PLAIN &&
           !fstatat(source->files->dir_fd, file->name, &info, AT_SYMLINK_NOFOLLOW) && info.st_ino == place->inode &&
           (uint64_t)info.st_size >= place->offset;
}

/* Finds the file to continue in. *place: the position in it; if unknown, line numbers are read from the lines. */
static size_t find_start(const struct channel_stream *stream, const struct stream_source *source, uint64_t next,
                         struct stream_place *place)
{
    size_t first = next_file(source, stream, 0);
    for (size_t i = first; stream->place.is_known && i < source->files->log_count;
         i = next_file(source, stream, i + 1)) {
        if (has_inode(source, i, &stream->place)) {
            *place = stream->place;
            return i;
        }
    }
    *place = (struct stream_place){.is_known = false};
    size_t found = first;
    for (size_t i = first; next > 1 && i < source->files->log_count; i = next_file(source, stream, i + 1)) {
        uint64_t number = first_number(source, i);
        if (number && number <= next)
            found = i;
        if (number > next)
            break;
    }
    return found;
}

/* State while walking over a file's lines. */
struct walk {
    struct channel_stream *stream;
    const struct channel_state *state;
    struct stream_window *window;
    struct stream_file file;
    struct line_source lines;
    uint64_t begin_offset; /* of the buffer that lines reads */
    uint64_t next;         /* number of the first requested line */
    uint64_t last;         /* number of the last requested line */
    uint64_t expected;     /* number of the next line; 0: not known */
    bool is_fresh;         /* nothing of the file was read before: numbers below next are out of order */
    bool is_at_begin;      /* of the file */
    bool is_after_damage;  /* the previous line was damaged */
    bool is_file_damaged;
};

enum walk_result { WALK_ON, WALK_FULL, WALK_AGAIN, WALK_NO_MEMORY, WALK_UNREAD };

static void note_reason(struct walk *walk, const char *why)
{
    snprintf(walk->window->reason, sizeof walk->window->reason, "%.100s: %.140s", walk->file.name, why);
}

static void pass_over(struct walk *walk, uint64_t number)
{
    walk->expected = number + 1;
    walk->window->next = number >= walk->window->next ? number + 1 : walk->window->next;
    if (walk->file.coding != LINE_CODING_PLAIN)
        return;
    struct stream_place *place = &walk->window->place;
    place->offset = walk->begin_offset + walk->lines.plain_bytes - (walk->lines.end - walk->lines.begin);
    place->number = number + 1;
    if (!place->is_known) {
        place->is_known = true;
        place->inode = walk->file.info.st_ino;
        place->mark_size = place->offset < MARK_BYTES ? (size_t)place->offset : MARK_BYTES;
        place->mark = mark_of(walk->file.fd, place->mark_size);
    }
}

static bool line_fits(const struct stream_window *window)
{
    size_t size = window->line.text.size;
    return !window->window.lines || (window->window.raw_bytes + size <= RAW_BYTES_MAX &&
                                     window->window.body.size + BODY_HELD_BACK_BYTES + size <= BODY_BYTES_MAX);
}

static enum walk_result take_good_line(struct walk *walk, uint64_t number)
{
    struct stream_window *window = walk->window;
    if (!walk->state->pending.is_set && !line_fits(window))
        return WALK_FULL;
    if (!body_coder_add(&window->coders[window->coding], &window->window.body, window->line.text.data,
                        window->line.text.size))
        return WALK_NO_MEMORY;
    if (!window->window.lines)
        window->first = number;
    window->last = number;
    window->window.lines++;
    window->window.events += window->line.events;
    window->window.raw_bytes += window->line.text.size;
    window->has_shutdown |= window->line.type == RECORD_SHUTDOWN;
    pass_over(walk, number);
    return WALK_ON;
}

static enum walk_result take_line(struct walk *walk, const char *text, size_t size, bool is_readable)
{
    struct stream_window *window = walk->window;
    struct line_end end = is_readable ? line_end_read(text, size) : (struct line_end){.seq = -1};
    bool has_number = is_readable && end.crc == LINE_CRC_GOOD && end.seq > 0;
    uint64_t number = has_number ? (uint64_t)end.seq : walk->expected ? walk->expected : 1;
    bool is_at_begin = walk->is_at_begin;
    walk->is_at_begin = false;
    if (number < walk->next) {
        window->left_out_lines += walk->is_fresh && has_number;
        uint64_t expected = walk->expected;
        pass_over(walk, number);
        walk->expected = has_number && walk->is_fresh ? expected : walk->expected;
        return WALK_ON;
    }
    /* The preceding file may have been rotated between listing and opening: list again before reporting a gap. */
    if (is_at_begin && number > walk->next && walk->stream->gap_number != number) {
        walk->stream->gap_number = number;
        return WALK_AGAIN;
    }
    if (number > walk->last)
        return WALK_FULL;
    gpufl_status status = is_readable ? wire_line_make(&window->line, text, size) : GPUFL_E_DAMAGED;
    if (status == GPUFL_E_NO_MEMORY)
        return WALK_NO_MEMORY;
    bool is_good = status == GPUFL_OK;
    enum walk_result result = is_good ? take_good_line(walk, number) : WALK_ON;
    if (result != WALK_ON)
        return result;
    window->missing_lines += number - walk->next;
    walk->next = number + 1;
    /* Whoever recorded the end of a killed program terminated its torn line first, which is not damage. */
    if (is_good && walk->is_after_damage && window->line.is_synthetic)
        window->left_out_lines--;
    walk->is_after_damage = !is_good;
    if (!is_good) {
        window->left_out_lines++;
        pass_over(walk, number);
    }
    return WALK_ON;
}

/* Tells a damaged file from temporary trouble. If reading failed while more bytes of the file are expected, or if there
 * was no memory for the current line, the next attempt may succeed. */
static bool is_decoder_failure(const struct walk *walk)
{
    const struct line_source *lines = &walk->lines;
    bool is_read_to_its_end = lseek(walk->file.fd, 0, SEEK_CUR) >= walk->file.info.st_size;
    return lines->coding != LINE_CODING_PLAIN && lines->end < lines->capacity &&
           (lines->input_end > 0 || is_read_to_its_end);
}

/* Reads the open file until the window ends. */
static enum walk_result walk_lines(struct walk *walk)
{
    for (;;) {
        const char *text;
        size_t size;
        enum line_result result = line_source_next(&walk->lines, &text, &size);
        if (result == LINE_NO_MORE)
            return WALK_ON;
        /* When reading fails within a line, its beginning is returned first; ignore it. */
        if (result != LINE_WHOLE && walk->lines.has_failed && !is_decoder_failure(walk)) {
            note_reason(walk, walk->lines.reason);
            return WALK_UNREAD;
        }
        if (result == LINE_FAILED) {
            note_reason(walk, walk->lines.reason);
            walk->is_file_damaged = walk->window->has_damage = true;
            return WALK_ON;
        }
        if (result == LINE_UNENDED && !walk->file.is_final)
            return WALK_ON; /* the writer is writing it, or was killed while doing so */
        enum walk_result taken = take_line(walk, text, size, result == LINE_WHOLE);
        if (taken != WALK_ON)
            return taken;
    }
}

static enum walk_result walk_file(struct walk *walk, const struct stream_place *place)
{
    uint64_t size = UINT64_MAX;
    walk->begin_offset = 0;
    walk->is_file_damaged = false;
    walk->is_at_begin = !place->is_known || !place->offset;
    walk->is_fresh = place->is_known;
    walk->expected = place->is_known ? place->number : walk->expected;
    if (walk->file.coding == LINE_CODING_PLAIN) {
        walk->begin_offset = place->is_known ? place->offset : 0;
        if ((uint64_t)walk->file.info.st_size < walk->begin_offset)
            return WALK_AGAIN;
        if (place->is_known &&
            (walk->file.info.st_ino != place->inode || mark_of(walk->file.fd, place->mark_size) != place->mark)) {
            walk->stream->place.is_known = false; /* the file was replaced */
            return WALK_AGAIN;
        }
        size = (uint64_t)walk->file.info.st_size - walk->begin_offset;
    }
    if (lseek(walk->file.fd, (off_t)walk->begin_offset, SEEK_SET) < 0)
        return WALK_AGAIN;
    if (line_source_open(&walk->lines, walk->file.fd, walk->file.coding, size))
        return WALK_NO_MEMORY;
    walk->window->place = *place;
    enum walk_result result = walk_lines(walk);
    if (result == WALK_FULL && walk->file.coding == LINE_CODING_PLAIN)
        walk->window->backlog_bytes += (uint64_t)walk->file.info.st_size - walk->window->place.offset;
    line_source_close(&walk->lines);
    return result;
}

static void add_backlog(const struct channel_stream *stream, const struct stream_source *source, size_t index,
                        struct stream_window *window)
{
    struct stat info;
    for (size_t i = next_file(source, stream, index); i < source->files->log_count;
         i = next_file(source, stream, i + 1))
        if (!fstatat(source->files->dir_fd, source->files->items[i].name, &info, AT_SYMLINK_NOFOLLOW))
            window->backlog_bytes += (uint64_t)info.st_size;
}

static enum stream_result finish_window(struct channel_stream *stream, const struct stream_source *source,
                                        const struct channel_state *state, struct stream_window *window,
                                        bool is_reached)
{
    if (!window->window.lines && state->pending.is_set && is_reached) {
        /* The lines of the pending window are gone. */
        window->missing_lines = state->pending.last + 1 - state->next_line;
        window->next = state->pending.last + 1;
        return STREAM_PASSED;
    }
    if (!window->window.lines)
        return window->next > state->next_line ? STREAM_PASSED : STREAM_NOTHING;
    if (!body_coder_end(&window->coders[window->coding], &window->window.body)) {
        snprintf(window->reason, sizeof window->reason, "no memory for a window");
        return STREAM_FAILED;
    }
    window->window.crc32 = body_crc32(window->window.body.data, window->window.body.size);
    if (state->pending.is_set) {
        /* The window keeps its id, even if one of its lines can no longer be read. */
        window->first = state->pending.first;
        window->last = state->pending.last;
        window->next = window->last + 1 > window->next ? window->last + 1 : window->next;
    }
    window_id_of_lines(window->id, source->session_id, stream->channel, window->first, window->last);
    return STREAM_WINDOW;
}

static enum stream_result read_lines(struct channel_stream *stream, const struct stream_source *source,
                                     const struct channel_state *state, struct stream_window *window)
{
    const size_t count = source->files->log_count;
    struct stream_place place;
    struct walk walk = {.stream = stream,
                        .state = state,
                        .window = window,
                        .next = state->next_line,
                        .last = state->pending.is_set ? state->pending.last : UINT64_MAX};
    window->place = stream->place;
    size_t i = find_start(stream, source, state->next_line, &place);
    bool is_reached = false; /* the end of the window was reached */
    for (; i < count; i = next_file(source, stream, i + 1)) {
        if (!file_open(&walk.file, source, i)) {
            if (errno == ENOENT)
                return STREAM_AGAIN; /* sealed or deleted since it was listed */
            note_reason(&walk, session_file_error(errno));
            return STREAM_FAILED;
        }
        walk.file.is_final |= next_file(source, stream, i + 1) < count;
        enum walk_result result = walk_file(&walk, &place);
        close(walk.file.fd);
        if (result == WALK_NO_MEMORY) {
            snprintf(window->reason, sizeof window->reason, "no memory for a window");
            return STREAM_FAILED;
        }
        if (result == WALK_AGAIN && !window->window.lines)
            return STREAM_AGAIN;
        /* A pending window must be sent again unchanged. */
        if (result == WALK_UNREAD && (!window->window.lines || state->pending.is_set))
            return STREAM_FAILED;
        if (walk.is_file_damaged && !window->window.lines && next_file(source, stream, i + 1) == count)
            return window->next > state->next_line ? STREAM_PASSED : STREAM_FAILED;
        is_reached = result == WALK_FULL;
        if (window->window.lines || is_reached) {
            add_backlog(stream, source, i + 1, window);
            break;
        }
        place = (struct stream_place){.is_known = false};
    }
    return finish_window(stream, source, state, window, is_reached);
}

enum stream_result channel_stream_read(struct channel_stream *stream, const struct stream_source *source,
                                       const struct channel_state *state, struct stream_window *window)
{
    bytes_clear(&window->window.body);
    window->window.lines = window->window.events = window->window.raw_bytes = 0;
    window->coding = state->pending.is_set ? state->pending.coding : source->coding;
    window->is_published = window->has_shutdown = window->has_damage = false;
    window->left_out_lines = window->missing_lines = window->left_out_windows = window->backlog_bytes = 0;
    window->next = state->next_line;
    window->reason[0] = '\0';
    body_coder_begin(&window->coders[window->coding]);
    if (published_window_is_next(stream, source, state))
        return published_window_read(stream, source, state, window);
    return read_lines(stream, source, state, window);
}
