/* SPDX-License-Identifier: Apache-2.0 */
/* Events from user threads for the collector: scope begin and end, call stacks. Each thread owns a ring, created at
 * its first event and returned when it exits, and another one for its stacks, which are large and must not displace
 * scopes. Producers: the user's threads. Consumer: the collector. */
#ifndef GPUFL_CAPTURE_THREAD_LOG_H
#define GPUFL_CAPTURE_THREAD_LOG_H

#include "base/ring.h"
#include "base/status.h"
#include "driver/activity.h"

enum thread_event_kind {
    THREAD_SCOPE_BEGIN = 1,  /* a plain scope: struct scope_event */
    THREAD_SCOPE_BEGIN_META, /* with tag, counts or details: struct scope_meta_event */
    THREAD_SCOPE_END,
    THREAD_SCOPE_END_COUNTED,
    THREAD_SCOPE_TOKEN, /* the innermost scope got this token: struct token_event */
    THREAD_SCOPE_ADOPT, /* the thread works for the token's scope, until the end of this entry of its stack */
    THREAD_RANGE_START, /* NVTX start/end range: not nested, may end on another thread */
    THREAD_RANGE_END,
    THREAD_MARK, /* an instant: struct scope_meta_event */
    THREAD_CALL_STACK,
    THREAD_LAUNCH, /* while kernel tracing is paused */
    THREAD_CALL,
    THREAD_WAIT, /* or another call with details */
    THREAD_EXIT  /* with scopes that are still open */
};

/* A thread's scopes are guaranteed to be nested only within one stack. */
enum scope_stack {
    SCOPE_STACK_API,  /* gpufl_scope_begin and the like */
    SCOPE_STACK_NVTX, /* NVTX's default domain */
    SCOPE_STACK_ROCTX,
    SCOPE_STACK_ADOPTED, /* scopes of other threads, by token */
    SCOPE_STACK_TASK,    /* ... of which the thread runs a task (task_scopes.h) */
    SCOPE_STACK_DOMAINS, /* from here on: NVTX's named domains */
    SCOPE_STACK_COUNT = 130
};
static inline bool scope_stack_is_adopted(uint32_t stack)
{
    return stack == SCOPE_STACK_ADOPTED || stack == SCOPE_STACK_TASK;
}

/* The optional attributes of an NVTX range or mark; all zero: none. */
struct scope_details {
    uint32_t category;
    uint32_t color; /* ARGB */
    uint8_t has_color;
    uint8_t payload_type; /* schema enum payload_type */
    uint64_t payload;     /* the bits of a 64-bit integer or of a double */
};

struct thread_event { /* EXIT: only this */
    struct ring_record record;
    uint64_t ticks;
};
struct scope_event { /* kept small: a scope costs as many cache lines of the ring as its record spans */
    struct thread_event event;
    uint32_t name_size;
    uint16_t source; /* schema enum scope_source */
    uint16_t stack;
    char name[];
};
struct scope_meta_event { /* BEGIN_META, RANGE_START and MARK: name, then tag */
    struct thread_event event;
    uint64_t range_id;
    uint32_t repeat, warmup;
    uint32_t name_size, tag_size;
    uint16_t source, stack;
    struct scope_details details;
    char text[];
};
struct scope_end_event {
    struct thread_event event;
    uint32_t stack;
    uint32_t iterations; /* of a benchmark that may have ended early, how many began: SCOPE_END_COUNTED */
};
struct token_event {
    struct thread_event event;
    uint64_t token;
    uint32_t stack; /* ADOPT */
};
struct range_end_event {
    struct thread_event event;
    uint64_t range_id;
};
struct stack_event { /* in the stack ring */
    struct ring_record record;
    uint32_t correlation_id;
    uint32_t frame_count; /* 0: the thread already sent the frames */
    uint64_t hash;        /* identifies the frames */
    uint64_t frames[];    /* C, then Python (python_frames.h); each innermost first */
};

struct launch_event {
    struct thread_event event;
    uint32_t correlation_id, context_id, window_id;
    uint32_t symbol_size; /* 0: a graph */
    uint32_t is_scope_lost;
    char symbol[];
};

struct call_event { /* written when it returns */
    struct thread_event event;
    uint64_t end_ticks;
    uint32_t correlation_id;
    uint8_t has_kernel;
    uint8_t state;          /* enum call_state, when it returned */
    uint16_t is_scope_lost; /* made inside a scope that did not fit in the ring */
};
struct wait_event { /* likewise; also of a call with an external id */
    struct call_event call;
    struct user_call user;
};

enum {
    THREAD_LOG_BYTES = 256 * 1024,
    THREAD_LOG_LARGE_MAX = 128,         /* threads at once with such a ring: 32 MiB in all */
    THREAD_LOG_SMALL_BYTES = 16 * 1024, /* rings of the threads beyond them: 14 MiB in all */
    THREAD_LOG_COUNT_MAX = 1024,        /* events of further threads are lost and counted, until another thread exits */
    SCOPE_TEXT_BYTES_MAX = 16 * 1024,
    STACK_FRAMES_MAX = 128,            /* of C and Python */
    STACK_LOG_BYTES = 256 * 1024,      /* made with the thread's first stack */
    STACK_LOG_SMALL_BYTES = 16 * 1024, /* beside a small ring */
    STACK_SENT_SLOTS = 1024
};

