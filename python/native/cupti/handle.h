/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of src/driver in Python, as capsules, and their errors. While a call
 * on an object runs without the GIL, calls from other threads fail. */
#ifndef GPUFL_PYTHON_CUPTI_HANDLE_H
#define GPUFL_PYTHON_CUPTI_HANDLE_H

#include "cupti_native.h"

struct handle {
    void *object; /* NULL: closed */
    bool is_busy;
};
/* Freeing the capsule of an open object does not close it: that may wait for the GPU, which a destructor must not. */
PyObject *handle_make(const char *name, void *object);
/* Locked until is_busy is false again; NULL with an exception. */
struct handle *handle_take(PyObject *capsule, const char *name);

/* Raises the Python exception for a status; returns NULL. */
PyObject *problem_raise(gpufl_status status, const struct problem *problem);
PyObject *none_or_raise(gpufl_status status, const struct problem *problem);
/* Parses the address of a context and returns the loaded CUPTI; NULL with an exception. */
struct cupti *context_parse(PyObject *address, void **context);

#endif
