/* SPDX-License-Identifier: Apache-2.0 */
/* Records: a copy of the bytes of a CUPTI struct, and descriptors that read its
 * fields. A field is None if the record is too short or CUPTI too old for it. */
#include "cupti_native.h"

#include <stdbool.h>
#include <string.h>

struct record {
    PyObject_VAR_HEAD PyObject *texts; /* tuple of str or None by text field; NULL: none were copied */
    bool is_live;                      /* pointers of texts can be followed */
    uint8_t bytes[];
};

struct field {
    PyObject_HEAD Py_ssize_t offset, width;
    unsigned version; /* the first CUPTI that writes it */
    int code;         /* struct's letters; P address, s text, x bytes, R record of class `part` */
    int text;         /* which of the texts */
    PyObject *part;
};

struct record_class {
    PyObject *type;
    size_t bytes;
    int text_count;
    Py_ssize_t text_offsets[RECORD_TEXTS];
};
static struct record_class classes[2][RECORD_KINDS];
static PyTypeObject *record_type, *field_type;

static PyObject *record_new(PyObject *type, const uint8_t *bytes, size_t size)
{
    struct record *record = (struct record *)PyType_GenericAlloc((PyTypeObject *)type, (Py_ssize_t)size);
    if (record)
        memcpy(record->bytes, bytes, size);
    return (PyObject *)record;
}

static PyObject *record_construct(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Py_buffer view;
    if ((kwargs && PyDict_Size(kwargs)) || !PyArg_ParseTuple(args, "y*:Record", &view)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a record takes no keyword arguments");
        return NULL;
    }
    PyObject *record = record_new((PyObject *)type, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return record;
}

static void record_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((struct record *)self)->texts);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *record_tobytes(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBytes_FromStringAndSize((const char *)((struct record *)self)->bytes, Py_SIZE(self));
}

static PyObject *text_read(const uint8_t *at)
{
    const char *text;
    memcpy(&text, at, sizeof text);
    return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : Py_NewRef(Py_None);
}

static PyObject *texts_copy(const struct record_class *class, const uint8_t *bytes, size_t size)
{
    PyObject *texts = PyTuple_New(class->text_count);
    for (int i = 0; texts && i < class->text_count; i++) {
        bool is_inside = (size_t) class->text_offsets[i] + sizeof(char *) <= size;
        PyObject *text = is_inside ? text_read(bytes + class->text_offsets[i]) : Py_NewRef(Py_None);
        if (!text || PyTuple_SetItem(texts, i, text) < 0)
            Py_CLEAR(texts);
    }
    return texts;
}

PyObject *record_make(enum record_family family, uint32_t index, const uint8_t *bytes, size_t size)
{
    const struct record_class *class = index < RECORD_KINDS ? &classes[family][index] : NULL;
    bool is_known = class && class->type;
    /* Copy no more than the class has: anything may follow the last record of a buffer. */
    if (is_known && size > class->bytes)
        size = class->bytes;
    struct record *record = (struct record *)record_new(is_known ? class->type : (PyObject *)record_type, bytes, size);
    if (record && family == RECORD_CALLBACK)
        record->is_live = true;
    else if (record && is_known && class->text_count && !(record->texts = texts_copy(class, bytes, size)))
        Py_CLEAR(record);
    return (PyObject *)record;
}

size_t record_bytes(enum record_family family, uint32_t index)
{
    return index < RECORD_KINDS && classes[family][index].type ? classes[family][index].bytes : 0;
}

void record_retire(PyObject *record)
{
    ((struct record *)record)->is_live = false;
}

static PyObject *field_text(const struct field *field, const struct record *record)
{
    if (record->texts) {
        PyObject *text = PyTuple_GetItem(record->texts, field->text);
        return text ? Py_NewRef(text) : NULL;
    }
    if (record->is_live)
        return text_read(record->bytes + field->offset);
    PyErr_SetString(PyExc_RuntimeError, "texts of callback data can be read only while the callback runs");
    return NULL;
}

static PyObject *number_read(int code, const uint8_t *at)
{
#define NUMBER(letter, type, make)        \
    case letter: {                        \
        type value;                       \
        memcpy(&value, at, sizeof value); \
        return make(value);               \
    }
    switch (code) {
        NUMBER('B', uint8_t, PyLong_FromUnsignedLong)
        NUMBER('b', int8_t, PyLong_FromLong)
        NUMBER('H', uint16_t, PyLong_FromUnsignedLong)
        NUMBER('h', int16_t, PyLong_FromLong)
        NUMBER('I', uint32_t, PyLong_FromUnsignedLong)
        NUMBER('i', int32_t, PyLong_FromLong)
        NUMBER('Q', uint64_t, PyLong_FromUnsignedLongLong)
        NUMBER('q', int64_t, PyLong_FromLongLong)
        NUMBER('P', void *, PyLong_FromVoidPtr)
        NUMBER('f', float, PyFloat_FromDouble)
        NUMBER('d', double, PyFloat_FromDouble)
    }
#undef NUMBER
    PyErr_Format(PyExc_SystemError, "a field of code %d", code);
    return NULL;
}

static unsigned version_here(void)
{
    struct cupti *cupti = NULL;
    return cupti_load(&cupti, NULL) == GPUFL_OK ? cupti_version(cupti) : 0;
}

