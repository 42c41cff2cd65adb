/* SPDX-License-Identifier: Apache-2.0 */
/* Scope: a context manager and a benchmark loop around gpufl_scope_push and
 * _pop. The library's scopes are a stack per thread; Python's are not: two
 * tasks on one thread interleave, and an abandoned loop is closed when its
 * iterator is freed. Each thread therefore keeps a list of its open scopes. To
 * close a scope that is not the innermost, the ones inside it are closed and
 * reopened.
 *
 * Everything here runs under the GIL, except the end of a thread, which takes
 * the lock of the list of threads. */
#include "instances.h"
#include "native.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct scope {
    PyObject_HEAD PyObject *name, *tag; /* str; tag may be NULL */
    const char *name_text, *tag_text;   /* UTF-8 of the two, owned by them */
    uint32_t repeat, warmup;
    uint32_t open_count; /* entries in the lists of all threads */
};

struct scope_iterator {
    PyObject_HEAD struct scope *scope; /* owned */
    int64_t next;
    bool is_open;
};

/* The open scopes of one thread, outermost first. */
struct open_scopes {
    struct scope **scopes; /* borrowed: a scope leaves the lists before it is freed; NULL where that happened */
    size_t count, capacity;
    unsigned session;
    struct open_scopes *next;
};

static __thread struct open_scopes *own_scopes;
static struct open_scopes *all_scopes;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;
static unsigned session_number;
static PyTypeObject *iterator_type;

void scope_session_changed(void)
{
    session_number++;
}

static void on_thread_end(void *value)
{
    struct open_scopes *ended = value;
    pthread_mutex_lock(&all_lock);
    for (struct open_scopes **at = &all_scopes; *at; at = &(*at)->next) {
        if (*at == ended) {
            *at = ended->next;
            break;
        }
    }
    pthread_mutex_unlock(&all_lock);
    free(ended->scopes);
    free(ended);
}

/* A thread that does not exist in the child may have held the lock. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&all_lock, NULL);
}

static void thread_end_make(void)
{
    pthread_key_create(&thread_end, on_thread_end);
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* This thread's list, with room for one more scope and without scopes of an earlier session; NULL: no memory. */
static struct open_scopes *open_scopes_get(void)
{
    struct open_scopes *open = own_scopes;
    if (!open) {
        pthread_once(&thread_end_once, thread_end_make);
        open = calloc(1, sizeof *open);
        if (!open || pthread_setspecific(thread_end, open)) {
            free(open);
            return NULL;
        }
        pthread_mutex_lock(&all_lock);
        open->next = all_scopes;
        all_scopes = open;
        pthread_mutex_unlock(&all_lock);
        own_scopes = open;
    }
    if (open->session != session_number) {
        for (size_t i = 0; i < open->count; i++)
            if (open->scopes[i])
                open->scopes[i]->open_count--;
        open->count = 0;
        open->session = session_number;
    }
    if (open->count == open->capacity) {
        size_t capacity = open->capacity ? open->capacity * 2 : 16;
        struct scope **grown = realloc(open->scopes, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        open->scopes = grown;
        open->capacity = capacity;
    }
    return open;
}

static void scope_push(const struct scope *scope)
{
    if (!scope->tag_text && !scope->repeat && !scope->warmup) {
        gpufl_scope_begin(scope->name_text);
        return;
    }
    const gpufl_scope_meta meta = {sizeof meta, scope->repeat, scope->warmup, scope->tag_text};
    gpufl_scope_begin_meta(scope->name_text, &meta);
}

static void scope_open(struct scope *scope)
{
    if (!gpufl_is_recording())
        return;
    struct open_scopes *open = open_scopes_get();
    if (!open)
        return; /* better not recorded than unbalanced */
    open->scopes[open->count++] = scope;
    scope->open_count++;
    scope_push(scope);
}

/* Ends the scopes of this thread that were freed while open. */
static void open_scopes_trim(struct open_scopes *open)
{
    while (open->count && !open->scopes[open->count - 1]) {
        open->count--;
        gpufl_scope_end();
    }
}

enum { NOT_A_LOOP = -1 };

static void scope_pop(int64_t iterations)
{
    if (iterations == NOT_A_LOOP)
        gpufl_scope_end();
    else
        gpufl_scope_end_counted((uint32_t)iterations);
}

/* Ends the innermost opening of the scope on this thread; does nothing when there is none. iterations: how many of a
 * loop began. */
static void scope_close(struct scope *scope, int64_t iterations)
{
    struct open_scopes *open = own_scopes;
    if (!open || !open->count || open->session != session_number)
        return;
    size_t at = open->count - 1;
    while (open->scopes[at] != scope) {
        if (!at)
            return;
        at--;
    }
    scope->open_count--;
    size_t end = open->count;
    for (size_t i = at + 1; i < end; i++)
        gpufl_scope_end();
    scope_pop(iterations);
    open->count = at;
    for (size_t i = at + 1; i < end; i++) {
        struct scope *inner = open->scopes[i];
        if (!inner)
            continue; /* was freed while open; ended above */
        open->scopes[open->count++] = inner;
        scope_push(inner);
    }
    open_scopes_trim(open);
}

/* A scope is freed while open: close it on this thread, clear it from the lists of other threads. */
static void scope_abandon(struct scope *scope)
{
    while (scope->open_count) {
        uint32_t before = scope->open_count;
        scope_close(scope, NOT_A_LOOP);
        if (scope->open_count == before)
            break;
    }
    if (!scope->open_count)
        return;
    pthread_mutex_lock(&all_lock);
    for (struct open_scopes *open = all_scopes; open; open = open->next)
        for (size_t i = 0; i < open->count; i++)
            if (open->scopes[i] == scope)
                open->scopes[i] = NULL;
    pthread_mutex_unlock(&all_lock);
}

static int count_parse(PyObject *object, const char *what, uint32_t *out)
{
    if (!PyLong_Check(object) || PyBool_Check(object)) {
        PyErr_Format(PyExc_TypeError, "Scope: %s must be int, not %R", what, (PyObject *)Py_TYPE(object));
        return -1;
    }
    long long value = PyLong_AsLongLong(object);
    if ((value == -1 && PyErr_Occurred()) || value < 0 || value > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "Scope: %s must be 0 to %d, not %R", what, INT32_MAX, object);
        return -1;
    }
    *out = (uint32_t)value;
    return 0;
}

