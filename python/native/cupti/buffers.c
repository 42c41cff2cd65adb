/* SPDX-License-Identifier: Apache-2.0 */
/* Activity buffers. CUPTI requests and returns them on its own threads and on
 * the program's, inside CUDA calls: there they are only allocated and queued.
 * Python threads take them from the queue, so that no thread ever waits for the
 * GIL while it holds a CUPTI lock. */
#include "../instances.h"
#include "cupti_native.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* If more than QUEUE_BYTES_MAX is queued, Python reads too slowly: further records are dropped and counted. */
enum { BUFFER_BYTES_MIN = 1024, BUFFER_BYTES_FIRST = 8 << 20, QUEUE_BYTES_MAX = 1 << 30 };

struct chunk { /* a buffer that CUPTI has returned */
    struct chunk *next;
    uint8_t *bytes;
    size_t size, valid;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of this file; never held while taking the GIL */
static pthread_cond_t has_news = PTHREAD_COND_INITIALIZER;
static struct chunk *first, **last = &first;
static size_t queued_bytes, buffer_bytes = BUFFER_BYTES_FIRST, buffer_records_max;
static uint64_t dropped_records;
static bool is_closed;

struct buffer {
    PyObject_HEAD uint8_t *bytes;
    size_t valid;
    Py_ssize_t *offsets, *sizes; /* of each record; one allocation */
    Py_ssize_t count;
};
static PyTypeObject *buffer_type;

static void request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    pthread_mutex_lock(&lock);
    size_t bytes = buffer_bytes, records = buffer_records_max;
    pthread_mutex_unlock(&lock);
    *buffer = malloc(bytes); /* aligned to 16; NULL makes CUPTI drop and count */
    *size = *buffer ? bytes : 0;
    *max_records = records;
}

static uint64_t records_count(uint8_t *bytes, size_t valid)
{
    struct cupti *cupti = NULL;
    uint64_t count = 0;
    void *record = NULL;
    if (cupti_load(&cupti, NULL) != GPUFL_OK)
        return 0;
    while (cupti->call.get_next_record(bytes, valid, &record) == CUPTI_ABI_SUCCESS)
        count++;
    return count;
}

static void complete(void *context, uint32_t stream_id, uint8_t *bytes, size_t size, size_t valid)
{
    (void)context, (void)stream_id;
    struct chunk *chunk = valid && bytes ? calloc(1, sizeof *chunk) : NULL;
    pthread_mutex_lock(&lock);
    bool is_taken = chunk && !is_closed && queued_bytes + size <= QUEUE_BYTES_MAX;
    if (is_taken) {
        *chunk = (struct chunk){NULL, bytes, size, valid};
        *last = chunk;
        last = &chunk->next;
        queued_bytes += size;
        pthread_cond_signal(&has_news);
    }
    pthread_mutex_unlock(&lock);
    if (is_taken)
        return;
    uint64_t lost = bytes && valid ? records_count(bytes, valid) : 0;
    pthread_mutex_lock(&lock);
    dropped_records += lost;
    pthread_mutex_unlock(&lock);
    free(chunk);
    free(bytes);
}

/* Call with the lock held. */
static struct chunk *queue_take(void)
{
    struct chunk *chunk = first;
    if (chunk) {
        first = chunk->next;
        if (!first)
            last = &first;
        queued_bytes -= chunk->size;
    }
    return chunk;
}

