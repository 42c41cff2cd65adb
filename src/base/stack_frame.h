/* SPDX-License-Identifier: Apache-2.0 */
/* A frame of a call stack in the log: function@file:line or function@module+0xoffset. A stack consists of frames joined
 * by |, outermost first. */
#ifndef GPUFL_BASE_STACK_FRAME_H
#define GPUFL_BASE_STACK_FRAME_H

#include <stddef.h>
#include <stdint.h>

struct stack_frame {
    size_t function_size; /* a prefix of the text */
    const char *file;     /* or module+0xoffset; NULL: unknown */
    size_t file_size;
    uint32_t line; /* 0: unknown, and `file` is a module */
};

struct stack_frame stack_frame_split(const char *text, size_t size); /* points into text */

#endif
