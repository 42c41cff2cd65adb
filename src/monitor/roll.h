/* SPDX-License-Identifier: Apache-2.0 */
/* When a monitor's session ends and the next begins. Pure functions of the wall
 * clock and the local time zone: any thread. */
#ifndef GPUFL_MONITOR_ROLL_H
#define GPUFL_MONITOR_ROLL_H

#include <stdbool.h>
#include <stdint.h>

enum roll_period { ROLL_NEVER, ROLL_HOURLY, ROLL_DAILY };

/* "daily", "hourly" or "never". */
bool roll_period_parse(enum roll_period *period, const char *word);
/* The next boundary after now: a full hour or midnight of the local time, also where clocks change. INT64_MAX: never. */
int64_t roll_next_ns(enum roll_period period, int64_t now_ns);
/* Whether it is time. Sets *next_ns to the boundary after this one; also when the clock was set back, so that a session
 * does not grow by the step. */
bool roll_is_due(enum roll_period period, int64_t now_ns, int64_t *next_ns);

#endif
