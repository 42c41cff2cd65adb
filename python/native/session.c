/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded sessions: loading, tables, reports. The GIL is released while a
 * session is read, columns are built and reports are written. */
#include "instances.h"
#include "analysis/report_page.h"
#include "arrow.h"
#include "native.h"
#include "tables.h"

#include <stdio.h>
#include <stdlib.h>

struct session_object {
    PyObject_HEAD struct session_share *share;
};
struct table_object {
    PyObject_HEAD struct column_table *table;
};
/* An array of a table, for NumPy. */
struct array_object {
    PyObject_HEAD struct column_table *table;
    const void *data;
    Py_ssize_t size;
};

static PyTypeObject *session_type, *table_type, *array_type;

static PyObject *array_make(struct column_table *table, const void *data, size_t width)
{
    struct array_object *array = PyObject_New(struct array_object, array_type);
    if (!array)
        return NULL;
    array->table = table_hold(table);
    array->data = data;
    array->size = (Py_ssize_t)(table->row_count * width);
    return (PyObject *)array;
}

static int array_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    static char nothing[1];
    const struct array_object *array = (const struct array_object *)self;
    void *data = array->size ? (void *)(uintptr_t)array->data : nothing;
    return PyBuffer_FillInfo(view, self, data, array->size, 1, flags);
}

static void array_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    table_release(((struct array_object *)self)->table);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot array_slots[] = {
    {Py_tp_new, instance_refused}, {Py_tp_dealloc, array_dealloc}, {Py_bf_getbuffer, array_get_buffer}, {0, NULL}};
static PyType_Spec array_spec = {"gpufl._native.Array", sizeof(struct array_object), 0, Py_TPFLAGS_DEFAULT,
                                 array_slots};

static void table_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    table_release(((struct table_object *)self)->table);
    PyObject_Free(self);
    Py_DECREF(type);
}

static Py_ssize_t table_length(PyObject *self)
{
    return (Py_ssize_t)((struct table_object *)self)->table->row_count;
}

static PyObject *table_get_names(PyObject *self, void *unused)
{
    (void)unused;
    const struct column_table *table = ((struct table_object *)self)->table;
    PyObject *names = PyList_New(table->column_count);
    for (unsigned i = 0; names && i < table->column_count; i++) {
        PyObject *name = PyUnicode_FromString(table->columns[i].name);
        if (!name || PyList_SetItem(names, i, name) < 0)
            Py_CLEAR(names);
    }
    return names;
}

static PyObject *words_list(const struct column *column)
{
    PyObject *words = PyList_New((Py_ssize_t)column->word_count);
    for (size_t i = 0; words && i < column->word_count; i++) {
        PyObject *word = PyUnicode_DecodeUTF8(column->words[i], (Py_ssize_t)strlen(column->words[i]), "replace");
        if (!word || PyList_SetItem(words, (Py_ssize_t)i, word) < 0)
            Py_CLEAR(words);
    }
    return words;
}

/* (NumPy type, values, marks of unknown values or None, categories or None) */
static PyObject *table_get_column(PyObject *self, PyObject *name)
{
    static const char *const type_names[COLUMN_TYPE_COUNT] = {
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "bool"};
    struct column_table *table = ((struct table_object *)self)->table;
    const char *text = text_of(name, "column name");
    const struct column *column = text ? table_column(table, text) : NULL;
    if (!column) {
        if (text)
            PyErr_SetObject(PyExc_KeyError, name);
        return NULL;
    }
    PyObject *values = array_make(table, column->data, column_widths[column->type]);
    PyObject *nulls = column->nulls ? array_make(table, column->nulls, 1) : Py_BuildValue("");
    PyObject *words = column->is_categorical ? words_list(column) : Py_BuildValue("");
    if (!values || !nulls || !words) {
        Py_XDECREF(values);
        Py_XDECREF(nulls);
        Py_XDECREF(words);
        return NULL;
    }
    return Py_BuildValue("sNNN", type_names[column->type], values, nulls, words);
}

