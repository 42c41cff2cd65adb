/* SPDX-License-Identifier: Apache-2.0 */
/* driver/checkpoint.h for Python. */
#include "handle.h"

#include "driver/checkpoint.h"

static const char checkpoint_capsule[] = "gpufl.checkpoint";

static PyObject *checkpoint_make(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t context;
    unsigned long long device_mib, host_mib;
    int has_fixed_point;
    if (!PyArg_ParseTuple(args, "nKKp:checkpoint_open", &context, &device_mib, &host_mib, &has_fixed_point))
        return NULL;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    const struct checkpoint_options options = {(void *)context, device_mib, host_mib, has_fixed_point != 0};
    struct checkpoint *checkpoint = NULL;
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = checkpoint_open(&checkpoint, cupti, &options, &problem);
    Py_END_ALLOW_THREADS;
    return status == GPUFL_OK ? handle_make(checkpoint_capsule, checkpoint) : problem_raise(status, &problem);
}

static PyObject *checkpoint_call(PyObject *capsule, gpufl_status (*call)(struct checkpoint *, struct problem *))
{
    struct handle *handle = handle_take(capsule, checkpoint_capsule);
    if (!handle)
        return NULL;
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = call(handle->object, &problem);
    Py_END_ALLOW_THREADS;
    handle->is_busy = false;
    return none_or_raise(status, &problem);
}

static PyObject *checkpoint_put_aside(PyObject *module, PyObject *capsule)
{
    (void)module;
    return checkpoint_call(capsule, checkpoint_save);
}

static PyObject *checkpoint_put_back(PyObject *module, PyObject *capsule)
{
    (void)module;
    return checkpoint_call(capsule, checkpoint_restore);
}

static PyObject *checkpoint_end(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct handle *handle = handle_take(capsule, checkpoint_capsule);
    if (!handle)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    checkpoint_close(handle->object);
    Py_END_ALLOW_THREADS;
    *handle = (struct handle){NULL, false};
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"checkpoint_open", checkpoint_make, METH_VARARGS, "Creates an empty checkpoint."},
    {"checkpoint_save", checkpoint_put_aside, METH_O, "Saves device memory."},
    {"checkpoint_restore", checkpoint_put_back, METH_O, "Restores the saved memory."},
    {"checkpoint_close", checkpoint_end, METH_O, "Frees the saved memory."},
    {NULL, NULL, 0, NULL},
};

int checkpoints_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
