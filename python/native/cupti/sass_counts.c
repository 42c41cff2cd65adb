/* SPDX-License-Identifier: Apache-2.0 */
/* driver/sass_metrics.h for Python. */
#include "handle.h"

#include "driver/sass_metrics.h"

enum { SASS_FLUSH_BYTES_MAX = 1 << 30 };

/* [(id, name, description)] */
static PyObject *sass_list(PyObject *module, PyObject *args)
{
    (void)module;
    const char *chip;
    if (!PyArg_ParseTuple(args, "s:sass_list", &chip))
        return NULL;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    struct sass_metrics metrics;
    struct sass_metric_list list = {0};
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = sass_metrics_bind(&metrics, cupti, &problem);
    if (status == GPUFL_OK)
        status = sass_metrics_list(&metrics, chip, &list, &problem);
    Py_END_ALLOW_THREADS;
    if (status != GPUFL_OK)
        return problem_raise(status, &problem);
    PyObject *result = PyList_New(0);
    for (size_t i = 0; result && i < list.count; i++) {
        PyObject *tuple = Py_BuildValue("Kss", (unsigned long long)list.metrics[i].id, list.metrics[i].name,
                                        list.metrics[i].description);
        if (!tuple || PyList_Append(result, tuple) < 0)
            Py_CLEAR(result);
        Py_XDECREF(tuple);
    }
    sass_metric_list_free(&list);
    return result;
}

/* Ids of the metrics to count. */
static PyObject *sass_configure(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned device;
    const char *chip, *text;
    if (!PyArg_ParseTuple(args, "Iss:sass_configure", &device, &chip, &text))
        return NULL;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    struct sass_metrics metrics;
    struct sass_metric_list list = {0};
    struct sass_choice choice = {0};
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = sass_metrics_bind(&metrics, cupti, &problem);
    if (status == GPUFL_OK)
        status = sass_metrics_list(&metrics, chip, &list, &problem);
    if (status == GPUFL_OK)
        status = sass_choice_make(&choice, &list, chip, text, &problem);
    if (status == GPUFL_OK)
        status = sass_metrics_configure(&metrics, device, &list, &choice, &problem);
    Py_END_ALLOW_THREADS;
    PyObject *ids = status == GPUFL_OK ? PyList_New(0) : problem_raise(status, &problem);
    for (size_t i = 0; ids && i < choice.count; i++) {
        PyObject *id = PyLong_FromUnsignedLongLong(list.metrics[choice.chosen[i]].id);
        if (!id || PyList_Append(ids, id) < 0)
            Py_CLEAR(ids);
        Py_XDECREF(id);
    }
    sass_metric_list_free(&list);
    return ids;
}

static PyObject *sass_enable(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t context;
    int is_lazy;
    if (!PyArg_ParseTuple(args, "np:sass_enable", &context, &is_lazy))
        return NULL;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    struct sass_metrics metrics;
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = sass_metrics_bind(&metrics, cupti, &problem);
    if (status == GPUFL_OK)
        status = sass_metrics_enable(&metrics, (void *)context, is_lazy != 0, &problem);
    Py_END_ALLOW_THREADS;
    return none_or_raise(status, &problem);
}

/* The number of values that were not flushed. */
static PyObject *sass_disable(PyObject *module, PyObject *address)
{
    (void)module;
    void *context;
    struct cupti *cupti = context_parse(address, &context);
    if (!cupti)
        return NULL;
    struct sass_metrics metrics;
    struct problem problem = {""};
    uint64_t dropped = 0;
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = sass_metrics_bind(&metrics, cupti, &problem);
    if (status == GPUFL_OK)
        status = sass_metrics_disable(&metrics, context, &dropped, &problem);
    Py_END_ALLOW_THREADS;
    return status == GPUFL_OK ? PyLong_FromUnsignedLongLong(dropped) : problem_raise(status, &problem);
}

static void count_append(void *user, const struct sass_count *count)
{
    PyObject **list = user;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *tuple =
        *list ? Py_BuildValue("sIIIKK", count->symbol, count->cubin_crc, count->function_index, count->pc_offset,
                              (unsigned long long)count->metric_id, (unsigned long long)count->value)
              : NULL;
    if (*list && (!tuple || PyList_Append(*list, tuple) < 0))
        Py_CLEAR(*list);
    Py_XDECREF(tuple);
    PyGILState_Release(state);
}

/* [(symbol, cubin_crc, function_index, pc_offset, metric id, value)] */
static PyObject *sass_flush(PyObject *module, PyObject *address)
{
    (void)module;
    void *context;
    struct cupti *cupti = context_parse(address, &context);
    if (!cupti)
        return NULL;
    PyObject *list = PyList_New(0);
    struct sass_metrics metrics;
    struct sass_flush flush = {.bytes_max = SASS_FLUSH_BYTES_MAX, .on_count = count_append, .user = &list};
    struct problem problem = {""};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = sass_metrics_bind(&metrics, cupti, &problem);
    if (status == GPUFL_OK)
        status = sass_metrics_flush(&metrics, context, &flush, &problem);
    Py_END_ALLOW_THREADS;
    if (!list || status == GPUFL_OK)
        return list;
    Py_DECREF(list);
    return problem_raise(status, &problem);
}

static PyMethodDef functions[] = {
    {"sass_list", sass_list, METH_VARARGS, "The SASS metrics of a chip."},
    {"sass_configure", sass_configure, METH_VARARGS, "Sets the metrics that a device counts."},
    {"sass_enable", sass_enable, METH_VARARGS, "Counts in a context."},
    {"sass_disable", sass_disable, METH_O, "Stops counting; the number of lost values."},
    {"sass_flush", sass_flush, METH_O, "Reads the counts."},
    {NULL, NULL, 0, NULL},
};

int sass_counts_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
