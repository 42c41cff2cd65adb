/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts into several tables at the same time. Each insert waits for its replicas, but not for the other inserts. */
#include "store/clickhouse_client.h"

#include <pthread.h>

struct batch_job {
    struct ch_client *client;
    const struct ch_batch *batch;
    int64_t deadline_ns;
    gpufl_status status;
    struct problem problem;
    pthread_t thread;
    bool has_thread;
};

static void *batch_main(void *arg)
{
    struct batch_job *job = arg;
    job->status = ch_insert_until(job->client, job->batch->into, &job->batch->rows, job->deadline_ns, &job->problem);
    return NULL;
}

gpufl_status ch_insert_all(struct ch_client *client, const struct ch_batch *batches, unsigned count,
                           int64_t deadline_ns, struct problem *problem)
{
    struct batch_job jobs[CH_BATCHES_MAX] = {{0}};
    gpufl_status status = GPUFL_OK;
    for (unsigned i = 0; i < count && i < CH_BATCHES_MAX; i++) {
        jobs[i] = (struct batch_job){.client = client, .batch = &batches[i], .deadline_ns = deadline_ns};
        /* The last job runs on this thread. */
        jobs[i].has_thread =
            i + 1 < count && batches[i].rows.size && !pthread_create(&jobs[i].thread, NULL, batch_main, &jobs[i]);
        if (!jobs[i].has_thread)
            batch_main(&jobs[i]);
    }
    for (unsigned i = 0; i < count && i < CH_BATCHES_MAX; i++) {
        if (jobs[i].has_thread)
            pthread_join(jobs[i].thread, NULL);
        if (!status && jobs[i].status) {
            status = jobs[i].status;
            if (problem)
                *problem = jobs[i].problem;
        }
    }
    return status;
}