static void stream_capsule_free(PyObject *capsule)
{
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream && stream->release)
        stream->release(stream);
    free(stream);
}

static PyObject *table_arrow_stream(PyObject *self, PyObject *args, PyObject *kwargs)
{
    /* A consumer may request another schema; producers may ignore that. */
    PyObject *requested = NULL;
    static char *names[] = {"requested_schema", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:__arrow_c_stream__", names, &requested))
        return NULL;
    struct ArrowArrayStream *stream = calloc(1, sizeof *stream);
    if (!stream || !arrow_stream_make(stream, ((struct table_object *)self)->table)) {
        free(stream);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(stream, "arrow_array_stream", stream_capsule_free);
    if (!capsule) {
        stream->release(stream);
        free(stream);
    }
    return capsule;
}

static void schema_capsule_free(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema && schema->release)
        schema->release(schema);
    free(schema);
}

static PyObject *table_arrow_schema(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct ArrowSchema *schema = calloc(1, sizeof *schema);
    if (!schema || !arrow_schema_make(schema, ((struct table_object *)self)->table)) {
        free(schema);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(schema, "arrow_schema", schema_capsule_free);
    if (!capsule) {
        schema->release(schema);
        free(schema);
    }
    return capsule;
}

static PyMethodDef table_methods[] = {
    {"column", table_get_column, METH_O, "column(name) -> (type, values, unknown or None, categories or None)"},
    {"__arrow_c_stream__", (PyCFunction)(void (*)(void))table_arrow_stream, METH_VARARGS | METH_KEYWORDS,
     "The table as an Arrow stream of one batch, without copying values."},
    {"__arrow_c_schema__", table_arrow_schema, METH_NOARGS, "The table's Arrow schema."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef table_members[] = {
    {"column_names", table_get_names, NULL, "Names of the columns, in order.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot table_slots[] = {{Py_tp_new, instance_refused},
                                    {Py_tp_dealloc, table_dealloc},
                                    {Py_tp_methods, table_methods},
                                    {Py_tp_getset, table_members},
                                    {Py_sq_length, table_length},
                                    {Py_mp_length, table_length},
                                    {0, NULL}};
static PyType_Spec table_spec = {"gpufl._native.Table", sizeof(struct table_object), 0, Py_TPFLAGS_DEFAULT,
                                 table_slots};

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *path; /* bytes */
    static char *names[] = {"path", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&:Session", names, PyUnicode_FSConverter, &path))
        return NULL;
    struct problem problem = {""};
    struct session_model *model = NULL;
    const char *text = PyBytes_AsString(path);
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS status = session_load(&model, text, &problem);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    if (status != GPUFL_OK)
        return status_raise(status, problem.text);
    struct session_share *share = malloc(sizeof *share);
    struct session_object *session = share ? PyObject_New(struct session_object, type) : NULL;
    if (!session) {
        session_free(model);
        free(share);
        return PyErr_NoMemory();
    }
    atomic_init(&share->references, 1);
    share->model = model;
    session->share = share;
    return (PyObject *)session;
}

static void session_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    session_share_release(((struct session_object *)self)->share);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *session_table(PyObject *self, PyObject *name)
{
    struct session_share *share = ((struct session_object *)self)->share;
    const char *text = text_of(name, "table name");
    if (!text)
        return NULL;
    struct column_table *table = NULL;
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS status = table_of_session(&table, share, text);
    Py_END_ALLOW_THREADS if (status == GPUFL_E_NOT_FOUND)
    {
        PyErr_SetObject(PyExc_KeyError, name);
        return NULL;
    }
    if (status != GPUFL_OK)
        return PyErr_NoMemory();
    struct table_object *object = PyObject_New(struct table_object, table_type);
    if (!object) {
        table_release(table);
        return NULL;
    }
    object->table = table;
    return (PyObject *)object;
}

typedef gpufl_status (*report_fn)(const struct session_model *model, const struct report_options *options,
                                  struct bytes *out);

static PyObject *report_make(PyObject *self, const struct report_options *options, report_fn write)
{
    const struct session_model *model = ((struct session_object *)self)->share->model;
    struct bytes text = {0};
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS status = write(model, options, &text);
    Py_END_ALLOW_THREADS PyObject *result =
        status == GPUFL_OK ? PyUnicode_DecodeUTF8(text.size ? text.data : "", (Py_ssize_t)text.size, "replace")
                           : status_raise(status, "");
    bytes_free(&text);
    return result;
}

static PyObject *session_report_text(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"top", "columns", "is_wide", "sections", NULL};
    struct report_options options = {.top = 10, .columns = 100};
    int is_wide = 0;
    unsigned sections = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|iipI:report_text", names, &options.top, &options.columns, &is_wide,
                                     &sections))
        return keywords_raise("report_text", kwargs, names);
    options.is_wide = is_wide;
    options.sections = sections;
    options.may_run_tools = !gpufl_is_recording();
    return report_make(self, &options, report_text);
}

static PyObject *session_report_html(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"top", NULL};
    struct report_options options = {.top = 10, .may_run_tools = !gpufl_is_recording()};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i:report_html", names, &options.top))
        return keywords_raise("report_html", kwargs, names);
    return report_make(self, &options, report_html);
}

static PyObject *session_report_json(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct report_options options = {.top = 10, .columns = 100};
    return report_make(self, &options, report_json);
}

static PyObject *session_get_bytes(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(session_bytes(((struct session_object *)self)->share->model));
}

/* Adds a text; NULL is None. */
static int info_text(PyObject *info, const char *key, const char *text)
{
    PyObject *value =
        text && *text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : Py_BuildValue("");
    int result = value ? PyDict_SetItemString(info, key, value) : -1;
    Py_XDECREF(value);
    return result;
}

static int info_number(PyObject *info, const char *key, int64_t number, int64_t unknown)
{
    PyObject *value = number == unknown ? Py_BuildValue("") : PyLong_FromLongLong(number);
    int result = value ? PyDict_SetItemString(info, key, value) : -1;
    Py_XDECREF(value);
    return result;
}

/* The session part of report_json, without the analysis. */
static PyObject *session_get_info(PyObject *self, void *unused)
{
    (void)unused;
    const struct session_model *model = ((struct session_object *)self)->share->model;
    const struct job_info *job = &model->job;
    const struct {
        const char *key, *text;
    } texts[] = {
        {"id", job->session_id},
        {"app", job->app},
        {"host", job->hostname},
        {"command", job->command},
        {"engine", job->engine},
        {"requested_engine", job->requested_engine},
        {"requested_engine", job->requested_engine},
        {"driver_version", job->driver_version},
        {"cuda_version", job->cuda_version},
        {"cupti_version", job->cupti_version},
        {"gpufl_version", job->gpufl_version},
    };
    PyObject *info = PyDict_New();
    int result = info ? 0 : -1;
    for (size_t i = 0; !result && i < sizeof texts / sizeof *texts; i++)
        result = info_text(info, texts[i].key, texts[i].text);
    if (!result)
        result = info_number(info, "pid", job->pid, -1);
    if (!result)
        result = info_number(info, "first_ns", model->first_ns, TIME_UNKNOWN);
    if (!result)
        result = info_number(info, "last_ns", model->last_ns, TIME_UNKNOWN);
    if (result)
        Py_CLEAR(info);
    return info;
}

static PyObject *session_get_complete(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(session_is_complete(((struct session_object *)self)->share->model));
}

static PyMethodDef session_methods[] = {
    {"table", session_table, METH_O, "table(name) -> Table"},
    {"report_text", (PyCFunction)(void (*)(void))session_report_text, METH_VARARGS | METH_KEYWORDS,
     "report_text(top=10, columns=100, is_wide=False, sections=0) -> str"},
    {"report_html", (PyCFunction)(void (*)(void))session_report_html, METH_VARARGS | METH_KEYWORDS,
     "report_html(top=10) -> str"},
    {"report_json", session_report_json, METH_NOARGS, "report_json() -> str"},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef session_members[] = {
    {"info", session_get_info, NULL, "The run; unknown values are None.", NULL},
    {"is_complete", session_get_complete, NULL, "Whether no data is known to be missing.", NULL},
    {"nbytes", session_get_bytes, NULL, "Approximate memory use of the session.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot session_slots[] = {{Py_tp_new, session_new},
                                      {Py_tp_dealloc, session_dealloc},
                                      {Py_tp_methods, session_methods},
                                      {Py_tp_getset, session_members},
                                      {0, NULL}};
static PyType_Spec session_spec = {"gpufl._native.Session", sizeof(struct session_object), 0, Py_TPFLAGS_DEFAULT,
                                   session_slots};

struct app_name {
    char text[256];
};

/* job_start, if present, is the first record. */
static bool take_app(void *user, const struct log_line *line)
{
    struct app_name *name = user;
    if (line->type == RECORD_JOB_START && line->object)
        snprintf(name->text, sizeof name->text, "%s", json_get_text(line->object, "app", ""));
    return false;
}

/* The application in a session's first record; "" if it has none. */
static PyObject *session_app(PyObject *module, PyObject *argument)
{
    (void)module;
    PyObject *path;
    if (!PyUnicode_FSConverter(argument, &path))
        return NULL;
    struct app_name name = {""};
    struct log_summary summary;
    struct problem problem = {""};
    const char *text = PyBytes_AsString(path);
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS status = log_read(text, take_app, NULL, &name, &summary, &problem);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    if (status != GPUFL_OK)
        return status_raise(status, problem.text);
    return PyUnicode_DecodeUTF8(name.text, (Py_ssize_t)strlen(name.text), "replace");
}

/* Session directories below a directory, newest first. */
static PyObject *sessions_below(PyObject *module, PyObject *argument)
{
    (void)module;
    PyObject *path;
    if (!PyUnicode_FSConverter(argument, &path))
        return NULL;
    struct session_list list = {0};
    struct problem problem = {""};
    gpufl_status status = session_list_find(&list, PyBytes_AsString(path), &problem);
    Py_DECREF(path);
    if (status != GPUFL_OK)
        return status_raise(status, problem.text);
    PyObject *paths = PyList_New((Py_ssize_t)list.count);
    for (size_t i = 0; paths && i < list.count; i++) {
        PyObject *one = PyUnicode_DecodeFSDefault(list.paths[i]);
        if (!one || PyList_SetItem(paths, (Py_ssize_t)i, one) < 0)
            Py_CLEAR(paths);
    }
    session_list_free(&list);
    return paths;
}

static PyObject *table_names(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *names = PyList_New(0);
    for (const struct table_info *info = table_infos; names && info->name; info++) {
        PyObject *name = PyUnicode_FromString(info->name);
        if (!name || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyMethodDef functions[] = {
    {"session_app", session_app, METH_O, "session_app(path) -> str"},
    {"sessions_below", sessions_below, METH_O, "sessions_below(path) -> list of paths, newest first"},
    {"table_names", table_names, METH_NOARGS, "table_names() -> list"},
    {NULL, NULL, 0, NULL},
};

int session_add_types(PyObject *module)
{
    session_type = (PyTypeObject *)PyType_FromSpec(&session_spec);
    table_type = (PyTypeObject *)PyType_FromSpec(&table_spec);
    array_type = (PyTypeObject *)PyType_FromSpec(&array_spec);
    if (!session_type || !table_type || !array_type)
        return -1;
    if (module_add(module, "Session", (PyObject *)session_type) < 0 ||
        module_add(module, "Table", (PyObject *)table_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
