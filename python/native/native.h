/* SPDX-License-Identifier: Apache-2.0 */
/* The extension module gpufl._native (stable ABI: one file for Python 3.9 and
 * later). Each source file adds its types or functions to the module. */
#ifndef GPUFL_PYTHON_NATIVE_H
#define GPUFL_PYTHON_NATIVE_H

#include <Python.h>
#include <gpufl/gpufl.h>

PyMODINIT_FUNC PyInit__native(void);

/* Each 0, or -1 with an exception set. */
int scope_add_types(PyObject *module);
int session_add_types(PyObject *module);
int sdk_add_functions(PyObject *module);

/* scope.c: a session began or ended, so the open scopes do not belong to the current one. */
void scope_session_changed(void);

/* The text of a str without NUL, valid as long as the object; NULL with a TypeError or ValueError that names `what`. */
const char *text_of(PyObject *object, const char *what);
/* Call after a failed PyArg_ParseTupleAndKeywords: for an unknown keyword, replaces the error by a TypeError with the
 * nearest name. Returns NULL. */
PyObject *keywords_raise(const char *function, PyObject *kwargs, char *const *names);
/* PyModule_AddObjectRef, which Python 3.9 lacks. */
int module_add(PyObject *module, const char *name, PyObject *object);
/* Raises the Python exception for a status: ValueError, PermissionError, FileNotFoundError, MemoryError, OSError ... */
PyObject *status_raise(gpufl_status status, const char *message);

#endif
