/* SPDX-License-Identifier: Apache-2.0 */
/* The extension module gpufl._cupti (stable ABI): the part of gpufl.cupti that
 * cannot be Python. CUPTI's threads reach the interpreter only through this
 * module: full buffers wait in a queue for a Python thread, and callbacks pass a
 * gate that is closed before the interpreter ends. Everything runs under the GIL
 * unless a comment says otherwise. */
#ifndef GPUFL_PYTHON_CUPTI_NATIVE_H
#define GPUFL_PYTHON_CUPTI_NATIVE_H

#include <Python.h>

#include "driver/cupti_table.h"

PyMODINIT_FUNC PyInit__cupti(void);

/* module.c: the loaded CUPTI; NULL with RuntimeError. */
struct cupti *cupti_wanted(void);

/* Each 0, or -1 with an exception set. */
int record_add_types(PyObject *module);
int buffers_add_functions(PyObject *module);
int callbacks_add_functions(PyObject *module);
int counters_add_functions(PyObject *module);
int pc_samples_add_functions(PyObject *module);
int sass_counts_add_functions(PyObject *module);
int checkpoints_add_functions(PyObject *module);

/* record.c. Classes of records by activity kind, and of callback data by domain. */
enum { RECORD_KINDS = 128, RECORD_DOMAINS = 16, RECORD_TEXTS = 8 };
enum record_family { RECORD_ACTIVITY, RECORD_CALLBACK };
/* A copy of a CUPTI struct. The texts of an activity record are copied too; those of callback data can be read until
 * record_retire. NULL with an exception. */
PyObject *record_make(enum record_family family, uint32_t index, const uint8_t *bytes, size_t size);
/* Size of callback data according to its class; 0: unknown. */
size_t record_bytes(enum record_family family, uint32_t index);
void record_retire(PyObject *record);

#endif
