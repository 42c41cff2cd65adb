/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/stacked_rows.h"

#include <stdlib.h>
#include <sys/mman.h>

struct stacked_row {
    struct work work;
    struct call call; /* a copy: its slot is reused after a while */
};

enum { rows_max = 32 * 1024 }; /* 5 MiB, allocated on first use; power of two */

struct stacked_rows {
    struct recorder *recorder;
    struct stacks *stacks;
    struct stacked_row *rows; /* ring: rows[(first + i) & (rows_max - 1)] */
    uint32_t first, count;
};

gpufl_status stacked_rows_make(struct stacked_rows **out, struct recorder *recorder, struct stacks *stacks)
{
    struct stacked_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return GPUFL_E_NO_MEMORY;
    void *memory =
        mmap(NULL, rows_max * sizeof(struct stacked_row), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(rows);
        return GPUFL_E_NO_MEMORY;
    }
    *rows = (struct stacked_rows){.recorder = recorder, .stacks = stacks, .rows = memory};
    *out = rows;
    return GPUFL_OK;
}

void stacked_rows_free(struct stacked_rows *rows)
{
    if (!rows)
        return;
    munmap(rows->rows, rows_max * sizeof(struct stacked_row));
    free(rows);
}

static void write_row(struct stacked_rows *rows, const struct work *work, struct call call, uint32_t text_id)
{
    call.stack_id = text_id;
    work_row_write(rows->recorder, work, &call);
}

static void write_first(struct stacked_rows *rows, uint32_t text_id)
{
    const struct stacked_row *row = &rows->rows[rows->first++ & (rows_max - 1)];
    rows->count--;
    write_row(rows, &row->work, row->call, text_id);
}

void stacked_rows_add(struct stacked_rows *rows, const struct work *work, const struct call *call)
{
    uint32_t text_id;
    if (stacks_find_text(rows->stacks, call->stack_id, &text_id)) {
        write_row(rows, work, *call, text_id);
        return;
    }
    if (rows->count == rows_max) {
        recorder_lose(rows->recorder, LOSS_STACK_LATE, 1);
        write_first(rows, 0);
    }
    rows->rows[(rows->first + rows->count++) & (rows_max - 1)] = (struct stacked_row){*work, *call};
}

void stacked_rows_settle(struct stacked_rows *rows)
{
    uint32_t text_id;
    /* Stacks are resolved in order, so rows behind the first can hardly be written earlier. */
    while (rows->count &&
           stacks_find_text(rows->stacks, rows->rows[rows->first & (rows_max - 1)].call.stack_id, &text_id))
        write_first(rows, text_id);
}

size_t stacked_rows_bytes(const struct stacked_rows *rows)
{
    return sizeof *rows + rows_max * sizeof(struct stacked_row);
}
