/* SPDX-License-Identifier: Apache-2.0 */
/* Members of the JSON report: unknown values become null. */
#ifndef GPUFL_ANALYSIS_REPORT_JSON_H
#define GPUFL_ANALYSIS_REPORT_JSON_H

#include "analysis/report_page.h"

static inline void element(struct bytes *out, char open)
{
    char last = out->size ? out->data[out->size - 1] : '[';
    if (last != '[' && last != ':' && last != '{')
        bytes_append_char(out, ',');
    bytes_append_char(out, open);
}

static inline void member_int(struct bytes *out, const char *key, int64_t value)
{
    json_key(out, key);
    if (value == CELL_UNKNOWN)
        json_text(out, NULL);
    else
        json_int(out, value);
}

static inline void member_id(struct bytes *out, const char *key, uint32_t value)
{
    member_int(out, key, value == ID_UNKNOWN ? CELL_UNKNOWN : (int64_t)value);
}

static inline void member_uint(struct bytes *out, const char *key, uint64_t value)
{
    json_key(out, key);
    json_uint(out, value);
}

static inline void member_double(struct bytes *out, const char *key, double value)
{
    json_key(out, key);
    json_double(out, value);
}

static inline void member_bool(struct bytes *out, const char *key, bool value)
{
    json_key(out, key);
    json_bool(out, value);
}

/* "" is unknown in the model. */
static inline void member_text(struct bytes *out, const char *key, const char *text)
{
    json_key(out, key);
    json_text(out, text && *text ? text : NULL);
}

static inline void member_device(struct bytes *out, uint16_t device)
{
    member_int(out, "device", device == DEVICE_UNKNOWN ? CELL_UNKNOWN : (int64_t)device);
}

static inline void list_open(struct bytes *out, const char *key)
{
    json_key(out, key);
    bytes_append_char(out, '[');
}

/* report_json_deep.c */
void deep_part(const struct analysis *analysis, struct bytes *out);

#endif
