/* SPDX-License-Identifier: Apache-2.0 */
/* What is deleted: what the server has, where asked for; and when the disk budget is spent, the oldest. What the server
 * refused and what it was not sent go last, and are counted. Only files that hold nothing but records of the session are
 * deleted. One thread. */
#ifndef GPUFL_AGENT_RETENTION_H
#define GPUFL_AGENT_RETENTION_H

#include "agent/agent.h"
#include "agent/agent_session.h"

struct retention {
    enum agent_keep keep;
    unsigned keep_days;
    uint64_t spool_bytes_max; /* 0: no limit */
};

/* sessions: NULL entries are passed over; that of a session that was deleted as a whole is freed and NULL then. */
void retention_run(const struct retention *retention, const struct agent_work *work, struct agent_session **sessions,
                   size_t count);

#endif
