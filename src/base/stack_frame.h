/* SPDX-License-Identifier: Apache-2.0 */
/* A frame of a call stack as the log has it: function@file:line or function@module+0xoffset. Stacks are frames joined
 * by |, outermost first. */
#ifndef GPUFL_BASE_STACK_FRAME_H
#define GPUFL_BASE_STACK_FRAME_H

#include <stddef.h>
#include <stdint.h>

struct stack_frame {
    size_t function_size; /* of the text's beginning */
    const char *file;     /* or module+0xoffset; NULL: not known */
    size_t file_size;
    uint32_t line; /* 0: not known, and `file` is no file */
};

struct stack_frame stack_frame_split(const char *text, size_t size); /* points into text */

#endif
