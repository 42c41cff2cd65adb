/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a request body, encoded and split as the first byte selects, through all code between the network
 * and the store; the store only counts. */
#include "server/ingest.h"
#include "store/store_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct counting_write {
    struct store_write base;
    uint64_t lines;
};

static gpufl_status write_begin(struct store *store, const struct store_identity *identity, struct store_write **out,
                                enum store_delivery *delivery, struct problem *problem)
{
    (void)identity, (void)problem;
    struct counting_write *write = calloc(1, sizeof *write);
    if (!write)
        return GPUFL_E_NO_MEMORY;
    write->base.store = store;
    *out = &write->base;
    *delivery = STORE_NEW;
    return GPUFL_OK;
}

static gpufl_status write_line(struct store_write *write, const struct log_line *line, const char *text, size_t size,
                               bool *is_repeated, struct problem *problem)
{
    (void)text, (void)size;
    /* Lines passed on by ingest are complete. */
    if (!line->batch == !line->object || line->channel >= CHANNEL_COUNT)
        abort();
    for (unsigned i = 0; line->batch && i < line->batch->info->column_count; i++)
        if (line->batch->columns[i].present && line->batch->row_count && !line->batch->columns[i].cells)
            abort();
    if (line->type == RECORD_LOSS)
        return problem_set(problem, GPUFL_E_INVALID, "refused now and then");
    ((struct counting_write *)write)->lines++;
    if (is_repeated)
        *is_repeated = false;
    return GPUFL_OK;
}

static void write_name(struct store_write *write, const char *window_id, uint32_t crc)
{
    (void)write, (void)window_id, (void)crc;
}

static gpufl_status write_commit(struct store_write *write, struct store_written *written, struct problem *problem)
{
    (void)problem;
    *written = (struct store_written){.delivery = STORE_NEW, .lines = ((struct counting_write *)write)->lines};
    free(write);
    return GPUFL_OK;
}

static void write_abort(struct store_write *write)
{
    free(write);
}

static char dir[256];

static void remove_dir(void)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (system(command))
        _exit(1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct store_engine engine = {.write_begin = write_begin,
                                               .write_line = write_line,
                                               .write_name = write_name,
                                               .write_commit = write_commit,
                                               .write_abort = write_abort};
    static struct store store = {.engine = &engine};
    static struct ingest ingest;
    static struct live *live;
    if (!dir[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(dir, sizeof dir, "%.200s/gpufl-fuzz-XXXXXX", base ? base : "/tmp");
        if (!mkdtemp(dir) || live_open(&live) || ingest_open(&ingest, &store, live, dir, NULL, NULL))
            abort();
        ingest.quarantine.bytes_max = 0; /* nothing is stored: files would take most of the time */
        atexit(remove_dir);
    }
    if (!size)
        return 0;
    struct ingest_head head = {.session_id = "0f8fad5b-d9cb-469f-a165-70867728950e",
                               .channel = (enum channel)(data[0] / 3 % (CHANNEL_COUNT + 1)),
                               .coding = (enum content_coding)(data[0] % CONTENT_CODING_COUNT)};
    size_t piece = data[0] >= 128 ? 1u + data[0] % 16u : size;
    struct ingest_answer answer;
    struct ingest_body *body;
    if (ingest_body_open(&body, &ingest, &head, &answer))
        abort();
    for (size_t at = 1; at < size; at += piece)
        ingest_body_data(body, data + at, size - at < piece ? size - at : piece);
    ingest_body_end(body, &answer);
    if (answer.status < 200 || (answer.status >= 300 && !answer.message[0]) || atomic_load(&ingest.flight_bytes))
        abort();
    return 0;
}
