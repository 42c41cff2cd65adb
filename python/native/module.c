/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

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
