/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdio.h>

gpufl_status problem_set(struct problem *problem, gpufl_status status, const char *format, ...)
{
    if (problem) {
        va_list args;
        va_start(args, format);
        vsnprintf(problem->text, sizeof problem->text, format, args);
        va_end(args);
    }
    return status;
}
