/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_session.h"

#include "agent/quarantine.h"
#include "base/clock.h"
#include "base/log.h"
#include "logfile/recovery.h"
#include "logfile/session_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LISTINGS_MAX = 4,
    STATE_RETRY_MS = 2000,
    POLL_LIVE_MS = 5000,
    POLL_DONE_MS = 60000,
    SETTLED_AFTER_S = 30,
    SHUTDOWN_GRACE_MS = 2000, /* a launcher records a killed program's end shortly afterwards */
    SILENCE_S = 86400         /* where locks do not work, a writer is considered dead after this time without a write */
};
#define FULL_WINDOW_BYTES ((uint64_t)4 << 20)

void agent_session_init(struct agent_session *session, const char *dir)
{
    *session = (struct agent_session){.is_dirty = true};
    snprintf(session->dir, sizeof session->dir, "%s", dir);
    for (int i = 0; i < CHANNEL_COUNT; i++)
        session->streams[i].channel = (enum channel)i;
}

static void log_once(struct agent_session *session, gpufl_log_level level, const char *text)
{
    if (strncmp(session->reported, text, sizeof session->reported - 1) == 0)
        return;
    snprintf(session->reported, sizeof session->reported, "%.255s", text);
    log_message(level, "%s: %s", session->dir, text);
}

static void look_at_lock(struct agent_session *session)
{
    int fd = open(session->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    session->lock = fd >= 0                               ? session_lock_look(fd)
                    : errno == ENOENT || errno == ENOTDIR ? SESSION_LOCK_FREE
                                                          : SESSION_LOCK_UNKNOWN;
    session->is_live = session->lock != SESSION_LOCK_FREE;
    if (fd >= 0)
        close(fd);
    if (session->is_live)
        session->lock_gone_ns = 0;
    else if (!session->lock_gone_ns)
        session->lock_gone_ns = clock_mono_ns();
}

gpufl_status agent_session_identify(struct agent_session *session, const struct agent_work *work,
                                    struct problem *problem)
{
    struct session_identity identity;
    look_at_lock(session);
    /* All windows of a session carry its id, which is unknown before the first line is written. */
    if (session->is_live && session_identity_read(session->dir, &identity, problem))
        return GPUFL_E_BUSY;
    gpufl_status status = sender_identify(&session->sender, session->dir, problem);
    if (status == GPUFL_E_NOT_FOUND)
        return status;
    if (status) {
        log_once(session, GPUFL_LOG_WARNING, problem->text);
        return GPUFL_E_BUSY;
    }
    status = session_state_load(work->state_dir, session->sender.session_id, &session->state, problem);
    if (status == GPUFL_E_DAMAGED)
        log_message(GPUFL_LOG_WARNING, "%s", problem->text);
    for (int i = 0; i < CHANNEL_COUNT; i++)
        session->is_repeating[i] = session->state.channels[i].pending.is_set;
    session->is_identified = true;
    return GPUFL_OK;
}

bool agent_session_is_there(const struct agent_session *session)
{
    struct sender sender;
    gpufl_status status = sender_identify(&sender, session->dir, NULL);
    return status ? status != GPUFL_E_NOT_FOUND : !strcmp(sender.session_id, session->sender.session_id);
}

void agent_session_take_over(struct agent_session *session, const struct agent_session *other)
{
    session->state = other->state;
    session->is_unsaved = other->is_unsaved;
    memcpy(session->is_repeating, other->is_repeating, sizeof session->is_repeating);
}

/* The state of the directory at the last check. */
struct look {
    struct session_files files;
    bool *is_shadowed;
    struct stream_source source;
    bool has_channel[CHANNEL_COUNT];
};

static void look_free(struct look *look)
{
    session_files_free(&look->files);
    free(look->is_shadowed);
    look->is_shadowed = NULL;
}

void agent_session_measure(const struct session_files *files, uint64_t *bytes, int64_t *changed_wall_ns)
{
    *bytes = 0;
    *changed_wall_ns = 0;
    for (size_t i = 0; i < files->count; i++) {
        struct stat info;
        if (fstatat(files->dir_fd, files->items[i].name, &info, AT_SYMLINK_NOFOLLOW))
            continue;
        int64_t changed_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
        *changed_wall_ns = changed_ns > *changed_wall_ns ? changed_ns : *changed_wall_ns;
        *bytes += (uint64_t)info.st_size;
    }
}

static bool is_begun(const struct channel_state *state)
{
    return state->next_line > 1 || state->next_window > 1;
}

/* The program's end has been sent in each channel that it wrote. */
static bool has_every_shutdown(const struct agent_session *session, const struct look *look)
{
    bool has_lines = false, has_shutdown = true;
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        const struct channel_state *state = &session->state.channels[i];
        has_lines |= is_begun(state);
        has_shutdown &= state->has_shutdown || !(is_begun(state) || look->has_channel[i]);
    }
    return has_lines && has_shutdown;
}

