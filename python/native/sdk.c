/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of gpufl.h. Arguments were checked by gpufl/_options.py; this
 * file copies them into the structs. The GIL is released wherever the library
 * may write, wait or load. */
#include "native.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

const char *text_of(PyObject *object, const char *what)
{
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s must be str, not %R", what, (PyObject *)Py_TYPE(object));
        return NULL;
    }
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text && strlen(text) != (size_t)size) {
        PyErr_Format(PyExc_ValueError, "%s must not contain a NUL character: %R", what, object);
        return NULL;
    }
    return text;
}

PyObject *keywords_raise(const char *function, PyObject *kwargs, char *const *names)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
        bool is_known = false;
        for (char *const *name = names; *name && !is_known; name++)
            is_known = PyUnicode_CompareWithASCIIString(key, *name) == 0;
        if (is_known)
            continue;
        PyErr_Clear();
        PyObject *known = PyList_New(0), *module = PyImport_ImportModule("gpufl._options");
        for (char *const *name = names; known && *name; name++) {
            PyObject *text = PyUnicode_FromString(*name);
            if (!text || PyList_Append(known, text) < 0)
                Py_CLEAR(known);
            Py_XDECREF(text);
        }
        if (known && module)
            Py_XDECREF(PyObject_CallMethod(module, "raise_unknown", "sOO", function, key, known));
        Py_XDECREF(known);
        Py_XDECREF(module);
        break;
    }
    return NULL;
}

PyObject *status_raise(gpufl_status status, const char *message)
{
    PyObject *type = PyExc_RuntimeError;
    switch (status) {
    case GPUFL_E_INVALID:
    case GPUFL_E_DAMAGED:
    case GPUFL_E_LIMIT:
        type = PyExc_ValueError;
        break;
    case GPUFL_E_NO_MEMORY:
        type = PyExc_MemoryError;
        break;
    case GPUFL_E_PERMISSION:
        type = PyExc_PermissionError;
        break;
    case GPUFL_E_NOT_FOUND:
        type = PyExc_FileNotFoundError;
        break;
    case GPUFL_E_IO:
        type = PyExc_OSError;
        break;
    default:
        break;
    }
    PyErr_SetString(type, *message ? message : gpufl_status_string(status));
    return NULL;
}

enum field_kind { FIELD_TEXT, FIELD_SWITCH, FIELD_NUMBER, FIELD_LARGE };
struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
};
#define TEXT(struct_type, member)                          \
    {                                                      \
#member, FIELD_TEXT, offsetof(struct_type, member) \
    }
#define SWITCH(member)                                         \
    {                                                          \
#member, FIELD_SWITCH, offsetof(gpufl_options, member) \
    }
#define NUMBER(struct_type, member)                          \
    {                                                        \
#member, FIELD_NUMBER, offsetof(struct_type, member) \
    }
#define LARGE(member)                                         \
    {                                                         \
#member, FIELD_LARGE, offsetof(gpufl_options, member) \
    }

static const struct field init_fields[] = {
    TEXT(gpufl_options, app_name),
    TEXT(gpufl_options, log_path),
    TEXT(gpufl_options, backend_url),
    TEXT(gpufl_options, api_key),
    TEXT(gpufl_options, api_path),
    TEXT(gpufl_options, config_file),
    SWITCH(enabled),
    SWITCH(remote_upload),
    SWITCH(enable_stack_trace),
    SWITCH(enable_source_collection),
    SWITCH(enable_external_correlation),
    SWITCH(enable_synchronization),
    SWITCH(enable_memory_tracking),
    SWITCH(enable_cuda_graphs_tracking),
    SWITCH(continuous_system_sampling),
    SWITCH(flush_logs_always),
    SWITCH(enable_debug_output),
    NUMBER(gpufl_options, profiling_engine),
    NUMBER(gpufl_options, backend),
    NUMBER(gpufl_options, system_sample_rate_ms),
    NUMBER(gpufl_options, kernel_sample_rate_ms),
    LARGE(max_log_bytes),
    LARGE(min_free_bytes),
    {NULL, FIELD_TEXT, 0},
};
static const struct field upload_fields[] = {
    TEXT(gpufl_upload_options, log_path),
    TEXT(gpufl_upload_options, backend_url),
    TEXT(gpufl_upload_options, api_key),
    TEXT(gpufl_upload_options, api_path),
    TEXT(gpufl_upload_options, config_file),
    NUMBER(gpufl_upload_options, timeout_ms),
    {NULL, FIELD_TEXT, 0},
};
_Static_assert(sizeof(gpufl_engine) == sizeof(int32_t) && sizeof(gpufl_backend) == sizeof(int32_t) &&
                   sizeof(gpufl_switch) == sizeof(int32_t),
               "enums are written as int32_t");

