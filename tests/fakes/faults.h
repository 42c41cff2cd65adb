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
/* Whether lost_gpu_after_ms have passed since the first question about it. */
int fault_gpu_is_lost(void);

#endif
