/* SPDX-License-Identifier: Apache-2.0 */
/* driver/pc_sampling.h for Python. While CUPTI is read, samples are appended in batches, each under the GIL. */
#include "handle.h"

#include "driver/pc_sampling.h"

static const char pc_capsule[] = "gpufl.pc_sampling";

static PyObject *pc_open(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t context, hardware, scratch;
    int is_serialized;
    unsigned period, sleep_ms, pcs;
    if (!PyArg_ParseTuple(args, "npInnII:pc_open", &context, &is_serialized, &period, &hardware, &scratch, &sleep_ms,
                          &pcs))
        return NULL;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    const struct pc_sampling_options options = {.is_serialized = is_serialized != 0,
                                                .period_exponent = period,
                                                .hardware_buffer_bytes = (size_t)hardware,
                                                .scratch_bytes = (size_t)scratch,
                                                .worker_sleep_ms = sleep_ms,
                                                .pcs_max = pcs};
    struct pc_sampling *sampling = NULL;
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = pc_sampling_open(&sampling, cupti, (void *)context, &options, &problem);
    Py_END_ALLOW_THREADS;
    return status == GPUFL_OK ? handle_make(pc_capsule, sampling) : problem_raise(status, &problem);
}

static PyObject *pc_stall_reasons(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct handle *handle = handle_take(capsule, pc_capsule);
    if (!handle)
        return NULL;
    const struct stall_reasons *stalls = pc_sampling_stall_reasons(handle->object);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < stalls->count; i++) {
        PyObject *pair = Py_BuildValue("Is", stalls->reasons[i].index, stalls->reasons[i].name);
        if (!pair || PyList_Append(list, pair) < 0)
            Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    handle->is_busy = false;
    return list;
}

/* Appends tuples to the list; the list is NULL after a failure, with the exception set on this thread. */
static void samples_append(void *user, const struct pc_sample *samples, size_t count)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject **list = user;
    for (size_t i = 0; *list && i < count; i++) {
        const struct pc_sample *sample = &samples[i];
        PyObject *tuple = Py_BuildValue("KsKIIII", (unsigned long long)sample->cubin_crc, sample->function,
                                        (unsigned long long)sample->pc_offset, sample->function_index,
                                        sample->stall_index, sample->samples, sample->correlation_id);
        if (!tuple || PyList_Append(*list, tuple) < 0)
            Py_CLEAR(*list);
        Py_XDECREF(tuple);
    }
    PyGILState_Release(state);
}

typedef gpufl_status pc_reader(struct pc_sampling *, pc_samples_fn *, void *, struct pc_drain *, struct problem *);

/* (samples, total, dropped, non_user, was_buffer_full, has_more) */
static PyObject *pc_read(PyObject *capsule, pc_reader *read, bool is_closing)
{
    struct handle *handle = handle_take(capsule, pc_capsule);
    if (!handle)
        return NULL;
    PyObject *list = PyList_New(0);
    struct pc_drain drain = {0};
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = read(handle->object, samples_append, &list, &drain, &problem);
    Py_END_ALLOW_THREADS;
    handle->is_busy = false;
    if (is_closing)
        handle->object = NULL;
    if (!list)
        return NULL;
    if (status != GPUFL_OK) {
        Py_DECREF(list);
        return problem_raise(status, &problem);
    }
    return Py_BuildValue("NKKKiiK", list, (unsigned long long)drain.total, (unsigned long long)drain.dropped,
                         (unsigned long long)drain.non_user, drain.was_buffer_full, drain.has_more,
                         (unsigned long long)drain.unread);
}

static PyObject *pc_drain(PyObject *module, PyObject *capsule)
{
    (void)module;
    return pc_read(capsule, pc_sampling_drain, false);
}

static PyObject *pc_stop(PyObject *module, PyObject *capsule)
{
    (void)module;
    return pc_read(capsule, pc_sampling_stop, false);
}

static PyObject *pc_close(PyObject *module, PyObject *capsule)
{
    (void)module;
    return pc_read(capsule, pc_sampling_close, true);
}

static PyObject *pc_start(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct handle *handle = handle_take(capsule, pc_capsule);
    if (!handle)
        return NULL;
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = pc_sampling_start(handle->object, false, &problem);
    Py_END_ALLOW_THREADS;
    handle->is_busy = false;
    return none_or_raise(status, &problem);
}

static PyMethodDef functions[] = {
    {"pc_open", pc_open, METH_VARARGS, "Starts sampling a context."},
    {"pc_stall_reasons", pc_stall_reasons, METH_O, "[(index, name)]"},
    {"pc_drain", pc_drain, METH_O, "Reads the samples so far."},
    {"pc_stop", pc_stop, METH_O, "Stops; reads the remaining samples."},
    {"pc_start", pc_start, METH_O, "Starts again."},
    {"pc_close", pc_close, METH_O, "Ends; reads the remaining samples."},
    {NULL, NULL, 0, NULL},
};

int pc_samples_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
