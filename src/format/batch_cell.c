/* SPDX-License-Identifier: Apache-2.0 */
#include "format/batch_cell.h"

#include "format/json.h"

char *cell_put_f64(char *at, int64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    struct bytes text = {.data = at, .capacity = CELL_SIZE_MAX, .limit = CELL_SIZE_MAX};
    json_double(&text, value);
    return at + text.size;
}
