/* SPDX-License-Identifier: Apache-2.0 */
/* struct cupti, shared by the files of this folder and by tests that replace its functions. The single instance is
 * in cupti.c. */
#ifndef GPUFL_DRIVER_CUPTI_TABLE_H
#define GPUFL_DRIVER_CUPTI_TABLE_H

#include "driver/cupti.h"
#include "driver/cupti_abi.h"
#include "driver/library.h"

#include <stdatomic.h>

struct cupti_table { /* NULL where the library lacks a function */
#define CUPTI_MEMBER(member, symbol, parameters) int(*member) parameters;
    CUPTI_ABI_FUNCTIONS(CUPTI_MEMBER)
#undef CUPTI_MEMBER
};

struct cupti {
    struct cupti_table call;
    struct library library;
    uint32_t version;
    atomic_uint id_offset; /* of the running trace, see cupti_trace_options */
    /* Minimum size of a record of each kind in this version; 0: a kind that is not read. */
    uint16_t record_bytes[CUPTI_ABI_KIND_LAST_KNOWN + 1];
    atomic_int failure_state; /* 0 none, 1 being written, 2 readable */
    char failure[192];
};

/* A correlation id as it is passed to callers; 0 still means "no call". */
static inline uint32_t cupti_unique_id(const struct cupti *cupti, uint32_t correlation_id)
{
    return correlation_id
               ? correlation_id + atomic_load_explicit(&((struct cupti *)cupti)->id_offset, memory_order_relaxed)
               : 0;
}

/* Sets the version and with it the record sizes. */
void cupti_set_version(struct cupti *cupti, uint32_t version);
/* Remembers the first call that failed; returns result. */
int cupti_note(struct cupti *cupti, const char *function, int result);
void cupti_forget_failure(struct cupti *cupti);
const char *cupti_result_text(const struct cupti *cupti, int result);

#endif
