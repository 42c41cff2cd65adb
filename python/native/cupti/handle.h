/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of src/driver in Python, as capsules: while a call of one runs without
 * the GIL, other threads are refused. And what its failures are there. */
#ifndef GPUFL_PYTHON_CUPTI_HANDLE_H
#define GPUFL_PYTHON_CUPTI_HANDLE_H

#include "cupti_native.h"

struct handle {
    void *object; /* NULL: closed */
    bool is_busy;
};
/* What is still open when the capsule goes stays so: ending it may wait for the GPU, which no destructor may. */
PyObject *handle_make(const char *name, void *object);
/* Locked until is_busy is false again; NULL with an exception. */
struct handle *handle_take(PyObject *capsule, const char *name);

/* Raises what a status is in Python; NULL. */
PyObject *problem_raise(gpufl_status status, const struct problem *problem);
PyObject *none_or_raise(gpufl_status status, const struct problem *problem);
/* A number as the address of a context, and the loaded CUPTI; NULL with an exception. */
struct cupti *context_parse(PyObject *address, void **context);

#endif