static PyObject *field_get(PyObject *self, PyObject *object, PyObject *owner)
{
    (void)owner;
    const struct field *field = (const struct field *)self;
    if (!object || object == Py_None)
        return Py_NewRef(self);
    if (!PyObject_TypeCheck(object, record_type)) {
        PyErr_SetString(PyExc_TypeError, "not a record of CUPTI");
        return NULL;
    }
    const struct record *record = (const struct record *)object;
    if (field->offset + field->width > Py_SIZE(object) || (field->version && version_here() < field->version))
        Py_RETURN_NONE;
    const uint8_t *at = record->bytes + field->offset;
    switch (field->code) {
    case 's':
        return field_text(field, record);
    case 'x':
        return PyBytes_FromStringAndSize((const char *)at, field->width);
    case 'R':
        return record_new(field->part, at, (size_t)field->width);
    default:
        return number_read(field->code, at);
    }
}

static int field_set(PyObject *self, PyObject *object, PyObject *value)
{
    (void)self, (void)object, (void)value;
    PyErr_SetString(PyExc_AttributeError, "records of CUPTI cannot be changed");
    return -1;
}

static int width_of(int code)
{
    switch (code) {
    case 'B':
    case 'b':
        return 1;
    case 'H':
    case 'h':
        return 2;
    case 'I':
    case 'i':
    case 'f':
        return 4;
    case 'Q':
    case 'q':
    case 'd':
    case 'P':
    case 's':
        return 8;
    default:
        return 0;
    }
}

static PyObject *field_construct(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"offset", "code", "version", "text", "width", "part", NULL};
    Py_ssize_t offset, width = 0;
    int code, text = 0;
    unsigned version = 0;
    PyObject *part = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nC|IinO:Field", names, &offset, &code, &version, &text, &width,
                                     &part))
        return NULL;
    if (code != 'x' && code != 'R')
        width = width_of(code);
    bool is_part = part && PyType_Check(part) && PyType_IsSubtype((PyTypeObject *)part, record_type);
    if (offset < 0 || width < 1 || text < 0 || text >= RECORD_TEXTS || (code == 'R') != is_part) {
        PyErr_SetString(PyExc_ValueError, "no such field");
        return NULL;
    }
    struct field *field = (struct field *)PyType_GenericAlloc(type, 0);
    if (!field)
        return NULL;
    field->offset = offset;
    field->width = width;
    field->code = code;
    field->version = version;
    field->text = text;
    field->part = Py_XNewRef(part);
    return (PyObject *)field;
}

static void field_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((struct field *)self)->part);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* record_class(family, index, class, bytes, offsets of texts) */
static PyObject *class_register(PyObject *module, PyObject *args)
{
    (void)module;
    int family;
    unsigned index;
    Py_ssize_t bytes;
    PyObject *type, *offsets;
    if (!PyArg_ParseTuple(args, "iIO!nO!:record_class", &family, &index, &PyType_Type, &type, &bytes, &PyTuple_Type,
                          &offsets))
        return NULL;
    Py_ssize_t text_count = PyTuple_Size(offsets);
    if (family < RECORD_ACTIVITY || family > RECORD_CALLBACK || index >= RECORD_KINDS || bytes < 1 ||
        text_count > RECORD_TEXTS || !PyType_IsSubtype((PyTypeObject *)type, record_type)) {
        PyErr_SetString(PyExc_ValueError, "no such class of records");
        return NULL;
    }
    struct record_class made = {.bytes = (size_t)bytes, .text_count = (int)text_count};
    for (Py_ssize_t i = 0; i < text_count; i++) {
        made.text_offsets[i] = PyLong_AsSsize_t(PyTuple_GetItem(offsets, i));
        if (made.text_offsets[i] < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "an offset below zero");
            return NULL;
        }
    }
    Py_XDECREF(classes[family][index].type);
    made.type = Py_NewRef(type);
    classes[family][index] = made;
    Py_RETURN_NONE;
}

static PyMethodDef record_methods[] = {
    {"tobytes", record_tobytes, METH_NOARGS, "The record as CUPTI wrote it."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot record_slots[] = {
    {Py_tp_doc, "A record of CUPTI: a copy of its bytes. Subclasses name the fields."},
    {Py_tp_new, record_construct},
    {Py_tp_dealloc, record_dealloc},
    {Py_tp_methods, record_methods},
    {0, NULL},
};
static PyType_Spec record_spec = {"gpufl._cupti.Record", sizeof(struct record), 1,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, record_slots};
static PyType_Slot field_slots[] = {
    {Py_tp_doc, "Reads one field of a Record."},
    {Py_tp_new, field_construct},
    {Py_tp_dealloc, field_dealloc},
    {Py_tp_descr_get, field_get},
    {Py_tp_descr_set, field_set},
    {0, NULL},
};
static PyType_Spec field_spec = {"gpufl._cupti.Field", sizeof(struct field), 0, Py_TPFLAGS_DEFAULT, field_slots};
static PyMethodDef functions[] = {
    {"record_class", class_register, METH_VARARGS, "Sets the class of records of a kind, or of data of a domain."},
    {NULL, NULL, 0, NULL},
};

int record_add_types(PyObject *module)
{
    record_type = (PyTypeObject *)PyType_FromSpec(&record_spec);
    field_type = (PyTypeObject *)PyType_FromSpec(&field_spec);
    if (!record_type || !field_type)
        return -1;
    return PyModule_AddType(module, record_type) || PyModule_AddType(module, field_type) ||
                   PyModule_AddFunctions(module, functions)
               ? -1
               : 0;
}
