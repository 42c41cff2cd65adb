/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike librocprofiler-sdk.so: records of GPU work come late. As in the
 * real one (AsyncSignalHandler in hsa/queue.cpp, async_copy_handler in
 * hsa/async_copy.cpp), a thread of HSA's puts them into the buffer some time
 * after the work has ended, so after hipDeviceSynchronize has returned, and does
 * so for the contexts that were active when the work was started, even if they
 * were stopped meanwhile. The fault rocprofiler_late_us says how long after. */
#include "faults.h"
#include "rocprofiler_fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct late {
    struct late *next;
    uint64_t due, service;
    uint32_t category, kind;
    size_t size;
    uint8_t record[FAKE_RECORD_BYTES];
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t is_filled;
    struct late *first, **last;
    bool has_thread;
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .is_filled = PTHREAD_COND_INITIALIZER};

static struct late *take(void)
{
    pthread_mutex_lock(&queue.mutex);
    while (!queue.first)
        pthread_cond_wait(&queue.is_filled, &queue.mutex);
    struct late *late = queue.first;
    queue.first = late->next;
    if (!queue.first)
        queue.last = &queue.first;
    pthread_mutex_unlock(&queue.mutex);
    return late;
}

static void *deliver(void *unused)
{
    (void)unused;
    for (;;) {
        struct late *late = take();
        const struct timespec due = {(time_t)(late->due / 1000000000), (long)(late->due % 1000000000)};
        while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &due, NULL)) {
        }
        fake_buffer_put_to(late->service, late->category, late->kind, late->record, late->size);
        free(late);
    }
    return NULL;
}

void fake_buffer_put_at(int kind, uint32_t category, uint32_t record_kind, const void *record, size_t size,
                        uint64_t end)
{
    int64_t late_us = fault_number("rocprofiler_late_us", 0);
    uint64_t service = fake_service_of(kind);
    if (late_us <= 0) {
        fake_buffer_put_to(service, category, record_kind, record, size);
        return;
    }
    struct late *late = service ? calloc(1, sizeof *late) : NULL;
    if (!late)
        return;
    *late = (struct late){NULL, end + (uint64_t)late_us * 1000, service, category, record_kind, size, {0}};
    memcpy(late->record, record, size < sizeof late->record ? size : sizeof late->record);
    pthread_mutex_lock(&queue.mutex);
    pthread_t thread;
    if (!queue.has_thread) {
        queue.last = &queue.first;
        queue.has_thread = pthread_create(&thread, NULL, deliver, NULL) == 0;
        if (queue.has_thread)
            pthread_detach(thread);
    }
    *queue.last = late;
    queue.last = &late->next;
    pthread_cond_signal(&queue.is_filled);
    pthread_mutex_unlock(&queue.mutex);
}
