/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions. CUPTI calls back on the program's threads, inside CUDA calls.
 * Each call takes the GIL unless the gate is closed: then the interpreter is
 * about to end and must not be used. */
#include "cupti_native.h"

#include "driver/gate.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

struct subscription { /* freed when it is unsubscribed, after its last call */
    struct subscription *next;
    void *handle; /* CUPTI's */
    PyObject *callback, *user;
};
static struct subscription *subscriptions; /* under the GIL */
static struct gate gate = {true, 0};

static void call_python(struct subscription *subscription, uint32_t domain, uint32_t cbid, const void *data)
{
    /* Keeps an exception that is being raised on this thread. */
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    size_t size = record_bytes(RECORD_CALLBACK, domain);
    PyObject *record = data && size ? record_make(RECORD_CALLBACK, domain, data, size) : Py_NewRef(Py_None);
    PyObject *result = NULL;
    if (record)
        result = PyObject_CallFunction(subscription->callback, "OIIO", subscription->user, domain, cbid, record);
    if (!result)
        PyErr_WriteUnraisable(subscription->callback);
    if (record && record != Py_None)
        record_retire(record);
    Py_XDECREF(result);
    Py_XDECREF(record);
    PyErr_Restore(kind, value, trace);
}

static void call_arrives(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    if (!gate_enter(&gate))
        return;
    PyGILState_STATE state = PyGILState_Ensure();
    call_python(user, domain, cbid, data);
    PyGILState_Release(state);
    gate_leave(&gate);
}

static void subscription_free(struct subscription *subscription)
{
    Py_XDECREF(subscription->callback);
    Py_XDECREF(subscription->user);
    free(subscription);
}

/* (CUptiResult, handle); params: address of CUpti_SubscriberParams, 0 for cuptiSubscribe. */
static PyObject *callbacks_subscribe(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *callback, *user;
    Py_ssize_t params;
    if (!PyArg_ParseTuple(args, "OOn:subscribe", &callback, &user, &params))
        return NULL;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    if (params && !cupti->call.subscribe_v2) {
        PyErr_SetString(PyExc_SystemError, "this CUPTI has no cuptiSubscribe_v2");
        return NULL;
    }
    struct subscription *made = calloc(1, sizeof *made);
    if (!made)
        return PyErr_NoMemory();
    made->callback = Py_NewRef(callback);
    made->user = Py_NewRef(user);
    int result;
    Py_BEGIN_ALLOW_THREADS;
    gate_open(&gate);
    result = params ? cupti->call.subscribe_v2(&made->handle, call_arrives, made, (void *)params)
                    : cupti->call.subscribe(&made->handle, call_arrives, made);
    Py_END_ALLOW_THREADS;
    if (result != CUPTI_ABI_SUCCESS) {
        subscription_free(made);
        return Py_BuildValue("iO", result, Py_None);
    }
    made->next = subscriptions;
    subscriptions = made;
    return Py_BuildValue("iN", result, PyLong_FromVoidPtr(made->handle));
}

/* The CUptiResult. */
static PyObject *callbacks_unsubscribe(PyObject *module, PyObject *address)
{
    (void)module;
    void *handle = PyLong_AsVoidPtr(address);
    if (!handle && PyErr_Occurred())
        return NULL;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    struct subscription **at = &subscriptions;
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    struct subscription *found = *at;
    if (!found) {
        PyErr_SetString(PyExc_ValueError, "not a handle from subscribe(), or already unsubscribed");
        return NULL;
    }
    *at = found->next;
    int result;
    Py_BEGIN_ALLOW_THREADS;
    result = cupti->call.unsubscribe(handle); /* waits for calls that are under way */
    Py_END_ALLOW_THREADS;
    if (result == CUPTI_ABI_SUCCESS) {
        subscription_free(found);
    } else { /* CUPTI may still call it */
        found->next = subscriptions;
        subscriptions = found;
    }
    return PyLong_FromLong(result);
}

/* The time that CUPTI writes into its records; the system clock's if Python can no longer be called. */
static PyObject *timestamp_function;

static uint64_t timestamp_now(void)
{
    uint64_t now_ns = 0;
    bool is_known = false;
    if (gate_enter(&gate)) {
        PyGILState_STATE state = PyGILState_Ensure();
        PyObject *kind, *value, *trace;
        PyErr_Fetch(&kind, &value, &trace);
        PyObject *result = timestamp_function ? PyObject_CallNoArgs(timestamp_function) : NULL;
        now_ns = result ? PyLong_AsUnsignedLongLong(result) : 0;
        is_known = result && !PyErr_Occurred();
        if (PyErr_Occurred())
            PyErr_WriteUnraisable(timestamp_function);
        Py_XDECREF(result);
        PyErr_Restore(kind, value, trace);
        PyGILState_Release(state);
        gate_leave(&gate);
    }
    struct timespec now;
    if (!is_known && clock_gettime(CLOCK_REALTIME, &now) == 0)
        now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return now_ns;
}

/* The CUptiResult of cuptiActivityRegisterTimestampCallback. */
static PyObject *timestamp_register(PyObject *module, PyObject *function)
{
    (void)module;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    int (*call)(uint64_t(*)(void)) = __extension__(int (*)(uint64_t(*)(void)))
        library_symbol(&cupti->library, "cuptiActivityRegisterTimestampCallback");
    if (!call) {
        PyErr_SetString(PyExc_SystemError, "this CUPTI has no cuptiActivityRegisterTimestampCallback");
        return NULL;
    }
    PyObject *before = timestamp_function;
    timestamp_function = Py_NewRef(function);
    int result;
    Py_BEGIN_ALLOW_THREADS;
    gate_open(&gate);
    result = call(timestamp_now);
    Py_END_ALLOW_THREADS;
    Py_XDECREF(before);
    return PyLong_FromLong(result);
}

/* On return, no callback is inside Python and none will enter it. */
static PyObject *callbacks_close(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    gate_close(&gate);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"subscribe", callbacks_subscribe, METH_VARARGS, "cuptiSubscribe or, with parameters, cuptiSubscribe_v2."},
    {"unsubscribe", callbacks_unsubscribe, METH_O, "cuptiUnsubscribe."},
    {"timestamp_register", timestamp_register, METH_O, "cuptiActivityRegisterTimestampCallback."},
    {"callback_close", callbacks_close, METH_NOARGS, "Closes the gate through which callbacks enter Python."},
    {NULL, NULL, 0, NULL},
};

/* In a forked child no callback is inside: their threads do not exist there. */
static void child_begin(void)
{
    atomic_store(&gate.is_open, false);
    atomic_store(&gate.inside, 0);
}

int callbacks_add_functions(PyObject *module)
{
    static bool is_registered;
    if (!is_registered && pthread_atfork(NULL, NULL, child_begin) == 0)
        is_registered = true;
    return PyModule_AddFunctions(module, functions);
}
