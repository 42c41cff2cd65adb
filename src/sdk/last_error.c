/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's last error, status names, and the version. */
#include "sdk/session.h"

static _Thread_local struct problem last_problem;

void problem_complete(struct problem *problem, gpufl_status status)
{
    if (status != GPUFL_OK && !problem->text[0])
        problem_set(problem, status, "%s", gpufl_status_string(status));
}

gpufl_status session_fail(gpufl_status status, const struct problem *problem)
{
    last_problem = *problem;
    problem_complete(&last_problem, status);
    return status;
}

const char *gpufl_last_error(void)
{
    return last_problem.text;
}

const char *gpufl_status_string(gpufl_status status)
{
    switch (status) {
#define STATUS_TEXT(name, code, text) \
    case name:                        \
        return text;
        GPUFL_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

const char *gpufl_version(void)
{
    return GPUFL_VERSION_STRING;
}
