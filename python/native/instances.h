/* SPDX-License-Identifier: Apache-2.0 */
/* For types whose objects only the module itself makes: Python 3.9 has no flag for that. */
#ifndef GPUFL_PYTHON_INSTANCES_H
#define GPUFL_PYTHON_INSTANCES_H

#include <Python.h>

/* As Py_tp_new. */
static inline PyObject *instance_refused(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    (void)arguments, (void)keywords;
    return PyErr_Format(PyExc_TypeError, "cannot create instances of %R", (PyObject *)type);
}

#endif
