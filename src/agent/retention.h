/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes uploaded sessions if configured, and the oldest sessions when the disk budget is exceeded. Data that the
 * server refused or did not get is deleted last, and counted. Only files that hold nothing but records of the session
 * are deleted. Single-threaded. */
#ifndef GPUFL_AGENT_RETENTION_H
#define GPUFL_AGENT_RETENTION_H

#include "agent/agent.h"
#include "agent/agent_session.h"

struct retention {
    enum agent_keep keep;
    unsigned keep_days;
    uint64_t spool_bytes_max; /* 0: no limit */
};

/* sessions: NULL entries are skipped; the entry of a session that is deleted completely is freed and set to NULL. */
void retention_run(const struct retention *retention, const struct agent_work *work, struct agent_session **sessions,
                   size_t count);

#endif