/* Finds the records. A record's size is the distance to the next; bytes after the last record may be damaged. */
static int buffer_index(struct buffer *buffer)
{
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return -1;
    Py_ssize_t room = (Py_ssize_t)(buffer->valid / 8) + 1;
    buffer->offsets = malloc((size_t)room * 2 * sizeof *buffer->offsets);
    if (!buffer->offsets) {
        PyErr_NoMemory();
        return -1;
    }
    buffer->sizes = buffer->offsets + room;
    void *record = NULL;
    int result = CUPTI_ABI_SUCCESS;
    while (buffer->count < room &&
           (result = cupti->call.get_next_record(buffer->bytes, buffer->valid, &record)) == CUPTI_ABI_SUCCESS) {
        Py_ssize_t offset = (uint8_t *)record - buffer->bytes;
        Py_ssize_t previous = buffer->count ? buffer->offsets[buffer->count - 1] : -4;
        if (offset < previous + 4 || (size_t)offset + 4 > buffer->valid)
            break; /* CUPTI's own walk left the buffer */
        if (buffer->count)
            buffer->sizes[buffer->count - 1] = offset - previous;
        buffer->offsets[buffer->count++] = offset;
    }
    if (buffer->count) {
        Py_ssize_t at = buffer->offsets[buffer->count - 1], left = (Py_ssize_t)buffer->valid - at;
        uint32_t kind;
        memcpy(&kind, buffer->bytes + at, sizeof kind);
        Py_ssize_t known = kind <= CUPTI_ABI_KIND_LAST_KNOWN ? cupti->record_bytes[kind] : 0;
        buffer->sizes[buffer->count - 1] =
            known && known < left && result != CUPTI_ABI_MAX_LIMIT_REACHED ? known : left;
    }
    return 0;
}

static PyObject *buffer_make(struct chunk *chunk)
{
    struct buffer *buffer = (struct buffer *)PyType_GenericAlloc(buffer_type, 0);
    if (!buffer) {
        free(chunk->bytes);
    } else {
        buffer->bytes = chunk->bytes;
        buffer->valid = chunk->valid;
        if (buffer_index(buffer))
            Py_CLEAR(buffer);
    }
    free(chunk);
    return (PyObject *)buffer;
}

