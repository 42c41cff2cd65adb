/* SPDX-License-Identifier: Apache-2.0 */
/* A session of tests/golden, loaded and analysed. */
#ifndef GPUFL_TESTS_GOLDEN_SESSION_H
#define GPUFL_TESTS_GOLDEN_SESSION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/analysis.h"
#include "analysis/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct golden_session {
    struct session_model *model;
    struct analysis analysis;
};

static inline struct golden_session golden_load(const char *name)
{
    struct golden_session golden;
    struct problem problem = {""};
    char dir[512];
    snprintf(dir, sizeof dir, "%s/tests/golden/%s", SOURCE_DIR, name);
    if (session_load(&golden.model, dir, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    assert_int_equal(analysis_make(&golden.analysis, golden.model), GPUFL_OK);
    return golden;
}

static inline void golden_unload(struct golden_session *golden)
{
    analysis_free(&golden->analysis);
    session_free(golden->model);
}

#endif
