/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/names.h"

#include "base/demangle.h"
#include "base/sha256.h"

#include <string.h>

enum { function_bytes_max = 8 << 20, metric_bytes_max = 1 << 20, stack_bytes_max = 32 << 20 };
#define HOUR_NS (INT64_C(3600) * 1000000000)

void names_open(struct names *names, struct recorder *recorder)
{
    *names = (struct names){.recorder = recorder,
                            .functions = {.bytes_max = function_bytes_max},
                            .metrics = {.bytes_max = metric_bytes_max},
                            .stack_bytes_max = stack_bytes_max};
}

void names_close(struct names *names)
{
    intern_cache_free(&names->functions);
    intern_cache_free(&names->metrics);
    bytes_free(&names->text);
}

static uint32_t identify(struct names *names, struct intern_cache *table, const char *text, size_t size, bool *is_new)
{
    uint32_t id = intern_cache_id(table, text, size, is_new);
    *is_new &= id != 0;
    if (!id)
        recorder_lose(names->recorder, LOSS_FUNCTION_NAMES, 1);
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

static bool has_room_for_stack(struct names *names, size_t size, int64_t now_ns)
{
    if (now_ns - names->stack_hour_ns >= HOUR_NS) {
        names->stack_hour_ns = now_ns;
        names->stack_bytes = 0;
    }
    return names->stack_bytes + size <= names->stack_bytes_max;
}

uint32_t names_stack(struct names *names, const char *text, size_t size, int64_t now_ns)
{
    uint8_t digest[SHA256_SIZE];
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, text, size);
    sha256_end(&hash, digest);
    bool is_new = !intern_find(&names->functions.table, digest, sizeof digest);
    uint32_t id = 0;
    if (!is_new || has_room_for_stack(names, size, now_ns))
        id = intern_cache_id(&names->functions, digest, sizeof digest, &is_new);
    if (!id) {
        recorder_lose(names->recorder, LOSS_STACK_TEXTS, 1);
    } else if (is_new) {
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

size_t names_bytes(const struct names *names)
{
    return intern_cache_bytes(&names->functions) + intern_cache_bytes(&names->metrics) + names->text.capacity;
}
