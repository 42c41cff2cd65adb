/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of Python that the calling thread is in, without the interpreter's lock: frameworks let go of it while they
 * launch, and a launch must not wait for it. A thread's own frames stand still while it is in C, so they are read in
 * place, by the layouts of the CPython releases that are known here. A layout is trusted after every object on the way
 * proved to be of the type it must have; where it does not, or for another release, there are no Python frames.
 *
 * A function's names are copied when it is first seen, into a table of fixed size: nothing is allocated, no reference
 * to a Python object is kept. */
#ifndef GPUFL_CAPTURE_PYTHON_FRAMES_H
#define GPUFL_CAPTURE_PYTHON_FRAMES_H

#include "base/bytes.h"

/* A frame in a stack's list of addresses; no address of code has the upper bits set. */
#define PYTHON_FRAME_MARK (1ull << 63)
#define PYTHON_FRAME_ENTRY (1ull << 62) /* the outermost one of its run of the interpreter's loop */

/* Looks for an interpreter in this process. */
void python_frames_setup(void);
/* Innermost first; 0: not in Python, or not known how. Any thread; for the thread itself. */
uint32_t python_frames_walk(uint64_t *frames, uint32_t frames_max);
/* Appends function@file:line; false: the function did not fit into the table ("??"). */
bool python_frame_describe(uint64_t frame, struct bytes *out);

/* What an address of the C stack is to the interpreter. */
enum python_place { PYTHON_PLACE_OTHER, PYTHON_PLACE_INTERPRETER, PYTHON_PLACE_LOOP };
enum python_place python_place_of(uint64_t address);

#endif
