/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/session_source.h"

#include "logfile/segment.h"

#include <unistd.h>

enum line_coding session_file_coding(const struct session_file *file)
{
    return file->kind == SESSION_FILE_SEALED   ? LINE_CODING_ZSTD
           : file->kind == SESSION_FILE_WINDOW ? LINE_CODING_GZIP
                                               : LINE_CODING_PLAIN;
}

static bool has_good_footer(const struct session_files *files, const struct session_file *file)
{
    struct segment_footer footer;
    int fd = session_file_open(files->dir_fd, file->name);
    bool is_good = fd >= 0 && !segment_footer_read(fd, &footer, NULL);
    if (fd >= 0)
        close(fd);
    return is_good;
}

void session_files_mark_shadowed(const struct session_files *files, bool *is_shadowed)
{
    for (size_t i = 0; i + 1 < files->log_count; i++) {
        const struct session_file *a = &files->items[i], *b = &files->items[i + 1];
        if (a->channel != b->channel || a->index != b->index || !a->index)
            continue;
        if (a->kind == SESSION_FILE_ROTATED && b->kind == SESSION_FILE_SEALED)
            is_shadowed[has_good_footer(files, b) ? i : i + 1] = true;
        else if (a->kind == SESSION_FILE_WINDOW && b->kind == SESSION_FILE_RETIRED)
            is_shadowed[i + 1] = true;
    }
}
