/* SPDX-License-Identifier: Apache-2.0 */
/* A small interface with the habits of gpufl.h. One macro at a time changes it as a later version might. */
#ifndef ABI_FIXTURE_H
#define ABI_FIXTURE_H

#include <stdint.h>

typedef enum gpufl_engine {
    GPUFL_ENGINE_MONITOR = 1,
#ifndef ENUMERATOR_RENUMBERED
    GPUFL_ENGINE_TRACE = 2,
#else
    GPUFL_ENGINE_TRACE = 3,
#endif
#ifdef ENUMERATOR_ADDED
    GPUFL_ENGINE_DEEP = 6,
#endif
} gpufl_engine;

typedef struct gpufl_options {
    uint32_t struct_size;
#ifdef MEMBER_INSERTED
    uint32_t inserted;
#endif
#ifdef MEMBER_RETYPED
    int64_t profiling_engine;
#else
    gpufl_engine profiling_engine;
#endif
    const char *app_name;
#ifdef MEMBER_APPENDED
    const char *appended;
#endif
} gpufl_options;

typedef struct gpufl_sample {
    uint64_t time_ns;
#ifdef UNSIZED_APPENDED
    uint64_t value;
#endif
} gpufl_sample;

int gpufl_init(const gpufl_options *options);
#ifndef FUNCTION_REMOVED
void gpufl_shutdown(void);
#endif
#ifdef PARAMETER_CHANGED
void gpufl_read(gpufl_sample *sample, int index);
#else
void gpufl_read(gpufl_sample *sample);
#endif
#ifdef FUNCTION_ADDED
void gpufl_pause(void);
#endif

#endif
