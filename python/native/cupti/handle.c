/* SPDX-License-Identifier: Apache-2.0 */
#include "handle.h"

#include <stdlib.h>

/* Python code converts a status to an exception. */
PyObject *problem_raise(gpufl_status status, const struct problem *problem)
{
    PyObject *module = PyImport_ImportModule("gpufl.cupti._library");
    if (module)
        Py_XDECREF(PyObject_CallMethod(module, "raise_status", "is", (int)status, problem->text));
    Py_XDECREF(module);
    return NULL;
}

PyObject *none_or_raise(gpufl_status status, const struct problem *problem)
{
    return status == GPUFL_OK ? Py_NewRef(Py_None) : problem_raise(status, problem);
}

static void handle_free(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
}

PyObject *handle_make(const char *name, void *object)
{
    struct handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        return PyErr_NoMemory();
    handle->object = object;
    PyObject *capsule = PyCapsule_New(handle, name, handle_free);
    if (!capsule)
        free(handle);
    return capsule;
}

struct handle *handle_take(PyObject *capsule, const char *name)
{
    struct handle *handle = PyCapsule_GetPointer(capsule, name);
    if (!handle)
        return NULL;
    if (handle->is_busy || !handle->object) {
        PyErr_SetString(PyExc_RuntimeError, handle->object ? "another thread is using it" : "it is closed");
        return NULL;
    }
    handle->is_busy = true;
    return handle;
}

struct cupti *context_parse(PyObject *address, void **context)
{
    *context = PyLong_AsVoidPtr(address);
    return *context || !PyErr_Occurred() ? cupti_wanted() : NULL;
}