static int scope_set(struct scope *scope, PyObject *name, PyObject *tag)
{
    scope->name_text = text_of(name, "Scope: name");
    if (!scope->name_text)
        return -1;
    Py_INCREF(name);
    scope->name = name;
    if (!tag || tag == Py_None)
        return 0;
    scope->tag_text = text_of(tag, "Scope: tag");
    if (!scope->tag_text)
        return -1;
    Py_INCREF(tag);
    scope->tag = tag;
    if (!*scope->tag_text)
        scope->tag_text = NULL;
    return 0;
}

static PyObject *scope_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *name, *tag = NULL, *repeat = NULL, *warmup = NULL;
    Py_ssize_t count = kwargs ? 0 : PyTuple_Size(args);
    if (count == 1 || count == 2) {
        name = PyTuple_GetItem(args, 0);
        tag = count == 2 ? PyTuple_GetItem(args, 1) : NULL;
    } else {
        static char *names[] = {"name", "tag", "repeat", "warmup", NULL};
        if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$OO:Scope", names, &name, &tag, &repeat, &warmup))
            return keywords_raise("Scope", kwargs, names);
    }
    struct scope *scope = PyObject_New(struct scope, type);
    if (!scope)
        return NULL;
    memset((char *)scope + sizeof(PyObject), 0, sizeof *scope - sizeof(PyObject));
    if (scope_set(scope, name, tag) || (repeat && repeat != Py_None && count_parse(repeat, "repeat", &scope->repeat)) ||
        (warmup && warmup != Py_None && count_parse(warmup, "warmup", &scope->warmup))) {
        Py_DECREF(scope);
        return NULL;
    }
    return (PyObject *)scope;
}

static void scope_dealloc(PyObject *self)
{
    struct scope *scope = (struct scope *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (scope->open_count)
        scope_abandon(scope);
    Py_XDECREF(scope->name);
    Py_XDECREF(scope->tag);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *scope_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    scope_open((struct scope *)self);
    Py_INCREF(self);
    return self;
}

static PyObject *scope_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)args, (void)count;
    if (((struct scope *)self)->open_count)
        scope_close((struct scope *)self, NOT_A_LOOP);
    Py_RETURN_NONE;
}

static PyObject *scope_iter(PyObject *self)
{
    struct scope *scope = (struct scope *)self;
    if (!scope->repeat) {
        PyErr_Format(PyExc_TypeError, "Scope %R is not a benchmark loop: pass repeat=N, or use it in a with statement",
                     scope->name);
        return NULL;
    }
    struct scope_iterator *iterator = PyObject_New(struct scope_iterator, iterator_type);
    if (!iterator)
        return NULL;
    Py_INCREF(self);
    iterator->scope = scope;
    iterator->next = -(int64_t)scope->warmup;
    iterator->is_open = false;
    return (PyObject *)iterator;
}

static void iterator_end(struct scope_iterator *iterator)
{
    if (iterator->is_open)
        scope_close(iterator->scope, iterator->next);
    iterator->is_open = false;
}

