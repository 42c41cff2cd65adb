/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of batches share: lines that must be readable, and decoding that
 * shows a sanitizer every read past a line's end. */
#ifndef GPUFL_TESTS_BATCH_FIXTURE_H
#define GPUFL_TESTS_BATCH_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the above first. */
#include <cmocka.h>

#include "format/batch.h"
#include "format/json.h"

#include <stdlib.h>
#include <string.h>

#define SESSION "0d9c7f6e-1111-4222-8333-444455556666"
#define ENVELOPE(type) "{\"version\":1,\"type\":\"" type "\",\"session_id\":\"s\",\"batch_id\":3,\"base_time_ns\":100,"

static inline uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state ^ *state >> 29;
}

/* Decodes a copy of exactly `size` bytes on the heap, so that a sanitizer sees any read past its end. */
static inline gpufl_status decoded(struct batch_view *view, const char *line, size_t size, struct json_error *error)
{
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, line, size);
    gpufl_status status = batch_decode(view, copy, size, error);
    view->session_id = NULL; /* pointed into the copy */
    free(copy);
    return status;
}

static const char *const readable[] = {
    /* the order of v1 writers; sorted names; white space; spellings of integers; unknown members and columns */
    ENVELOPE("memcpy_event_batch") "\"columns\":[\"dt_ns\",\"bytes\",\"is_async\"],\"rows\":[[-5,7,1],[6,8,0]]}",
    ENVELOPE("memcpy_event_batch") "\"columns\":[\"is_async\",\"dt_ns\",\"bytes\"],\"rows\":[[1,-5,7],[0,6,8]]}",
    "{\"base_time_ns\":100,\"batch_id\":3,\"columns\":[\"dt_ns\",\"bytes\",\"is_async\"],\"rows\":[[-5,7,1],[6,8,0]],"
    "\"session_id\":\"s\",\"type\":\"memcpy_event_batch\",\"version\":1}",
    "{\"rows\":[[-5,7,1],[6,8,0]],\"columns\":[\"dt_ns\",\"bytes\",\"is_async\"],\"base_time_ns\":100,\"batch_id\":3,"
    "\"session_id\":\"s\",\"type\":\"memcpy_event_batch\",\"version\":1}",
    " { \"version\" : 1 , \"type\" : \"memcpy_event_batch\" , \"batch_id\" : 3 , \"base_time_ns\" : 100 , \"columns\" "
    ": [ \"dt_ns\" "
    ", \"bytes\" , \"is_async\" ] , \"rows\" : [ [ -5 , 7 , 1 ] , [ 6 , 8 , 0 ] ] } \r",
    ENVELOPE("memcpy_event_batch") "\"columns\":[\"dt_ns\",\"bytes\",\"is_async\"],\"rows\":[[-5.0,7e0,true],[0.6e1,8."
                                   "00,false]]}",
    ENVELOPE("memcpy_event_batch") "\"hostname\":\"a\\\"]}\",\"more\":{\"rows\":[[1,2]],\"x\":[{}]},\"columns\":["
                                   "\"new\",\"dt_ns\",\"bytes\","
                                   "\"newer\",\"is_async\"],\"rows\":[[\"a],[\",-5,7,[1,{\"b\":2}],1],[null,6,8,-1.5e3,"
                                   "0]],\"tail\":[]}",
    ENVELOPE("memcpy_event_batch") "\"columns\":[\"dt_ns\",\"bytes\",\"is_async\"],\"delta\":[\"dt_ns\",\"bytes\"],"
                                   "\"cols\":[[-5,11],[7,1],[1,0]]}",
    ENVELOPE("memcpy_event_batch") "\"cols\":[ [ -5 , 11 ] , [7,1] , [1,0] "
                                   "],\"delta\":[\"dt_ns\",\"bytes\"],\"columns\":[\"dt_ns\",\"bytes\",\"is_async\"]}",
    ENVELOPE("memcpy_event_batch") "\"columns\":[\"x\",\"dt_ns\",\"bytes\",\"is_async\"],\"cols\":[[\"p\",{}],[-5,6],["
                                   "7,8],[1,0]]}",
};

#endif
