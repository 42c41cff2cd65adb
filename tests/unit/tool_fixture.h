/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alikes of nvdisasm and llvm-objdump. Include after session_fixture.h. */
#ifndef GPUFL_TESTS_TOOL_FIXTURE_H
#define GPUFL_TESTS_TOOL_FIXTURE_H

#include "session_fixture.h"

/* A look-alike that records its runs, with a separate cache. */
static inline void tool_install_as(const char *dir, const char *name, const char *variable, const char *code)
{
    char script[1024], tool[512];
    int size = snprintf(script, sizeof script, "#!/bin/sh\necho >> '%s/runs'\n%s\n", dir, code);
    fixture_write(dir, name, script, (size_t)size);
    fixture_path(tool, dir, name);
    assert_int_equal(chmod(tool, 0755), 0);
    assert_int_equal(setenv(variable, tool, 1), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", dir, 1), 0);
}

static inline void tool_install(const char *dir, const char *code)
{
    tool_install_as(dir, "nvdisasm", "GPUFL_NVDISASM", code);
}

static inline size_t tool_runs(const char *dir)
{
    size_t size = 0;
    if (fixture_exists(dir, "runs"))
        free(fixture_read(dir, "runs", &size));
    return size;
}

#endif
