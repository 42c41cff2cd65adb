/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike libcudart.so.13: streams, waits, events, graphs. */
#include "cudart_call.h"
#include "cudart_fake.h"

int cudaStreamCreate(void **stream)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaStreamCreate, NULL);
    if (result == FAKE_SUCCESS) {
        *stream = fake_stream_create(fake_current_context(), 0);
        result = *stream != NULL ? FAKE_SUCCESS : FAKE_OUT_OF_MEMORY;
    }
    return runtime_call_end(&call, result);
}

int cudaStreamDestroy(void *stream)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaStreamDestroy, NULL);
    fake_stream_destroy(stream);
    return runtime_call_end(&call, result);
}

int cudaStreamSynchronize(void *stream)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaStreamSynchronize, NULL);
    call.stream = stream;
    if (result == FAKE_SUCCESS)
        result = fake_stream_wait(stream_of(stream));
    return runtime_call_end(&call, result);
}

int cudaDeviceSynchronize(void)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaDeviceSynchronize, NULL);
    if (result == FAKE_SUCCESS)
        result = fake_context_wait(fake_current_context());
    return runtime_call_end(&call, result);
}

int cudaStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    struct fake_call call;
    (void)flags;
    int result = BEGIN(&call, cudaStreamWaitEvent, NULL);
    call.stream = stream;
    if (result == FAKE_SUCCESS)
        fake_stream_wait_event(stream_of(stream), event);
    return runtime_call_end(&call, result);
}

int cudaEventCreate(void **event)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaEventCreate, NULL);
    if (result == FAKE_SUCCESS) {
        *event = fake_event_create();
        result = *event != NULL ? FAKE_SUCCESS : FAKE_OUT_OF_MEMORY;
    }
    return runtime_call_end(&call, result);
}

int cudaEventRecord(void *event, void *stream)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaEventRecord, NULL);
    if (result == FAKE_SUCCESS)
        fake_event_record(event, stream_of(stream));
    return runtime_call_end(&call, result);
}

int cudaEventSynchronize(void *event)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaEventSynchronize, NULL);
    if (result == FAKE_SUCCESS)
        result = fake_event_wait(event);
    return runtime_call_end(&call, result);
}

int cudaEventQuery(void *event)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaEventQuery, NULL);
    if (result == FAKE_SUCCESS && !fake_event_is_done(event))
        result = FAKE_NOT_READY;
    return runtime_call_end(&call, result);
}

int cudaEventElapsedTime(float *milliseconds, void *start, void *end)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaEventElapsedTime, NULL);
    if (result == FAKE_SUCCESS && (!fake_event_is_done(start) || !fake_event_is_done(end)))
        result = FAKE_NOT_READY;
    if (result == FAKE_SUCCESS)
        *milliseconds = (float)((double)(fake_event_time_ns(end) - fake_event_time_ns(start)) / 1e6);
    return runtime_call_end(&call, result);
}

int cudaEventDestroy(void *event)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaEventDestroy, NULL);
    fake_event_destroy(event);
    return runtime_call_end(&call, result);
}

int cudaStreamBeginCapture(void *stream, int mode)
{
    struct fake_call call;
    (void)mode;
    int result = BEGIN_ON(&call, cudaStreamBeginCapture, stream);
    if (result == FAKE_SUCCESS)
        result = fake_capture_begin(stream_of(stream));
    return runtime_call_end(&call, result);
}

int cudaStreamEndCapture(void *stream, void **graph)
{
    struct fake_call call;
    int result = BEGIN_ON(&call, cudaStreamEndCapture, stream);
    if (result == FAKE_SUCCESS)
        *graph = fake_capture_end(stream_of(stream), &result);
    return runtime_call_end(&call, result);
}

int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags)
{
    struct fake_call call;
    (void)flags;
    int result = BEGIN(&call, cudaGraphInstantiate, NULL);
    if (result == FAKE_SUCCESS) {
        *executable = fake_graph_instantiate(graph);
        result = *executable != NULL ? FAKE_SUCCESS : FAKE_OUT_OF_MEMORY;
    }
    return runtime_call_end(&call, result);
}

int cudaGraphLaunch(void *executable, void *stream)
{
    struct fake_call call;
    int result = BEGIN_ON(&call, cudaGraphLaunch, executable);
    if (result == FAKE_SUCCESS)
        result = fake_graph_launch(executable, stream_of(stream));
    return runtime_call_end(&call, result);
}

int cudaGraphExecDestroy(void *executable)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaGraphExecDestroy, NULL);
    fake_graph_destroy(executable);
    return runtime_call_end(&call, result);
}

int cudaGraphDestroy(void *graph)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaGraphDestroy, NULL);
    fake_graph_destroy(graph);
    return runtime_call_end(&call, result);
}
