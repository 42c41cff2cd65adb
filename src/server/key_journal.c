/* SPDX-License-Identifier: Apache-2.0 */
#include "server/key_journal.h"

#include "base/directory.h"
#include "format/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_NAME "key_usage.json"
enum { FILE_BYTES_MAX = 16 << 20 };

static gpufl_status directory_open(const char *data_dir, int *fd, struct problem *problem)
{
    *fd = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *fd < 0 ? problem_set(problem, GPUFL_E_IO, "%.300s: %s", data_dir, strerror(errno)) : GPUFL_OK;
}

gpufl_status key_journal_load(struct key_ring *ring, const char *data_dir, struct problem *problem)
{
    struct bytes text = {0};
    struct json_document document;
    int fd;
    gpufl_status status = directory_open(data_dir, &fd, problem);
    if (status)
        return status;
    status = file_load(fd, FILE_NAME, FILE_BYTES_MAX, &text);
    if (status == GPUFL_E_NOT_FOUND) {
        status = GPUFL_OK; /* nothing has been sent yet */
    } else if (status) {
        problem_set(problem, status, "%.300s/" FILE_NAME " cannot be read", data_dir);
    } else if (json_parse(&document, bytes_text(&text), text.size, NULL)) {
        status = problem_set(problem, GPUFL_E_DAMAGED, "%.300s/" FILE_NAME " is damaged", data_dir);
    } else {
        const struct json_value *keys = json_member(document.root, "keys");
        struct key_usage usage = {.day = json_get_int(document.root, "day", 0)};
        for (const struct json_value *key = keys ? keys->child : NULL; key; key = key->next) {
            int64_t bytes = json_get_int(key, "bytes", 0);
            usage.bytes = bytes > 0 ? (uint64_t)bytes : 0;
            snprintf(usage.fingerprint, sizeof usage.fingerprint, "%s", json_get_text(key, "fingerprint", ""));
            key_ring_usage_restore(ring, &usage);
        }
        json_free(&document);
    }
    bytes_free(&text);
    close(fd);
    return status;
}

gpufl_status key_journal_save(struct key_ring *ring, const char *data_dir, uint64_t *saved_bytes,
                              struct problem *problem)
{
    struct key_usage *list;
    size_t count;
    struct bytes text = {0};
    uint64_t sum = 0;
    int fd;
    if (key_ring_usage(ring, &list, &count))
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the usage of keys");
    for (size_t i = 0; i < count; i++)
        sum += list[i].bytes;
    gpufl_status status = GPUFL_OK;
    if (sum != *saved_bytes && count) {
        bytes_append_format(&text, "{\"day\":%" PRId64 ",\"keys\":[", list[0].day);
        for (size_t i = 0; i < count; i++)
            bytes_append_format(&text, "%s{\"fingerprint\":\"%s\",\"bytes\":%" PRIu64 "}", i ? "," : "",
                                list[i].fingerprint, list[i].bytes);
        bytes_append_text(&text, "]}\n");
        status = directory_open(data_dir, &fd, problem);
        if (!status) {
            status = text.failed ? GPUFL_E_NO_MEMORY : file_replace(fd, FILE_NAME, text.data, text.size);
            if (status)
                problem_set(problem, status, "%.300s/" FILE_NAME ": %s", data_dir, strerror(errno));
            close(fd);
        }
    }
    if (!status)
        *saved_bytes = sum;
    bytes_free(&text);
    free(list);
    return status;
}

gpufl_status key_journal_audit(struct key_ring *ring, struct store *store, struct problem *problem)
{
    struct key_refusal refusals[KEY_REFUSALS_MAX + 1];
    size_t count = key_ring_take_refusals(ring, refusals);
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < count && !status; i++) {
        const struct key_refusal *refusal = &refusals[i];
        char detail[256];
        int size = snprintf(detail, sizeof detail, "%s",
                            refusal->peer[0] ? refusal->reason : "further refusals, not listed separately");
        if (refusal->count > 1)
            snprintf(detail + size, sizeof detail - (size_t)size, ", %" PRIu64 " times", refusal->count);
        const struct store_audit entry = {.ts_ns = refusal->first_ns,
                                          .actor = refusal->peer[0] ? refusal->peer : "others",
                                          .action = "key.refused",
                                          .subject = refusal->label,
                                          .detail = detail};
        status = store_audit_add(store, &entry, problem);
    }
    return status;
}
