/* SPDX-License-Identifier: Apache-2.0 */
/* One session directory on its way to the server: looked at again and again, one window per channel and turn, so that
 * many sessions share the connection fairly. One thread. */
#ifndef GPUFL_AGENT_AGENT_SESSION_H
#define GPUFL_AGENT_AGENT_SESSION_H

#include "agent/shipper.h"

/* What all sessions share; borrowed. */
struct agent_work {
    struct shipper *shipper;
    const struct state_dir *state_dir;
    const char *quarantine_dir;
    struct stream_window *window;
    struct agent_counters *counters;
    int64_t interval_ns;
    bool is_once;
};

/* What is not deleted because it is not proven to be the session's own, as long as nothing changes. */
struct kept_files {
    uint64_t bytes, foreign_bytes; /* of all files of the session then; of those that are no recording at all */
    int64_t changed_wall_ns;
};

struct agent_session {
    char dir[512];
    struct sender sender;
    bool is_identified;
    bool is_duplicate; /* another directory has the same session */
    bool is_settled;   /* a duplicate of one that was sent and deleted: nobody asked for this one to go too */
    bool has_damage;   /* a file could not be read whole */
    struct session_state state;
    struct channel_stream streams[CHANNEL_COUNT];
    bool is_repeating[CHANNEL_COUNT]; /* the pending window may be with the server already */
    enum session_lock_state lock;     /* its writer's, at the last look */
    bool is_live;                     /* its program may still write: the lock was held, or not to be seen */
    bool is_dirty;                    /* something changed since */
    bool is_unsaved;
    bool is_unread;          /* the last look at it failed */
    bool is_drained;         /* nothing was left to send at the last look */
    bool is_watched;         /* changes are told; else it is looked at from time to time */
    int64_t due_ns;          /* mono; when it is looked at without a change */
    int64_t looked_ns;       /* mono; the last look */
    int64_t lock_gone_ns;    /* mono; when it was first seen without a writer; 0: it may have one */
    int64_t changed_wall_ns; /* the newest file's */
    uint64_t bytes, backlog_bytes;
    struct kept_files kept;
    char said[256]; /* the last trouble told */
};

enum step_result {
    STEP_IDLE,    /* nothing more for now */
    STEP_MORE,    /* something was sent, and there is more */
    STEP_RETRY,   /* the server does not take anything now */
    STEP_REFUSED, /* nor will it soon */
    STEP_STOPPED,
    STEP_GONE /* the directory is not there any more */
};

/* dir must be shorter than 512 bytes. */
void agent_session_init(struct agent_session *session, const char *dir);
/* Finds out which session it is and what the server has of it. GPUFL_E_BUSY: not known yet. */
NODISCARD gpufl_status agent_session_identify(struct agent_session *session, const struct agent_work *work,
                                              struct problem *problem);
/* Is the session still in its directory, as far as one can tell? */
bool agent_session_is_there(const struct agent_session *session);
/* Goes on where `other` was: the same session, which moved. */
void agent_session_take_over(struct agent_session *session, const struct agent_session *other);
enum step_result agent_session_step(struct agent_session *session, const struct agent_work *work);
/* How much the files are, and when the newest of them changed (0: there is none). */
void agent_session_measure(const struct session_files *files, uint64_t *bytes, int64_t *changed_wall_ns);
/* A file holds something else than records of the session that can be read: nothing of it is deleted as sent. */
void agent_session_note_damage(struct agent_session *session, const struct agent_work *work);
/* Puts on the disk what the server acknowledged since the last time. */
void agent_session_save(struct agent_session *session, const struct agent_work *work);

#endif
