/* SPDX-License-Identifier: Apache-2.0 */
/* The Python functions that the calling thread is in, read without the GIL: frameworks release it while they launch,
 * and a launch must not wait for it. A thread's own frames do not change while it runs C code, so they are read in
 * place, with the layouts of the CPython releases known here. A layout is trusted only after every object on the way
 * was checked to have the expected type; otherwise, or for another release, there are no Python frames.
 *
 * A function's names are copied when it is first seen, into a table of fixed size: nothing is allocated, and no
 * reference to a Python object is kept. */
#ifndef GPUFL_CAPTURE_PYTHON_FRAMES_H
#define GPUFL_CAPTURE_PYTHON_FRAMES_H

#include "base/bytes.h"

/* Marks a Python frame in a stack's list of addresses; code addresses never have the upper bits set. */
#define PYTHON_FRAME_MARK (1ull << 63)
#define PYTHON_FRAME_ENTRY (1ull << 62) /* the outermost frame of one run of the interpreter's loop */

/* Looks for an interpreter in this process. */
void python_frames_setup(void);
/* Innermost first; 0: not in Python, or an unknown interpreter. Any thread, for its own frames. */
uint32_t python_frames_walk(uint64_t *frames, uint32_t frames_max);
/* Appends function@file:line; false: the function did not fit into the table ("??"). */
bool python_frame_describe(uint64_t frame, struct bytes *out);

/* How an address of the C stack relates to the interpreter. */
enum python_place { PYTHON_PLACE_OTHER, PYTHON_PLACE_INTERPRETER, PYTHON_PLACE_LOOP };
enum python_place python_place_of(uint64_t address);

#endif
