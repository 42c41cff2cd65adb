/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/roll.h"

#include <string.h>
#include <time.h>

static const int64_t second_ns = 1000000000;

bool roll_period_parse(enum roll_period *period, const char *word)
{
    static const char *const words[] = {[ROLL_NEVER] = "never", [ROLL_HOURLY] = "hourly", [ROLL_DAILY] = "daily"};
    for (int i = 0; i < (int)(sizeof words / sizeof *words); i++)
        if (!strcmp(words[i], word)) {
            *period = (enum roll_period)i;
            return true;
        }
    return false;
}

int64_t roll_next_ns(enum roll_period period, int64_t now_ns)
{
    time_t now = (time_t)(now_ns / second_ns);
    struct tm local;
    if (period == ROLL_NEVER || !localtime_r(&now, &local))
        return INT64_MAX;
    /* Add one hour to the last full hour: when clocks are set back, an hour occurs twice and mktime cannot distinguish
     * the two. */
    if (period == ROLL_HOURLY)
        return (int64_t)(now - local.tm_min * 60 - local.tm_sec + 3600) * second_ns;
    local.tm_mday++;
    local.tm_hour = local.tm_min = local.tm_sec = 0;
    local.tm_isdst = -1;
    time_t next = mktime(&local);
    return next > now ? (int64_t)next * second_ns : (int64_t)(now + 86400) * second_ns;
}

bool roll_is_due(enum roll_period period, int64_t now_ns, int64_t *next_ns)
{
    int64_t next = roll_next_ns(period, now_ns);
    bool is_due = now_ns >= *next_ns;
    if (is_due || next < *next_ns)
        *next_ns = next;
    return is_due;
}
