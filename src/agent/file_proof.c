/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/file_proof.h"

#include "format/batch.h"
#include "format/json.h"
#include "logfile/log_line.h"
#include "logfile/session_source.h"

#include <sys/stat.h>
#include <unistd.h>

struct proving {
    struct file_proof *proof;
    const struct session_file *file;
    const struct session_state *state;
    struct batch_view view;
    bool is_named;  /* a record names the session */
    bool is_broken; /* the previous line is not a record; only a recorded end of the program makes this acceptable */
    bool is_foreign;
};

static bool is_published(const struct session_file *file)
{
    return file->kind == SESSION_FILE_WINDOW || file->kind == SESSION_FILE_RETIRED;
}

static void count_record(struct proving *proving, const struct log_line *line)
{
    const struct session_file *file = proving->file;
    const struct channel_state *state = &proving->state->channels[file->channel];
    proving->proof->records++;
    if (is_published(file))
        proving->proof->unsent += file->index >= state->next_window;
    else if (line->seq < 0)
        proving->proof->unnumbered++;
    else
        proving->proof->unsent += (uint64_t)line->seq >= state->next_line;
}

static void prove_line(struct proving *proving, const char *text, size_t size)
{
    struct log_line line = {.line = 0};
    struct json_document document = {0};
    char reason[LINE_REASON_SIZE];
    bool was_broken = proving->is_broken;
    gpufl_status status = log_line_decode(&line, &proving->view, &document, text, size, reason);
    proving->is_broken = status != GPUFL_OK;
    proving->is_foreign |= status == GPUFL_E_NO_MEMORY; /* out of memory: it could be anything */
    if (!proving->is_broken) {
        enum line_session whose = log_line_session(&line, proving->state->session_id);
        bool is_end = line.type == RECORD_SHUTDOWN && json_get_bool(line.object, "synthetic", false);
        proving->is_named |= whose == LINE_SESSION_SAME;
        /* Whoever recorded the end of a killed program terminated its torn line first. */
        proving->is_foreign |= whose == LINE_SESSION_OTHER || (was_broken && !is_end);
        if (whose != LINE_SESSION_OTHER)
            count_record(proving, &line);
    }
    json_free(&document);
}

static void prove_lines(struct proving *proving, struct line_source *lines)
{
    const char *text;
    size_t size;
    enum line_result result;
    while (!proving->is_foreign && (result = line_source_next(lines, &text, &size)) != LINE_NO_MORE) {
        if (result == LINE_WHOLE)
            prove_line(proving, text, size);
        else if (result != LINE_UNENDED || lines->coding != LINE_CODING_PLAIN)
            proving->is_foreign = true;
        if (result == LINE_FAILED)
            break;
    }
    proving->is_foreign |= lines->has_failed || proving->is_broken;
}

void file_prove(struct file_proof *proof, const struct session_files *files, const struct session_file *file,
                const struct session_state *state)
{
    struct proving proving = {.proof = proof, .file = file, .state = state};
    struct line_source lines;
    struct stat info;
    *proof = (struct file_proof){0};
    int fd = session_file_open(files->dir_fd, file->name);
    if (fd < 0)
        return;
    if (!fstat(fd, &info) && !line_source_open(&lines, fd, session_file_coding(file), UINT64_MAX)) {
        proof->bytes = (uint64_t)info.st_size;
        prove_lines(&proving, &lines);
        proof->is_recording = proving.is_named && !proving.is_foreign;
        proof->records = proving.is_named ? proof->records : 0;
        line_source_close(&lines);
    }
    batch_view_free(&proving.view);
    close(fd);
}
