/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads one session directory: checked repeatedly, one window per channel at a time, so that many sessions share the
 * connection fairly. Single-threaded. */
#ifndef GPUFL_AGENT_AGENT_SESSION_H
#define GPUFL_AGENT_AGENT_SESSION_H

#include "agent/shipper.h"

/* Shared by all sessions; borrowed. */
struct agent_work {
    struct shipper *shipper;
    const struct state_dir *state_dir;
    const char *quarantine_dir;
    struct stream_window *window;
    struct agent_counters *counters;
    int64_t interval_ns;
    bool is_once;
};

/* Files that are not deleted, because they may not belong to the session; valid while nothing changes. */
struct kept_files {
    uint64_t bytes, foreign_bytes; /* of all files of the session; of those that are not recordings */
    int64_t changed_wall_ns;
};

struct agent_session {
    char dir[512];
    struct sender sender;
    bool is_identified;
    bool is_duplicate; /* another directory has the same session */
    bool is_settled;   /* the other directory was sent and deleted, but this one must stay */
    bool has_damage;   /* a file could not be read completely */
    struct session_state state;
    struct channel_stream streams[CHANNEL_COUNT];
    bool is_repeating[CHANNEL_COUNT]; /* the server may already have the pending window */
    enum session_lock_state lock;     /* of the writer, at the last check */
    bool is_live;                     /* the program may still write: the lock is held or its state is unknown */
    bool is_dirty;                    /* something changed since the last check */
    bool is_unsaved;
    bool is_unread;          /* the last check failed */
    bool is_drained;         /* nothing was left to send at the last check */
    bool is_watched;         /* inotify reports changes; otherwise the session is polled */
    int64_t due_ns;          /* mono; next check if nothing changes */
    int64_t looked_ns;       /* mono; last check */
    int64_t lock_gone_ns;    /* mono; when the writer's lock was first seen released; 0: it may be held */
    int64_t changed_wall_ns; /* modification time of the newest file */
    uint64_t bytes, backlog_bytes;
    struct kept_files kept;
    char reported[256]; /* the last logged problem */
};

enum step_result {
    STEP_IDLE,    /* nothing more for now */
    STEP_MORE,    /* something was sent, and more is waiting */
    STEP_RETRY,   /* the server accepts nothing at the moment */
    STEP_REFUSED, /* the server refuses us; try again much later */
    STEP_STOPPED,
    STEP_GONE /* the directory no longer exists */
};

/* dir must be shorter than 512 bytes. */
void agent_session_init(struct agent_session *session, const char *dir);
/* Determines the session's identity and what the server has of it. GPUFL_E_BUSY: not known yet. */
NODISCARD gpufl_status agent_session_identify(struct agent_session *session, const struct agent_work *work,
                                              struct problem *problem);
/* Whether the directory still contains the session, as far as can be determined. */
bool agent_session_is_there(const struct agent_session *session);
/* Continues where `other` stopped: the same session, which has moved. */
void agent_session_take_over(struct agent_session *session, const struct agent_session *other);
enum step_result agent_session_step(struct agent_session *session, const struct agent_work *work);
/* The size of the files and the modification time of the newest (0: no files). */
void agent_session_measure(const struct session_files *files, uint64_t *bytes, int64_t *changed_wall_ns);
/* A file contains data that is not a readable record of the session, so nothing of the session is deleted as sent. */
void agent_session_note_damage(struct agent_session *session, const struct agent_work *work);
/* Saves what the server acknowledged since the last call. */
void agent_session_save(struct agent_session *session, const struct agent_work *work);

#endif
