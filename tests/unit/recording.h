/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a recording of tests/recordings piece by piece. One that is too short
 * aborts the test, which is noticed in a child process, too. */
#ifndef TESTS_RECORDING_H
#define TESTS_RECORDING_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct recording {
    uint8_t *data;
    size_t size, at;
};

static inline const void *recording_take(struct recording *recording, size_t bytes)
{
    if (bytes > recording->size - recording->at)
        abort();
    recording->at += bytes;
    return recording->data + recording->at - bytes;
}

static inline uint32_t recording_u32(struct recording *recording)
{
    uint32_t value;
    memcpy(&value, recording_take(recording, sizeof value), sizeof value);
    return value;
}

#endif
