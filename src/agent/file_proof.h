/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a file holds a recording of its session, and how much of it the server has. File names prove nothing:
 * any program may write a system.log into a directory named by a UUID. Nothing is deleted without this proof.
 * Single-threaded. */
#ifndef GPUFL_AGENT_FILE_PROOF_H
#define GPUFL_AGENT_FILE_PROOF_H

#include "agent/session_state.h"
#include "logfile/session_dir.h"

struct file_proof {
    uint64_t bytes;
    uint64_t records;    /* complete lines that are valid records of the session */
    uint64_t unsent;     /* numbered records that the server does not have */
    uint64_t unnumbered; /* records without a number */
    bool is_recording;   /* it has records, and nothing else except the torn line of a killed program */
};

/* file: a log file, not a sidecar. Reads the whole file. */
void file_prove(struct file_proof *proof, const struct session_files *files, const struct session_file *file,
                const struct session_state *state);

#endif