/* Where locks do not work, the program has ended when its files contain its end, or after a long silence. */
static void judge_unknown_lock(struct agent_session *session, const struct look *look)
{
    int64_t age_ns = clock_wall_ns() - session->changed_wall_ns;
    if (session->lock == SESSION_LOCK_UNKNOWN)
        session->is_live = !has_every_shutdown(session, look) && age_ns <= (int64_t)SILENCE_S * 1000000000;
}

static gpufl_status look_at(struct agent_session *session, const struct agent_work *work, struct look *look,
                            struct problem *problem)
{
    *look = (struct look){.files = {.dir_fd = -1}};
    gpufl_status status = session_files_list(&look->files, session->dir, problem);
    if (status)
        return status;
    /* The lock was checked before listing, so that a writer that has ended wrote everything listed here. */
    look->is_shadowed = calloc(look->files.log_count + 1, sizeof *look->is_shadowed);
    if (!look->is_shadowed) {
        look_free(look);
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to list the session");
    }
    session_files_mark_shadowed(&look->files, look->is_shadowed);
    agent_session_measure(&look->files, &session->bytes, &session->changed_wall_ns);
    for (size_t i = 0; i < look->files.log_count; i++)
        look->has_channel[look->files.items[i].channel] = true;
    judge_unknown_lock(session, look);
    int64_t age_ns = clock_wall_ns() - session->changed_wall_ns;
    look->source =
        (struct stream_source){.files = &look->files,
                               .is_shadowed = look->is_shadowed,
                               .session_id = session->sender.session_id,
                               .is_settled = !session->is_live && (work->is_once || age_ns < 0 ||
                                                                   age_ns > (int64_t)SETTLED_AFTER_S * 1000000000),
                               .coding = work->shipper->coding};
    return GPUFL_OK;
}

static bool save_now(struct agent_session *session, const struct agent_work *work)
{
    struct problem problem = {""};
    if (session_state_save(work->state_dir, &session->state, &problem)) {
        counter_add(&work->counters->state_failures, 1);
        log_once(session, GPUFL_LOG_ERROR, problem.text);
        session->due_ns = clock_mono_ns() + (int64_t)STATE_RETRY_MS * 1000000;
        return false;
    }
    session->is_unsaved = false;
    return true;
}

void agent_session_save(struct agent_session *session, const struct agent_work *work)
{
    if (session->is_unsaved)
        (void)save_now(session, work);
}

/* The server has the window, or the window is lost for good. */
static void move_on(struct agent_session *session, const struct agent_work *work, enum channel channel)
{
    const struct stream_window *window = work->window;
    struct channel_state *state = &session->state.channels[channel];
    if (window->is_published)
        state->next_window = window->next;
    else
        state->next_line = window->next;
    state->pending = (struct pending_window){.is_set = false};
    state->has_shutdown |= window->has_shutdown;
    session->is_repeating[channel] = false;
    session->streams[channel].place = window->place;
    session->is_unsaved = true;
    counter_add(&work->counters->lines_left_out, window->left_out_lines);
    counter_add(&work->counters->lines_missing, window->missing_lines);
    counter_add(&work->counters->windows_left_out, window->left_out_windows);
    if (window->left_out_windows || window->left_out_lines)
        session->state.is_acknowledged = false; /* data that exists only on this disk is not deleted */
    if (window->left_out_lines || window->missing_lines)
        log_message(GPUFL_LOG_WARNING,
                    "%s: %s: %" PRIu64 " damaged lines skipped, %" PRIu64 " missing; run 'gpufl verify' to list them",
                    session->dir, channel_names[channel], window->left_out_lines, window->missing_lines);
}

void agent_session_note_damage(struct agent_session *session, const struct agent_work *work)
{
    if (!session->has_damage)
        counter_add(&work->counters->sessions_damaged, 1);
    session->has_damage = true;
    session->is_unsaved |= session->state.is_acknowledged;
    session->state.is_acknowledged = false;
}