static int field_set(const struct field *field, char *target, PyObject *value)
{
    if (field->kind == FIELD_TEXT) {
        const char *text = text_of(value, field->name);
        memcpy(target + field->offset, &text, sizeof text);
        return text ? 0 : -1;
    }
    if (field->kind == FIELD_LARGE) {
        int64_t large = PyLong_AsLongLong(value);
        if (large == -1 && PyErr_Occurred())
            return -1;
        memcpy(target + field->offset, &large, sizeof large);
        return 0;
    }
    int32_t number;
    if (field->kind == FIELD_SWITCH) {
        int is_on = PyObject_IsTrue(value);
        if (is_on < 0)
            return -1;
        number = is_on ? GPUFL_ON : GPUFL_OFF;
    } else {
        long given = PyLong_AsLong(value);
        if (given == -1 && PyErr_Occurred())
            return -1;
        if (given < INT32_MIN || given > INT32_MAX) {
            PyErr_Format(PyExc_ValueError, "%s is out of range: %R", field->name, value);
            return -1;
        }
        number = (int32_t)given;
    }
    memcpy(target + field->offset, &number, sizeof number);
    return 0;
}

/* Fills the struct from a dict of its members; texts are borrowed from the dict. */
static int fields_fill(const struct field *fields, void *target, PyObject *values)
{
    if (!PyDict_Check(values)) {
        PyErr_SetString(PyExc_TypeError, "expected a dict of options");
        return -1;
    }
    for (const struct field *field = fields; field->name; field++) {
        PyObject *value = PyDict_GetItemString(values, field->name); /* borrowed */
        if (value && value != Py_None && field_set(field, target, value))
            return -1;
    }
    return 0;
}

