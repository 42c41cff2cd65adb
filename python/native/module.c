/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

int module_add(PyObject *module, const char *name, PyObject *object)
{
    Py_INCREF(object);
    if (PyModule_AddObject(module, name, object) == 0)
        return 0;
    Py_DECREF(object);
    return -1;
}

static int module_fill(PyObject *module)
{
    return scope_add_types(module) || session_add_types(module) || sdk_add_functions(module) ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, module_fill}, {0, NULL}};
static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "gpufl._native",
    .m_doc = "The C part of gpufl: session control, scopes, and the session reader. Use the gpufl package instead.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
