/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/names.h"

#include "base/demangle.h"

#include <string.h>

enum { function_bytes_max = 8 << 20, metric_bytes_max = 1 << 20 };

void names_open(struct names *names, struct recorder *recorder)
{
    *names = (struct names){.recorder = recorder,
                            .functions = {.text_bytes_max = function_bytes_max},
                            .metrics = {.text_bytes_max = metric_bytes_max}};
}

void names_close(struct names *names)
{
    intern_free(&names->functions);
    intern_free(&names->metrics);
    bytes_free(&names->text);
}

static uint32_t identify(struct names *names, struct intern *table, const char *text, size_t size, bool *is_new)
{
    *is_new = false;
    uint32_t id = intern_id(table, text, size, is_new);
    if (!id)
        recorder_lose(names->recorder, LOSS_NAMES, 1);
    return id;
}

uint32_t names_function(struct names *names, const char *symbol)
{
    bool is_new;
    size_t size = strlen(symbol);
    uint32_t id = identify(names, &names->functions, symbol, size, &is_new);
    if (is_new) {
        demangle(symbol, &names->text);
        recorder_define(names->recorder, DICTIONARY_FUNCTION, id, names->text.data, names->text.size);
        recorder_define(names->recorder, DICTIONARY_FUNC_SYMBOL, id, symbol, size);
    }
    return id;
}

uint32_t names_stack(struct names *names, const char *text, size_t size)
{
    bool is_new;
    uint32_t id = identify(names, &names->functions, text, size, &is_new);
    if (is_new)
        recorder_define(names->recorder, DICTIONARY_FUNCTION, id, text, size);
    return id;
}

uint32_t names_metric(struct names *names, const char *metric)
{
    bool is_new;
    size_t size = strlen(metric);
    uint32_t id = identify(names, &names->metrics, metric, size, &is_new);
    if (is_new)
        recorder_define(names->recorder, DICTIONARY_METRIC, id, metric, size);
    return id;
}

static size_t table_bytes(const struct intern *table)
{
    return table->text_bytes + table->capacity * (sizeof(struct intern_entry) + 2 * sizeof(uint32_t));
}

size_t names_bytes(const struct names *names)
{
    return table_bytes(&names->functions) + table_bytes(&names->metrics) + names->text.capacity;
}
