/* SPDX-License-Identifier: Apache-2.0 */
/* The extension module gpufl._native, on CPython's stable ABI: one file for 3.11
 * and later. Each source adds its types or functions to the module. */
#ifndef GPUFL_PYTHON_NATIVE_H
#define GPUFL_PYTHON_NATIVE_H

#include <Python.h>
#include <gpufl/gpufl.h>

PyMODINIT_FUNC PyInit__native(void);

/* Each 0, or -1 with an exception set. */
int scope_add_types(PyObject *module);
int session_add_types(PyObject *module);
int sdk_add_functions(PyObject *module);

/* scope.c: scopes that were open belong to a session that has ended or not yet begun. */
void scope_session_changed(void);

/* The text of a str without NUL inside, valid as long as the object; NULL with TypeError or ValueError that names what. */
const char *text_of(PyObject *object, const char *what);
/* After a failed PyArg_ParseTupleAndKeywords: where a keyword is none of the names, a TypeError that also says which one
 * is nearest; else what was raised stays. Returns NULL. */
PyObject *keywords_raise(const char *function, PyObject *kwargs, char *const *names);
/* Raises what a status means in Python: ValueError, PermissionError, FileNotFoundError, MemoryError, OSError ... */
PyObject *status_raise(gpufl_status status, const char *message);

#endif
