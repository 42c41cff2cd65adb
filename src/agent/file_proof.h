/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file holds a recording of its session, and how much of it the server has. Names prove nothing: anybody may
 * have a system.log in a directory named by a UUID. Nothing is deleted without this proof. One thread. */
#ifndef GPUFL_AGENT_FILE_PROOF_H
#define GPUFL_AGENT_FILE_PROOF_H

#include "agent/session_state.h"
#include "logfile/session_dir.h"

struct file_proof {
    uint64_t bytes;
    uint64_t records;    /* whole lines that are valid records of the session */
    uint64_t unsent;     /* records with a number that the server does not have */
    uint64_t unnumbered; /* records without a number */
    bool is_recording;   /* it has records, and nothing else but the torn line of a killed program */
};

/* file: a log file, no sidecar. Reads it to its end. */
void file_prove(struct file_proof *proof, const struct session_files *files, const struct session_file *file,
                const struct session_state *state);

#endif