static enum step_result put_aside(struct agent_session *session, const struct agent_work *work, enum channel channel)
{
    struct problem problem = {""};
    const char *reason = work->shipper->problem.text;
    if (quarantine_add(work->quarantine_dir, session->sender.session_id, channel, work->window, reason, &problem)) {
        counter_add(&work->counters->state_failures, 1);
        log_once(session, GPUFL_LOG_ERROR, problem.text);
        session->due_ns = clock_mono_ns() + (int64_t)STATE_RETRY_MS * 1000000;
        return STEP_IDLE;
    }
    counter_add(&work->counters->windows_quarantined, 1);
    log_message(GPUFL_LOG_ERROR, "session %s: %s from %" PRIu64 ": moved to quarantine: %s", session->sender.session_id,
                channel_names[channel], work->window->first, reason);
    session->state.is_acknowledged = false;
    session->state.refused_lines += work->window->window.lines;
    move_on(session, work, channel);
    return STEP_MORE;
}

/* The server has the window, but perhaps not every line of it. Rejected lines exist only here, so their number must be
 * saved before anything else happens. */
static enum step_result note_taken(struct agent_session *session, const struct agent_work *work, enum channel channel)
{
    uint64_t rejected = work->shipper->rejected_lines;
    session->state.is_acknowledged &= work->shipper->is_acknowledged && !rejected;
    session->state.refused_lines += rejected;
    move_on(session, work, channel);
    return !rejected || save_now(session, work) ? STEP_MORE : STEP_IDLE;
}

static enum step_result send_window(struct agent_session *session, const struct agent_work *work, enum channel channel)
{
    const struct stream_window *window = work->window;
    struct channel_state *state = &session->state.channels[channel];
    if (!state->pending.is_set) {
        state->pending = (struct pending_window){.is_set = true,
                                                 .is_published = window->is_published,
                                                 .first = window->first,
                                                 .last = window->last,
                                                 .coding = window->coding,
                                                 .crc32 = window->window.crc32};
        session->state.is_complete = false;
        if (!save_now(session, work)) {
            state->pending.is_set = false;
            return STEP_IDLE;
        }
    }
    if (session->is_repeating[channel])
        counter_add(&work->counters->windows_repeated, 1);
    enum shipment shipment = shipper_send(work->shipper, &session->sender, channel, window);
    /* A window may change its coding only after HTTP 415: in all other cases the server may have stored it already. */
    if (shipment == SHIPMENT_RETRY && work->shipper->answer.status == 415 && !window->is_published)
        state->pending.coding = work->shipper->coding;
    /* The server has what we sent under this id before; our bytes differ because the compressor was updated. */
    if (shipment == SHIPMENT_POISON && work->shipper->answer.status == 409 && session->is_repeating[channel]) {
        shipment = SHIPMENT_TAKEN;
        work->shipper->is_acknowledged = false; /* the answer does not confirm it explicitly */
        work->shipper->rejected_lines = 0;
    }
    session->is_repeating[channel] |= shipment == SHIPMENT_RETRY || shipment == SHIPMENT_STOPPED;
    switch (shipment) {
    case SHIPMENT_TAKEN:
        return note_taken(session, work, channel);
    case SHIPMENT_POISON:
        return put_aside(session, work, channel);
    case SHIPMENT_REFUSED:
        return STEP_REFUSED;
    case SHIPMENT_STOPPED:
        return STEP_STOPPED;
    case SHIPMENT_RETRY:
        break;
    }
    return STEP_RETRY;
}

/* Sends one window of the channel. STEP_IDLE with *is_drained: nothing is left to send. */
static enum step_result step_channel(struct agent_session *session, const struct agent_work *work, struct look *look,
                                     enum channel channel, bool *is_drained)
{
    struct stream_window *window = work->window;
    struct channel_stream *stream = &session->streams[channel];
    enum stream_result result = STREAM_AGAIN;
    for (int listings = 0; result == STREAM_AGAIN && listings < LISTINGS_MAX; listings++) {
        struct problem problem = {""};
        if (listings) {
            look_free(look);
            if (look_at(session, work, look, &problem))
                return STEP_IDLE;
        }
        result = channel_stream_read(stream, &look->source, &session->state.channels[channel], window);
    }
    session->backlog_bytes += window->backlog_bytes;
    if (window->reason[0])
        log_once(session, GPUFL_LOG_WARNING, window->reason);
    *is_drained = result == STREAM_NOTHING;
    if (window->has_damage && result != STREAM_AGAIN)
        agent_session_note_damage(session, work);
    switch (result) {
    case STREAM_WINDOW:
        session->backlog_bytes += window->window.raw_bytes;
        return send_window(session, work, channel);
    case STREAM_PASSED:
        move_on(session, work, channel);
        return STEP_MORE;
    case STREAM_NOTHING:
    case STREAM_AGAIN:
    case STREAM_FAILED:
        break;
    }
    return STEP_IDLE;
}

