/* SPDX-License-Identifier: Apache-2.0 */
/* When a monitor's session ends and the next one begins. Pure functions of the wall clock and the local time zone: any
 * thread. */
#ifndef GPUFL_MONITOR_ROLL_H
#define GPUFL_MONITOR_ROLL_H

#include <stdbool.h>
#include <stdint.h>

enum roll_period { ROLL_NEVER, ROLL_HOURLY, ROLL_DAILY };

/* "daily", "hourly" or "never". */
bool roll_period_parse(enum roll_period *period, const char *word);
/* The next boundary after now: a full hour, or midnight in local time, also when daylight saving time changes.
 * INT64_MAX: never. */
int64_t roll_next_ns(enum roll_period period, int64_t now_ns);
/* Whether the boundary has passed. Sets *next_ns to the boundary after now; also if the clock was set back, so that the
 * session does not become longer by that step. */
bool roll_is_due(enum roll_period period, int64_t now_ns, int64_t *next_ns);

#endif
