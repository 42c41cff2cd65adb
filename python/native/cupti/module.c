/* SPDX-License-Identifier: Apache-2.0 */
/* Finds CUPTI in the same way as the rest of gpufl. Python calls its functions by
 * address with ctypes, which releases the GIL while they run. */
#include "cupti_native.h"

#include "driver/cuda.h"
#include "driver/profiler_target.h"

#include <string.h>

struct cupti *cupti_wanted(void)
{
    struct cupti *cupti = NULL;
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = cupti_load(&cupti, &problem);
    Py_END_ALLOW_THREADS;
    if (status == GPUFL_OK)
        return cupti;
    PyErr_SetString(PyExc_RuntimeError, problem.text);
    return NULL;
}

static PyObject *library_describe(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct cupti *cupti = cupti_wanted();
    return cupti ? Py_BuildValue("sI", cupti_path(cupti), cupti_version(cupti)) : NULL;
}

static PyObject *library_address(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    if (!PyArg_ParseTuple(args, "s:address", &name))
        return NULL;
    struct cupti *cupti = cupti_wanted();
    return cupti ? PyLong_FromVoidPtr(library_symbol(&cupti->library, name)) : NULL;
}

/* Explains the result of a function and what to do about it. */
static PyObject *library_explain(PyObject *module, PyObject *args)
{
    (void)module;
    const char *function;
    int result;
    if (!PyArg_ParseTuple(args, "si:explain", &function, &result))
        return NULL;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    struct problem problem = {""};
    gpufl_status status = profiler_problem(cupti, function, result, &problem);
    /* Without a driver, unknown results would be reported as a missing driver. */
    bool is_about_driver = result == CUPTI_ABI_UNKNOWN || result == CUPTI_ABI_NOT_INITIALIZED;
    if (status == GPUFL_E_NO_DRIVER && !is_about_driver)
        (void)problem_set(&problem, status, "%s: %s (%d)", function, cupti_result_text(cupti, result), result);
    return PyUnicode_DecodeUTF8(problem.text, (Py_ssize_t)strlen(problem.text), "replace");
}

/* Names the missing library and the directory searched; "" if nothing is missing. */
static PyObject *library_load_counters(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    char directory[sizeof cupti->library.path];
    bool has_host, has_target;
    Py_BEGIN_ALLOW_THREADS;
    has_host = profiler_library_load(cupti, "libnvperf_host.so", directory, sizeof directory);
    has_target = profiler_library_load(cupti, "libnvperf_target.so", directory, sizeof directory);
    Py_END_ALLOW_THREADS;
    if (has_host && has_target)
        return PyUnicode_FromString("");
    return PyUnicode_FromFormat("%s is not in %s", has_host ? "libnvperf_target.so" : "libnvperf_host.so", directory);
}

static PyObject *driver_start(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct cuda *cuda;
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = cuda_load(&cuda, true, &problem);
    if (status == GPUFL_OK)
        status = cuda_initialize(cuda, &problem);
    Py_END_ALLOW_THREADS;
    if (status == GPUFL_OK)
        return PyLong_FromLong(cuda_device_count(cuda));
    PyErr_SetString(PyExc_RuntimeError, problem.text);
    return NULL;
}

static PyObject *context_current(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct cuda *cuda;
    void *context = cuda_load(&cuda, false, NULL) == GPUFL_OK ? cuda_current_context(cuda) : NULL;
    return PyLong_FromVoidPtr(context);
}

static PyObject *context_wait(PyObject *module, PyObject *address)
{
    (void)module;
    void *context = PyLong_AsVoidPtr(address);
    if (!context && PyErr_Occurred())
        return NULL;
    struct cuda *cuda;
    bool is_done = false;
    Py_BEGIN_ALLOW_THREADS;
    if (cuda_load(&cuda, false, NULL) == GPUFL_OK)
        is_done = cuda_synchronize(cuda, context);
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(is_done);
}

/* Reports an exception that has no caller, as CPython does (sys.unraisablehook). */
static PyObject *error_report(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *error, *function;
    if (!PyArg_ParseTuple(args, "OO:report", &error, &function))
        return NULL;
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(error)), Py_NewRef(error), PyException_GetTraceback(error));
    PyErr_WriteUnraisable(function);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"library", library_describe, METH_NOARGS, "Loads CUPTI; its path and API version."},
    {"address", library_address, METH_VARARGS, "Address of a CUPTI function; 0: no such function."},
    {"explain", library_explain, METH_VARARGS, "Explains the result of a function and what to do about it."},
    {"report", error_report, METH_VARARGS, "Reports an exception that has no caller."},
    {"load_counters", library_load_counters, METH_NOARGS, "Loads CUPTI's counter libraries; what is missing."},
    {"start_driver", driver_start, METH_NOARGS, "Initializes CUDA; the number of devices."},
    {"current_context", context_current, METH_NOARGS, "The calling thread's CUDA context, 0: none."},
    {"synchronize", context_wait, METH_O, "Waits for the work of a context; false: the driver cannot."},
    {NULL, NULL, 0, NULL},
};

static int module_fill(PyObject *module)
{
    int (*const parts[])(PyObject *) = {record_add_types,         buffers_add_functions,    callbacks_add_functions,
                                        counters_add_functions,   pc_samples_add_functions, sass_counts_add_functions,
                                        checkpoints_add_functions};
    int result = PyModule_AddFunctions(module, functions);
    for (size_t i = 0; result == 0 && i < sizeof parts / sizeof parts[0]; i++)
        result = parts[i](module);
    return result;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, module_fill}, {0, NULL}};
static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "gpufl._cupti",
    .m_doc = "The C part of gpufl.cupti: records, buffers, callbacks. Use gpufl.cupti instead.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__cupti(void)
{
    return PyModuleDef_Init(&definition);
}
