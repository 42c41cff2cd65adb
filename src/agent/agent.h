/* SPDX-License-Identifier: Apache-2.0 */
/* The shipping agent: finds session directories, follows their files while they grow, and sends every line to the
 * server. Its interface is one function in libgpufl-upload.so, which the command line calls. It runs on the calling
 * thread; an optional second thread serves /metrics and /healthz. */
#ifndef GPUFL_AGENT_AGENT_H
#define GPUFL_AGENT_AGENT_H

#include "base/status.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_ROOTS_MAX 64
#define AGENT_INTERVAL_DEFAULT_MS 1000

enum agent_keep {
    AGENT_KEEP_ALL,
    AGENT_KEEP_UNACKNOWLEDGED, /* what the server has is deleted */
    AGENT_KEEP_DAYS            /* what the server has is deleted after keep_days */
};

/* Strings are borrowed until the call returns. NULL, "" and 0 mean the default. */
struct agent_options {
    size_t struct_size; /* AGENT_STRUCTS_SIZE: detects a version mismatch of program and library */
    const char *roots[AGENT_ROOTS_MAX];
    size_t root_count;
    const char *server_url, *api_path, *ca_file;
    const char *api_key;      /* from the environment */
    const char *api_key_file; /* has precedence over api_key; read again after the server refused the key */
    const char *state_dir;
    const char *quarantine_dir; /* default: quarantine in state_dir */
    enum agent_keep keep;
    unsigned keep_days;
    uint64_t spool_bytes_max;  /* 0: no limit */
    uint64_t rate_bytes_per_s; /* 0: no limit */
    int64_t interval_ms;       /* how long lines may wait to be sent together */
    bool is_once;              /* send the existing data, then return */
    const char *listen;        /* address:port of /metrics and /healthz; NULL: not served */
    const char *remote_config; /* name of a configuration to keep up to date; NULL: none */
    const char *remote_config_dir;
    gpufl_log_fn log_fn;
    void *log_user;
    const atomic_bool *is_stopping; /* set by the caller's signal handler */
    int wake_fd;                    /* becomes readable when is_stopping is set; -1: none */
};

struct agent_result {
    uint64_t sessions, windows, lines, bytes;
    uint64_t left_out_lines, missing_lines, left_out_windows, quarantined_windows, dropped_lines;
    uint64_t rejected_lines;   /* in windows that the server accepted */
    uint64_t damaged_sessions; /* sessions with a file that could not be read completely */
    uint64_t waiting_sessions; /* sessions that are not completely uploaded */
};
#define AGENT_STRUCTS_SIZE (sizeof(struct agent_options) + sizeof(struct agent_result))

/* Returns when is_stopping is set, or with is_once when nothing is left to send. GPUFL_E_PERMISSION: the server refuses
 * the key (with is_once); GPUFL_E_BUSY: another agent uses state_dir; GPUFL_E_INVALID: options; GPUFL_E_IO: state_dir
 * cannot be written, or with is_once the server cannot be reached; GPUFL_E_NOT_FOUND: with is_once a root does not
 * exist. */
GPUFL_API gpufl_status gpufl_agent_run(const struct agent_options *options, struct agent_result *result,
                                       struct problem *problem);

#endif
