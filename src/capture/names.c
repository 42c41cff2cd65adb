/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/names.h"

#include "base/demangle.h"
#include "base/sha256.h"

#include <string.h>

enum { function_bytes_max = 8 << 20, metric_bytes_max = 1 << 20, stack_bytes_max = 32 << 20 };

void names_open(struct names *names, struct recorder *recorder)
{
    *names = (struct names){.recorder = recorder,
                            .functions = {.text_bytes_max = function_bytes_max},
                            .metrics = {.text_bytes_max = metric_bytes_max},
                            .stack_bytes_max = stack_bytes_max};
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
    uint8_t digest[SHA256_SIZE];
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, text, size);
    sha256_end(&hash, digest);
    uint32_t id = intern_find(&names->functions, digest, sizeof digest);
    if (id)
        return id;
    bool is_new = false;
    if (names->stack_bytes + size > names->stack_bytes_max)
        recorder_lose(names->recorder, LOSS_NAMES, 1);
    else
        id = identify(names, &names->functions, (const char *)digest, sizeof digest, &is_new);
    if (is_new) {
        names->stack_bytes += size;
        recorder_define(names->recorder, DICTIONARY_FUNCTION, id, text, size);
    }
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
