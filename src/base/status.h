/* SPDX-License-Identifier: Apache-2.0 */
/* The product's error convention: gpufl_status is returned, results are out-parameters that are written only on
 * success. A message for the user is written to a struct problem that the caller owns. */
#ifndef GPUFL_BASE_STATUS_H
#define GPUFL_BASE_STATUS_H

#include <gpufl/gpufl.h>
#include <stdarg.h>
#include <stdbool.h>

#define NODISCARD __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* What went wrong and what to do next; always NUL-terminated, "" when unset. */
struct problem {
    char text[512];
};

/* Sets the message (problem may be NULL) and returns status, so that a failing
 * function can end with `return problem_set(p, GPUFL_E_IO, "...")`. */
gpufl_status problem_set(struct problem *problem, gpufl_status status, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