struct thread_log {
    struct ring ring, stacks;
    uint32_t number;                 /* of the ring, below THREAD_LOG_COUNT_MAX */
    uint32_t thread_id, pthread_low; /* gettid(), and the low half of pthread_self() for old CUPTI */
    uint32_t epoch;                  /* of the session that the counts below belong to */
    uint32_t depth;                  /* open scopes whose end must still fit */
    uint32_t dropped_depth;          /* open scopes that were dropped: their ends are dropped, too */
    struct {
        uint32_t kept, dropped;
    } stacks_open[SCOPE_STACK_COUNT]; /* the same for each stack */
    uint64_t token;                   /* of the innermost scope, 0: none was taken since a scope began or ended */
    uint64_t token_count;             /* tokens taken of this ring, by all its threads */
    uint64_t task;                    /* number + 1 of the task whose scope is adopted; 0: none */
    _Atomic uint64_t lost_scopes, lost_stacks, lost_launches, lost_calls;
    uint64_t reported_lost_scopes, reported_lost_stacks, reported_lost_launches, reported_lost_calls; /* collector's */
    uint64_t alarm_tail, stack_alarm_tail; /* tails when the collector was last woken: once per filling is enough */
    _Atomic int is_exited;
    uint32_t sent_epoch;   /* in which the hashes were sent */
    uint64_t *sent_hashes; /* [STACK_SENT_SLOTS], by their low bits: stacks whose frames were already sent */
};

struct scope_text {
    const char *name, *tag;
    size_t name_size, tag_size;
    uint32_t repeat, warmup, source;
    uint32_t stack; /* enum scope_stack */
    struct scope_details details;
};

/* Identifies a scope that is open, or was: the session, the ring of its thread, and a number that counts in that ring. */
enum { TOKEN_NUMBER_BITS = 10, TOKEN_COUNT_BITS = 38 };
_Static_assert(1 << TOKEN_NUMBER_BITS >= THREAD_LOG_COUNT_MAX, "numbers of rings");
static inline uint32_t token_ring(uint64_t token)
{
    return (uint32_t)(token >> TOKEN_COUNT_BITS) & ((1u << TOKEN_NUMBER_BITS) - 1);
}

struct scope_edge {
    int level;         /* of the scope in its stack, 0 the outermost; -1: no such scope, or the thread has no ring */
    bool is_outermost; /* the thread entered its outermost scope, or left it */
};

/* Called by the user's threads; no-ops without a session. */
struct scope_edge thread_log_scope_begin(const struct scope_text *text);
/* Ends the innermost scope of the stack; scopes of other stacks that began in it stay open. */
struct scope_edge thread_log_scope_end(uint32_t stack);
/* For a benchmark: iterations is how many began, whatever its begin event said. */
struct scope_edge thread_log_scope_end_counted(uint32_t stack, uint32_t iterations);
/* A token of the thread's innermost scope, which other threads may adopt; 0: it is in none, or the ring is full. */
uint64_t thread_log_token(void);
/* The thread works for the token's scope from now on, until thread_log_scope_end(stack). Changes nothing but that this
 * end is due where the token is 0 or of an earlier session. stack: ADOPTED or TASK. */
struct scope_edge thread_log_adopt(uint32_t stack, uint64_t token);
void thread_log_mark(const struct scope_text *text);
void thread_log_range_start(const struct scope_text *text, uint64_t range_id);
void thread_log_range_end(uint64_t range_id);
/* symbol: mangled name, or NULL for a graph. */
void thread_log_launch(const char *symbol, uint32_t correlation_id, uint32_t context_id, uint32_t window_id);
/* A call that began at start_ticks and returns now. */
void thread_log_call(const struct user_call *call, uint64_t start_ticks);
void thread_log_stack(uint32_t correlation_id, const uint64_t *frames, uint32_t frame_count);

/* For the session and the collector. */
/* Call once per process. wake: called on a user's thread when its ring is half full; must not block. */
NODISCARD gpufl_status thread_logs_setup(void (*wake)(void));
void thread_logs_start(void); /* new epoch: the content of the rings is obsolete */
/* Makes each thread send the frames of its next stacks again, including stacks it already sent. */
void thread_logs_resend_stacks(void);
/* Calls fn for every log and recycles those of exited threads once they are empty. */
void thread_logs_visit(void (*fn)(void *user, struct thread_log *log), void *user);
/* Events of threads that got no ring. */
enum thread_loss { THREAD_LOSS_SCOPE, THREAD_LOSS_STACK, THREAD_LOSS_LAUNCH, THREAD_LOSS_CALL, THREAD_LOSS_COUNT };
uint64_t thread_logs_refused(enum thread_loss loss);
/* The log of the ring with that number; NULL: no thread has it. */
struct thread_log *thread_logs_find(uint32_t number);
/* Whether the token is of the running session. */
bool thread_logs_is_token(uint64_t token);
void thread_logs_forget(void); /* in a forked child */
size_t thread_logs_bytes(void);

#endif
