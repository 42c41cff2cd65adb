/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the counter APIs: CUPTI's profiler, and the capabilities of devices. */
#include "handle.h"

#include "driver/profiler_target.h"

#include <stdlib.h>

static PyObject *profiler_acquire(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = profiler_target_acquire(cupti, &problem);
    Py_END_ALLOW_THREADS;
    return none_or_raise(status, &problem);
}

static PyObject *profiler_release(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    profiler_target_release(cupti);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *device_check(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned device;
    int api;
    if (!PyArg_ParseTuple(args, "Ii:device_check", &device, &api))
        return NULL;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = profiler_target_check(cupti, device, (enum profiler_api)api, &problem);
    Py_END_ALLOW_THREADS;
    return none_or_raise(status, &problem);
}

static PyObject *device_chip(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned device;
    if (!PyArg_ParseTuple(args, "I:device_chip", &device))
        return NULL;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    struct problem problem = {""};
    char chip[PROFILER_CHIP_NAME_BYTES] = "";
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = profiler_target_chip(cupti, device, chip, &problem);
    Py_END_ALLOW_THREADS;
    return status == GPUFL_OK ? PyUnicode_FromString(chip) : problem_raise(status, &problem);
}

static PyObject *context_availability(PyObject *module, PyObject *address)
{
    (void)module;
    void *context;
    struct cupti *cupti = context_parse(address, &context);
    if (!cupti)
        return NULL;
    struct problem problem = {""};
    uint8_t *image = NULL;
    size_t image_bytes = 0;
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = profiler_target_availability(cupti, context, &image, &image_bytes, &problem);
    Py_END_ALLOW_THREADS;
    if (status != GPUFL_OK)
        return problem_raise(status, &problem);
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)image, (Py_ssize_t)image_bytes);
    free(image);
    return bytes;
}

static PyMethodDef functions[] = {
    {"profiler_acquire", profiler_acquire, METH_NOARGS, "Initializes CUPTI's profiler if necessary."},
    {"profiler_release", profiler_release, METH_NOARGS, "Releases the profiler; the last release ends it."},
    {"device_check", device_check, METH_VARARGS, "Raises an error if the device does not support an API."},
    {"device_chip", device_chip, METH_VARARGS, "The chip of a device, for example GH100."},
    {"availability", context_availability, METH_O, "The counters that a context's device supports."},
    {NULL, NULL, 0, NULL},
};

int counters_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