static void buffer_dealloc(PyObject *self)
{
    struct buffer *buffer = (struct buffer *)self;
    PyTypeObject *type = Py_TYPE(self);
    free(buffer->bytes);
    free(buffer->offsets);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static int buffer_view(PyObject *self, Py_buffer *view, int flags)
{
    struct buffer *buffer = (struct buffer *)self;
    return PyBuffer_FillInfo(view, self, buffer->bytes, (Py_ssize_t)buffer->valid, 1, flags);
}

static Py_ssize_t buffer_length(PyObject *self)
{
    return ((struct buffer *)self)->count;
}

static uint32_t kind_at(const struct buffer *buffer, Py_ssize_t index)
{
    uint32_t kind;
    memcpy(&kind, buffer->bytes + buffer->offsets[index], sizeof kind);
    return kind;
}

static PyObject *buffer_item(PyObject *self, Py_ssize_t index)
{
    const struct buffer *buffer = (const struct buffer *)self;
    if (index < 0 || index >= buffer->count) {
        PyErr_SetString(PyExc_IndexError, "no such record in the buffer");
        return NULL;
    }
    return record_make(RECORD_ACTIVITY, kind_at(buffer, index), buffer->bytes + buffer->offsets[index],
                       (size_t)buffer->sizes[index]);
}

static PyObject *buffer_records(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_ssize_t count = ((struct buffer *)self)->count;
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *record = buffer_item(self, i);
        if (!record || PyList_SetItem(list, i, record) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* [(kind, offset, bytes of one record, count)]: runs of consecutive records of the same kind and size. */
static PyObject *buffer_runs(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct buffer *buffer = (const struct buffer *)self;
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0, next; list && i < buffer->count; i = next) {
        uint32_t kind = kind_at(buffer, i);
        for (next = i + 1;
             next < buffer->count && kind_at(buffer, next) == kind && buffer->sizes[next] == buffer->sizes[i]; next++)
            continue;
        PyObject *run = Py_BuildValue("Innn", kind, buffer->offsets[i], buffer->sizes[i], next - i);
        if (!run || PyList_Append(list, run) < 0)
            Py_CLEAR(list);
        Py_XDECREF(run);
    }
    return list;
}

/* The CUptiResult of cuptiActivityRegisterCallbacks. */
static PyObject *buffers_register(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct cupti *cupti = cupti_wanted();
    if (!cupti)
        return NULL;
    int result;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&lock);
    is_closed = false;
    pthread_mutex_unlock(&lock);
    result = cupti->call.register_callbacks(request, complete);
    Py_END_ALLOW_THREADS;
    return PyLong_FromLong(result);
}

static PyObject *buffers_resize(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t bytes, records;
    if (!PyArg_ParseTuple(args, "nn:buffer_size", &bytes, &records))
        return NULL;
    if (bytes < BUFFER_BYTES_MIN || bytes > QUEUE_BYTES_MAX || records < 0) {
        PyErr_Format(PyExc_ValueError,
                     "an activity buffer has %d to %d bytes and 0 (no limit) or more records, not %zd "
                     "and %zd",
                     BUFFER_BYTES_MIN, QUEUE_BYTES_MAX, bytes, records);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    buffer_bytes = (size_t)bytes;
    buffer_records_max = (size_t)records;
    pthread_mutex_unlock(&lock);
    Py_RETURN_NONE;
}

/* Waits for a buffer; False: no more buffers will come. */
static PyObject *buffers_wait(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    bool has_one;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&lock);
    while (!first && !is_closed)
        pthread_cond_wait(&has_news, &lock);
    has_one = !is_closed;
    pthread_mutex_unlock(&lock);
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(has_one);
}

/* The next buffer, or None. */
static PyObject *buffers_take(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    pthread_mutex_lock(&lock);
    struct chunk *chunk = queue_take();
    pthread_mutex_unlock(&lock);
    return chunk ? buffer_make(chunk) : Py_NewRef(Py_None);
}

/* Buffers that arrive after this are freed. */
static PyObject *buffers_close(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    pthread_mutex_lock(&lock);
    is_closed = true;
    pthread_cond_broadcast(&has_news);
    pthread_mutex_unlock(&lock);
    Py_RETURN_NONE;
}

static PyObject *buffers_take_dropped(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    pthread_mutex_lock(&lock);
    uint64_t dropped = dropped_records;
    dropped_records = 0;
    pthread_mutex_unlock(&lock);
    return PyLong_FromUnsignedLongLong(dropped);
}

static PyMethodDef buffer_methods[] = {
    {"records", buffer_records, METH_NOARGS, "All records, as separate objects."},
    {"runs", buffer_runs, METH_NOARGS, "[(kind, offset, bytes, count)]: runs of records of one kind and size."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, "The bytes of a full activity buffer, and where its records are."},
    {Py_tp_new, instance_refused},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_methods, buffer_methods},
    {Py_sq_length, buffer_length},
    {Py_sq_item, buffer_item},
    {Py_bf_getbuffer, buffer_view},
    {0, NULL},
};
static PyType_Spec buffer_spec = {"gpufl._cupti.Buffer", sizeof(struct buffer), 0, Py_TPFLAGS_DEFAULT, buffer_slots};
static PyMethodDef functions[] = {
    {"buffer_register", buffers_register, METH_NOARGS,
     "cuptiActivityRegisterCallbacks with the functions of this file."},
    {"buffer_size", buffers_resize, METH_VARARGS, "Sets the size and record limit of new buffers."},
    {"buffer_wait", buffers_wait, METH_NOARGS, "Waits for a full buffer; False: no more buffers will come."},
    {"buffer_take", buffers_take, METH_NOARGS, "The next full buffer, or None."},
    {"buffer_close", buffers_close, METH_NOARGS, "Ends the wait; buffers that come later are dropped."},
    {"buffer_take_dropped", buffers_take_dropped, METH_NOARGS, "Records that were dropped here since the last call."},
    {NULL, NULL, 0, NULL},
};

/* A forked child has neither CUPTI nor the threads that may hold the lock. Queued buffers belong to the parent. */
static void child_begin(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&has_news, NULL);
    first = NULL;
    last = &first;
    queued_bytes = 0;
    is_closed = true;
}

int buffers_add_functions(PyObject *module)
{
    static bool is_registered;
    if (!is_registered && pthread_atfork(NULL, NULL, child_begin) == 0)
        is_registered = true;
    buffer_type = (PyTypeObject *)PyType_FromSpec(&buffer_spec);
    if (!buffer_type)
        return -1;
    return PyModule_AddType(module, buffer_type) || PyModule_AddFunctions(module, functions) ? -1 : 0;
}