/* Warm-up iterations run before the scope opens; all measured iterations run inside it. */
static PyObject *iterator_next(PyObject *self)
{
    struct scope_iterator *iterator = (struct scope_iterator *)self;
    if (iterator->next >= (int64_t)iterator->scope->repeat) {
        iterator_end(iterator);
        return NULL;
    }
    if (iterator->next == 0) {
        scope_open(iterator->scope);
        iterator->is_open = true;
    }
    return PyLong_FromLongLong(iterator->next++);
}

static PyObject *iterator_self(PyObject *self)
{
    Py_INCREF(self);
    return self;
}

static void iterator_dealloc(PyObject *self)
{
    struct scope_iterator *iterator = (struct scope_iterator *)self;
    PyTypeObject *type = Py_TYPE(self);
    iterator_end(iterator);
    Py_DECREF(iterator->scope);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *scope_repr(PyObject *self)
{
    struct scope *scope = (struct scope *)self;
    if (scope->tag)
        return PyUnicode_FromFormat("gpufl.Scope(%R, %R)", scope->name, scope->tag);
    return PyUnicode_FromFormat("gpufl.Scope(%R)", scope->name);
}

static PyObject *scope_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *function;
    static char *names[] = {"function", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Scope.__call__", names, &function))
        return NULL;
    PyObject *module = PyImport_ImportModule("gpufl._decorator");
    PyObject *result = module ? PyObject_CallMethod(module, "wrap", "OO", self, function) : NULL;
    Py_XDECREF(module);
    return result;
}

static PyObject *scope_get_name(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *name = ((struct scope *)self)->name;
    Py_INCREF(name);
    return name;
}

static PyObject *scope_get_tag(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *tag = ((struct scope *)self)->tag;
    if (!tag)
        return PyUnicode_FromString("");
    Py_INCREF(tag);
    return tag;
}

static PyObject *scope_get_count(PyObject *self, void *offset)
{
    uint32_t value;
    memcpy(&value, (const char *)self + (size_t)offset, sizeof value);
    return PyLong_FromUnsignedLong(value);
}

static PyMethodDef scope_methods[] = {
    {"__enter__", scope_enter, METH_NOARGS, "Opens the scope on this thread."},
    {"__exit__", (PyCFunction)(void (*)(void))scope_exit, METH_FASTCALL, "Closes the scope; exceptions propagate."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef scope_members[] = {
    {"name", scope_get_name, NULL, "The scope's name.", NULL},
    {"tag", scope_get_tag, NULL, "Free text shown beside the name; \"\" without one.", NULL},
    {"repeat", scope_get_count, NULL, "Measured iterations; 0: not a benchmark loop.",
     (void *)offsetof(struct scope, repeat)},
    {"warmup", scope_get_count, NULL, "Iterations before the scope opens.", (void *)offsetof(struct scope, warmup)},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char scope_doc[] =
    "Scope(name, tag=None, *, repeat=0, warmup=0)\n--\n\n"
    "A named region of this thread's work; kernels launched inside belong to it.\n\n"
    "    with gpufl.Scope(\"forward\", \"batch_42\"): ...\n\n"
    "    for i in gpufl.Scope(\"matmul\", repeat=10, warmup=3): ...  # i: -3 .. -1, then 0 .. 9\n\n"
    "    @gpufl.Scope(\"load\")\n"
    "    def load(): ...  # also async and generator functions\n\n"
    "Without a running session it costs next to nothing and records nothing.";

static PyType_Slot scope_slots[] = {
    {Py_tp_doc, (void *)scope_doc}, {Py_tp_new, scope_new},        {Py_tp_dealloc, scope_dealloc},
    {Py_tp_methods, scope_methods}, {Py_tp_getset, scope_members}, {Py_tp_iter, scope_iter},
    {Py_tp_call, scope_call},       {Py_tp_repr, scope_repr},      {0, NULL},
};
static PyType_Spec scope_spec = {"gpufl.Scope", sizeof(struct scope), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                                 scope_slots};

static PyType_Slot iterator_slots[] = {{Py_tp_new, instance_refused},
                                       {Py_tp_dealloc, iterator_dealloc},
                                       {Py_tp_iter, iterator_self},
                                       {Py_tp_iternext, iterator_next},
                                       {0, NULL}};
static PyType_Spec iterator_spec = {"gpufl._native.ScopeIterator", sizeof(struct scope_iterator), 0, Py_TPFLAGS_DEFAULT,
                                    iterator_slots};

int scope_add_types(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&scope_spec);
    if (!type || module_add(module, "Scope", type) < 0) {
        Py_XDECREF(type);
        return -1;
    }
    Py_DECREF(type);
    iterator_type = (PyTypeObject *)PyType_FromSpec(&iterator_spec);
    return iterator_type ? 0 : -1;
}