static bool has_ended(const struct agent_session *session, const struct agent_work *work, const struct look *look)
{
    bool has_lines = false;
    for (int i = 0; i < CHANNEL_COUNT; i++)
        has_lines |= is_begun(&session->state.channels[i]);
    if (!has_lines)
        return false;
    if (has_every_shutdown(session, look))
        return true;
    if (work->is_once)
        return !session->is_live;
    return !session->is_live && clock_mono_ns() - session->lock_gone_ns > (int64_t)SHUTDOWN_GRACE_MS * 1000000;
}

static enum step_result complete(struct agent_session *session, const struct agent_work *work)
{
    switch (shipper_complete(work->shipper, &session->sender)) {
    case SHIPMENT_TAKEN:
        session->state.is_complete = true;
        session->is_unsaved = true;
        counter_add(&work->counters->sessions_completed, 1);
        return save_now(session, work) ? STEP_IDLE : STEP_RETRY;
    case SHIPMENT_REFUSED:
        return STEP_REFUSED;
    case SHIPMENT_STOPPED:
        return STEP_STOPPED;
    default:
        return STEP_RETRY;
    }
}

static void schedule(struct agent_session *session, const struct agent_work *work, bool is_waiting)
{
    int64_t now_ns = clock_mono_ns();
    int64_t wait_ns = session->state.is_complete ? (int64_t)POLL_DONE_MS * 1000000 : (int64_t)POLL_LIVE_MS * 1000000;
    if (is_waiting || (!session->state.is_complete && !session->is_watched))
        wait_ns = work->interval_ns;
    session->due_ns = session->due_ns > now_ns ? session->due_ns : now_ns + wait_ns;
}

/* Serves all channels in turn. */
static enum step_result step_channels(struct agent_session *session, const struct agent_work *work, struct look *look,
                                      bool *is_waiting)
{
    enum step_result result = STEP_IDLE;
    session->is_drained = true;
    session->backlog_bytes = 0;
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        bool is_drained = false;
        enum step_result one = step_channel(session, work, look, (enum channel)i, &is_drained);
        session->is_drained &= is_drained;
        /* While a channel is being written, wait until there are enough lines for a window. */
        bool is_full = work->window->window.raw_bytes >= FULL_WINDOW_BYTES;
        if (one == STEP_MORE && session->is_live && !is_full && !work->is_once &&
            !session->state.channels[i].has_shutdown) {
            *is_waiting = true;
            continue;
        }
        if (one != STEP_IDLE)
            result = one;
        if (one != STEP_IDLE && one != STEP_MORE)
            break;
        if (one == STEP_MORE && work->shipper->not_before_ns > clock_mono_ns())
            break; /* the bandwidth limit is reached */
    }
    return result;
}

enum step_result agent_session_step(struct agent_session *session, const struct agent_work *work)
{
    struct look look;
    struct problem problem = {""};
    session->is_dirty = false;
    session->due_ns = 0;
    look_at_lock(session);
    gpufl_status status = look_at(session, work, &look, &problem);
    session->is_unread = status != GPUFL_OK;
    if (status) {
        session->is_drained = false;
        if (status != GPUFL_E_NOT_FOUND)
            log_once(session, GPUFL_LOG_WARNING, problem.text);
        schedule(session, work, false);
        return status == GPUFL_E_NOT_FOUND ? STEP_GONE : STEP_IDLE;
    }
    bool is_waiting = false;
    enum step_result result = step_channels(session, work, &look, &is_waiting);
    if (result == STEP_IDLE && session->is_drained && !session->state.is_complete) {
        if (has_ended(session, work, &look))
            result = complete(session, work);
        else
            is_waiting |= !session->is_live && session->bytes;
    }
    look_free(&look);
    if (result == STEP_IDLE)
        schedule(session, work, is_waiting);
    return result;
}
