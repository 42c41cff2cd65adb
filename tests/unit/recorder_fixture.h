/* SPDX-License-Identifier: Apache-2.0 */
/* A recorder that writes a session into a temporary directory, for tests of code that writes rows. */
#ifndef GPUFL_TESTS_RECORDER_FIXTURE_H
#define GPUFL_TESTS_RECORDER_FIXTURE_H

#include "session_fixture.h"

#include "capture/recorder.h"

static inline void recorder_fixture_open(char dir[256], struct log_writer **writer, struct recorder *recorder)
{
    snprintf(dir, 256, "%s", fixture_dir());
    *writer = fixture_open(dir, 0, false);
    assert_int_equal(recorder_open(recorder, *writer, FIXTURE_ID, "test"), GPUFL_OK);
}

static inline void recorder_fixture_close(const char *dir, struct log_writer *writer, struct recorder *recorder)
{
    recorder_close(recorder);
    log_writer_close(writer, 1000);
    fixture_remove(dir);
}

#endif
