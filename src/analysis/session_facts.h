/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a session in a list, from its first and last record: fast for hundreds of sessions. Trusts the shutdown
 * record; `gpufl verify` checks it. Single-threaded. */
#ifndef GPUFL_ANALYSIS_SESSION_FACTS_H
#define GPUFL_ANALYSIS_SESSION_FACTS_H

#include "base/bytes.h"
#include "logfile/session_scan.h"

enum session_state {
    SESSION_COMPLETE,  /* closed, and nothing was lost */
    SESSION_LOSSES,    /* closed; the recorder counted losses */
    SESSION_CLOSED,    /* closed; the writer (GPUFlight) does not count losses */
    SESSION_RUNNING,   /* still being written */
    SESSION_CUT_OFF,   /* not closed: the program was killed */
    SESSION_UNREADABLE /* its first record cannot be read */
};

#define FACT_UNKNOWN (-1)
struct session_facts {
    struct session_place place;
    char session_id[40], app[256], engine[32], kind[16], hostname[128];
    char command[512];
    int64_t pid, start_ns, duration_ns; /* FACT_UNKNOWN; for a running session: so far */
    int64_t kernels, untimed_kernels;   /* FACT_UNKNOWN if the session was not closed; untimed: counted only */
    int64_t lost;                       /* records; FACT_UNKNOWN */
    uint64_t bytes;
    enum session_state state;
};

/* now_ns: since 1970, for sessions that are still being written. */
void session_facts_read(struct session_facts *facts, const struct session_place *place, int64_t now_ns);
/* complete, losses, closed, running, cut off, unreadable */
const char *session_state_word(enum session_state state);
/* {"name":"train-3",...} */
void session_facts_json(struct bytes *out, const struct session_facts *facts);

#endif
