/* SPDX-License-Identifier: Apache-2.0 */
/* What opened a scope: the program, a framework for one of its operators, or a library for one of its ranges. */
#ifndef GPUFL_ANALYSIS_SCOPE_KIND_H
#define GPUFL_ANALYSIS_SCOPE_KIND_H

#include <stddef.h>
#include <stdint.h>

enum scope_kind { SCOPE_OF_USER, SCOPE_OF_OPERATOR, SCOPE_OF_LIBRARY };
enum direction { DIRECTION_UNKNOWN, DIRECTION_FORWARD, DIRECTION_BACKWARD, DIRECTION_OPTIMIZER, DIRECTION_COUNT };

/* source: enum scope_source of the schema. name: the last part of its path. domain: of NVTX, NULL the default one. */
enum scope_kind scope_kind_of(uint8_t source, const char *name, size_t name_size, const char *domain);
/* What an operator says by its name; UNKNOWN: nothing. */
enum direction operator_direction(const char *name, size_t name_size);
const char *direction_name(enum direction direction); /* NULL: unknown */

#endif