/* Warnings of the library, from any thread, until Python takes them. */
static struct {
    pthread_mutex_t lock;
    size_t size;
    char text[4096]; /* one after the other, each with its NUL */
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note(void *user, gpufl_log_level level, const char *message)
{
    (void)user;
    size_t size = strlen(message) + 1;
    pthread_mutex_lock(&notes.lock);
    if (level == GPUFL_LOG_WARNING && size <= sizeof notes.text - notes.size) {
        memcpy(notes.text + notes.size, message, size);
        notes.size += size;
    }
    pthread_mutex_unlock(&notes.lock);
}

static PyObject *sdk_take_warnings(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    char text[sizeof notes.text];
    pthread_mutex_lock(&notes.lock);
    size_t total = notes.size;
    memcpy(text, notes.text, total);
    notes.size = 0;
    pthread_mutex_unlock(&notes.lock);
    PyObject *list = PyList_New(0);
    for (size_t at = 0; list && at < total; at += strlen(text + at) + 1) {
        PyObject *one = PyUnicode_DecodeUTF8(text + at, (Py_ssize_t)strlen(text + at), "replace");
        if (!one || PyList_Append(list, one))
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

/* Returns (status, message); Python code decides what they mean for the program. */
static PyObject *sdk_init(PyObject *module, PyObject *values)
{
    (void)module;
    gpufl_options options = GPUFL_OPTIONS_INIT;
    if (fields_fill(init_fields, &options, values))
        return NULL;
    options.log_fn = note;
    int was_recording = gpufl_is_recording();
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS status = gpufl_init(&options);
    Py_END_ALLOW_THREADS if (!was_recording && gpufl_is_recording()) scope_session_changed();
    return Py_BuildValue("is", (int)status, status == GPUFL_OK ? "" : gpufl_last_error());
}

static PyObject *sdk_shutdown(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    int was_recording = gpufl_is_recording();
    Py_BEGIN_ALLOW_THREADS gpufl_shutdown();
    Py_END_ALLOW_THREADS if (was_recording && !gpufl_is_recording()) scope_session_changed();
    Py_RETURN_NONE;
}

static PyObject *sdk_yield_to(PyObject *module, PyObject *profiler)
{
    (void)module;
    const char *text = text_of(profiler, "profiler");
    gpufl_status status;
    if (!text)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = gpufl_yield(text);
    Py_END_ALLOW_THREADS return PyLong_FromLong(status);
}

static PyObject *sdk_resume(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS gpufl_resume();
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *system_mark(PyObject *name, void (*mark)(const char *))
{
    const char *text = text_of(name, "name");
    if (!text)
        return NULL;
    Py_BEGIN_ALLOW_THREADS mark(text);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *sdk_system_start(PyObject *module, PyObject *name)
{
    (void)module;
    return system_mark(name, gpufl_system_start);
}

static PyObject *sdk_system_stop(PyObject *module, PyObject *name)
{
    (void)module;
    return system_mark(name, gpufl_system_stop);
}

static PyObject *sdk_generate_report(PyObject *module, PyObject *path)
{
    (void)module;
    const char *text = text_of(path, "output_path");
    if (!text)
        return NULL;
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS status = gpufl_generate_report(text);
    Py_END_ALLOW_THREADS if (status != GPUFL_OK) return status_raise(status, gpufl_last_error());
    Py_RETURN_NONE;
}

static PyObject *sdk_upload_logs(PyObject *module, PyObject *values)
{
    (void)module;
    gpufl_upload_options options = GPUFL_UPLOAD_OPTIONS_INIT;
    gpufl_upload_result result = {.struct_size = sizeof result};
    if (fields_fill(upload_fields, &options, values))
        return NULL;
    gpufl_status status;
    Py_BEGIN_ALLOW_THREADS status = gpufl_upload_logs(&options, &result);
    Py_END_ALLOW_THREADS const char *message =
        *result.message || status == GPUFL_OK ? result.message : gpufl_last_error();
    return Py_BuildValue(
        "{s:i,s:O,s:i,s:K,s:K,s:K,s:K,s:K,s:K,s:s}", "status", (int)status, "success",
        result.success ? Py_True : Py_False, "http_status", (int)result.http_status, "sessions",
        (unsigned long long)result.sessions, "files_uploaded", (unsigned long long)result.files_uploaded,
        "files_already_sent", (unsigned long long)result.files_already_sent, "files_skipped",
        (unsigned long long)result.files_skipped, "events_uploaded", (unsigned long long)result.events_uploaded,
        "bytes_sent", (unsigned long long)result.bytes_sent, "message", message);
}

static PyObject *sdk_active_engine(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(gpufl_active_engine());
}

static PyObject *sdk_session_dir(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_DecodeFSDefault(gpufl_session_dir());
}

static PyObject *sdk_is_recording(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(gpufl_is_recording());
}

static PyObject *sdk_version(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(gpufl_version());
}

static PyObject *sdk_scope_current(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyLong_FromUnsignedLongLong(gpufl_scope_current());
}

static PyObject *sdk_scope_adopt(PyObject *self, PyObject *token)
{
    (void)self;
    unsigned long long value = PyLong_AsUnsignedLongLong(token);
    if (value == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    gpufl_scope_adopt(value);
    Py_RETURN_NONE;
}

static PyObject *sdk_scope_release(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    gpufl_scope_release();
    Py_RETURN_NONE;
}

static PyObject *sdk_tasks_follow(PyObject *self, PyObject *address)
{
    (void)self;
    void *pointer = PyLong_AsVoidPtr(address);
    if (!pointer && PyErr_Occurred())
        return NULL;
    int (*current)(void);
    memcpy(&current, &pointer, sizeof current);
    gpufl_tasks_follow(current);
    Py_RETURN_NONE;
}

static PyObject *sdk_task_bind(PyObject *self, PyObject *args)
{
    (void)self;
    int task;
    unsigned long long token;
    if (!PyArg_ParseTuple(args, "iK", &task, &token))
        return NULL;
    gpufl_task_bind(task, token);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"init", sdk_init, METH_O, "init(options: dict) -> (status, message)"},
    {"take_warnings", sdk_take_warnings, METH_NOARGS, "The library's warnings since the last call."},
    {"shutdown", sdk_shutdown, METH_NOARGS, "Ends the session."},
    {"yield_to", sdk_yield_to, METH_O, "Lets another profiler use CUPTI until resume(); 0: granted."},
    {"resume", sdk_resume, METH_NOARGS, "The profiler of the last yield_to() has ended."},
    {"system_start", sdk_system_start, METH_O, "Samples system metrics from here on."},
    {"system_stop", sdk_system_stop, METH_O, "Ends what system_start began."},
    {"generate_report", sdk_generate_report, METH_O, "Writes the last session's text report."},
    {"upload_logs", sdk_upload_logs, METH_O, "upload_logs(options: dict) -> dict"},
    {"active_engine", sdk_active_engine, METH_NOARGS, "The engine that runs; 0 without a session."},
    {"session_dir", sdk_session_dir, METH_NOARGS, "Directory of the running or the last session."},
    {"is_recording", sdk_is_recording, METH_NOARGS, "Whether a session records."},
    {"scope_current", sdk_scope_current, METH_NOARGS, "A token of this thread's innermost scope; 0: none."},
    {"scope_adopt", sdk_scope_adopt, METH_O, "This thread works for the token's scope until scope_release()."},
    {"scope_release", sdk_scope_release, METH_NOARGS, "Ends what the last scope_adopt() began on this thread."},
    {"tasks_follow", sdk_tasks_follow, METH_O, "Address of the function that returns a thread's task; 0: no more."},
    {"task_bind", sdk_task_bind, METH_VARARGS, "task_bind(task, token): the task works for the token's scope."},
    {"version", sdk_version, METH_NOARGS, "Version of libgpufl."},
    {NULL, NULL, 0, NULL},
};

int sdk_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
