/* SPDX-License-Identifier: Apache-2.0 */
/* Files below tests/recordings. Include after cmocka's headers. */
#ifndef GPUFL_TESTS_RECORDING_FILE_H
#define GPUFL_TESTS_RECORDING_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The file's bytes in an allocation of exactly their size; the caller frees. */
static inline uint8_t *recording_file_read(const char *folder, const char *name, const char *ending, size_t *size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/recordings/%s/%s%s", SOURCE_DIR, folder, name, ending);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint8_t *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    uint8_t *exact = realloc(bytes, *size);
    assert_non_null(exact);
    return exact;
}

#endif
