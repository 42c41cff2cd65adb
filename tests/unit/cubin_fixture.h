/* SPDX-License-Identifier: Apache-2.0 */
/* The cubins of tests/recordings/cubins, and damaged copies of them. Include after
 * cmocka.h. */
#ifndef GPUFL_TESTS_CUBIN_FIXTURE_H
#define GPUFL_TESTS_CUBIN_FIXTURE_H

#include "code/cubin.h"
#include "recording_file.h"

#include <stdlib.h>

static const char *const fixture_cubins[] = {
    "vector_add.sm_80", "vector_add.sm_90", "vector_add.sm_100", "reduction.sm_80",
    "reduction.sm_90",  "reduction.sm_100", "inlined.sm_80",     "inlined.sm_90",
    "inlined.sm_100",   "no_lines.sm_90",   "debug.sm_90",       "linked.sm_90",
};
enum { fixture_cubin_count = sizeof fixture_cubins / sizeof *fixture_cubins };

static inline uint8_t *fixture_cubin_read(const char *name, size_t *size)
{
    return recording_file_read("cubins", name, ".cubin", size);
}

/* An open cubin whose bytes the fixture owns. */
struct fixture_cubin {
    uint8_t *bytes;
    size_t size;
    struct code_image cubin;
};

static inline void fixture_cubin_open(struct fixture_cubin *fixture, const char *name)
{
    struct problem problem = {""};
    fixture->bytes = fixture_cubin_read(name, &fixture->size);
    if (image_open(&fixture->cubin, fixture->bytes, fixture->size, &problem))
        fail_msg("%s: %s", name, problem.text);
}

static inline void fixture_cubin_close(struct fixture_cubin *fixture)
{
    image_close(&fixture->cubin);
    free(fixture->bytes);
}

#endif
