/* SPDX-License-Identifier: Apache-2.0 */
/* Faults asked for in the environment, FAKE_FAULTS="name=value; name=value".
 * Linked into each look-alike library; parsed once, at the first question. */
#ifndef FAKES_FAULTS_H
#define FAKES_FAULTS_H

#include <stddef.h>
#include <stdint.h>

/* The value of a numeric fault, e.g. drop_every; `absent` when not asked for. */
int64_t fault_number(const char *name, int64_t absent);
/* The text of a fault into out, cut to size; "" when not asked for. */
void fault_text(const char *name, char *out, size_t size);
/* Counts a call of `function`; nonzero: the result it must return instead of working, from
 * "fail=FUNCTION@N:RESULT" (the Nth call) or "fail=FUNCTION@*:RESULT" (every call). */
int fault_result(const char *function);
/* The same for a function that takes a struct with its size: invalid parameter (1) when the caller declared it otherwise
 * than we do. */
int fault_result_sized(const char *function, size_t struct_bytes, size_t expected);
/* Whether the fault `after` (ms since the first such question) has begun. */
int fault_has_begun(const char *after);
/* Whether the file that is the fault's value exists. */
int fault_is_switched_on(const char *name);
/* lost_gpu_after_ms, lost_gpu_while */
int fault_gpu_is_lost(void);

#endif
