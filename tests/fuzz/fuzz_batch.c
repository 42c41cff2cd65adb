/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes for the batch reader: accepted input must be JSON, and must have the same values after transposing
 * and expanding. */
#include "format/batch.h"
#include "format/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void views_compare(const struct batch_view *a, const struct batch_view *b)
{
    if (a->info != b->info || a->row_count != b->row_count || a->version != b->version || a->batch_id != b->batch_id ||
        a->base_time_ns != b->base_time_ns || a->seq != b->seq)
        abort();
    for (unsigned c = 0; c < a->info->column_count; c++) {
        if (a->columns[c].present != b->columns[c].present)
            abort();
        if (a->columns[c].present && a->row_count &&
            memcmp(a->columns[c].cells, b->columns[c].cells, a->row_count * sizeof(int64_t)) != 0)
            abort();
    }
}

/* Expanding columns to rows keeps the values; rows stay unchanged. */
static void expand_compare(const struct batch_view *view, const struct bytes *columns)
{
    struct batch_view expanded = {0};
    struct bytes rows = {0};
    if (batch_expand(columns->data, columns->size, &rows) != GPUFL_OK ||
        batch_decode(&expanded, rows.data, rows.size, NULL) != GPUFL_OK)
        abort();
    views_compare(view, &expanded);
    batch_view_free(&expanded);
    bytes_free(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = (const char *)data;
    struct batch_view view = {0}, again = {0};
    struct json_document document;
    struct json_error error = {0};
    struct bytes out = {0};
    if (batch_decode(&view, line, size, &error) == GPUFL_OK) {
        if (json_parse(&document, line, size, NULL) != GPUFL_OK)
            abort();
        json_free(&document);
        gpufl_status status = batch_transpose(line, size, &out);
        if (status == GPUFL_OK) {
            if (batch_decode(&again, out.data, out.size, NULL) != GPUFL_OK)
                abort();
            views_compare(&view, &again);
            expand_compare(&view, &out);
        } else if (status != GPUFL_E_UNSUPPORTED) {
            abort();
        }
    } else if (error.column == 0 || error.column > size + 1 || !error.text[0]) {
        abort();
    }
    bytes_free(&out);
    batch_view_free(&view);
    batch_view_free(&again);
    return 0;
}
