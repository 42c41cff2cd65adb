/* SPDX-License-Identifier: Apache-2.0 */
/* What the look-alike HIP runtime reports to the look-alike rocprofiler-sdk, and
 * what the parts of that library say to each other. As with the real ones, HIP
 * registers a table with librocprofiler-register, which passes it on. */
#ifndef FAKES_ROCPROFILER_FAKE_H
#define FAKES_ROCPROFILER_FAKE_H

#include "driver/rocprofiler_abi.h"
#include "fake_gpu.h"

/* The name of a function that a macro names. */
#define NAME_OF(function) NAME_OF_EXPANDED(function)
#define NAME_OF_EXPANDED(function) #function

enum { FAKE_AMD_CPU = 100, FAKE_AMD_GPU = 200 /* + its number */ };

struct fake_hip_launch {
    uint64_t correlation, kernel_id, queue;
    uint32_t gpu, grid[3], block[3], shared_bytes; /* grid in work-items */
    uint64_t start, end;
};

/* X(return type, name, parameters): of the fake rocprofiler, called by the fake HIP */
#define FAKE_ROCPROFILER_HOOKS(X)                                                                                      \
    X(uint64_t, fake_rocprofiler_now, (void))                                                                          \
    X(uint64_t, fake_rocprofiler_call, (const char *name))                                                             \
    X(void, fake_rocprofiler_call_end, (uint64_t correlation, const char *name, uint64_t start))                       \
    X(uint64_t, fake_rocprofiler_load, (const char *kernel_name, const void *code, size_t code_bytes))                 \
    X(void, fake_rocprofiler_launch, (const struct fake_hip_launch *launch))                                           \
    X(void, fake_rocprofiler_copy,                                                                                     \
      (uint64_t correlation, int operation, uint64_t src, uint64_t dst, uint64_t bytes, uint64_t start, uint64_t end)) \
    X(void, fake_rocprofiler_memory,                                                                                   \
      (uint64_t correlation, int operation, uint64_t agent, uint64_t address, uint64_t bytes))                         \
    X(void, fake_rocprofiler_marker, (int operation, const char *text, uint64_t *range_id))

struct fake_hip_table { /* what HIP registers: rocprofiler-sdk puts its functions into it */
#define FAKE_MEMBER(type, name, parameters) type(*name) parameters;
    FAKE_ROCPROFILER_HOOKS(FAKE_MEMBER)
#undef FAKE_MEMBER
};
#define FAKE_DECLARE(type, name, parameters) type name parameters;
FAKE_ROCPROFILER_HOOKS(FAKE_DECLARE)
#undef FAKE_DECLARE
FAKE_API int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables,
                                       uint64_t count);
/* import: a function of the library that registers, or NULL. */
FAKE_API int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void), uint32_t version,
                                                    void **tables, uint64_t count, uint64_t *id);

/* rocprofiler's own functions, declared by the product's list of them */
#define FAKE_DECLARE(member, symbol, parameters) FAKE_API int symbol parameters;
ROCPROFILER_ABI_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE
FAKE_API const char *rocprofiler_get_status_name(int status);

/* ---- inside the fake rocprofiler ---- */

uint32_t fake_release(void);             /* 500, 600 or 10000 */
uint32_t fake_gfx_version(uint32_t gpu); /* 90402 is gfx942; of FAKE_AMD_ARCHITECTURES */
enum { FAKE_RECORD_BYTES = 256 };
/* Puts a record into the buffer of that kind's service, if its context is active. */
void fake_buffer_put(int kind, uint32_t category, uint32_t record_kind, const void *record, size_t size);
/* The same for work on the GPU that ends then (rocprofiler's clock). */
void fake_buffer_put_at(int kind, uint32_t category, uint32_t record_kind, const void *record, size_t size,
                        uint64_t end);
/* In two steps: the number of the service, 0: none is active; and the record. */
uint64_t fake_service_of(int kind);
void fake_buffer_put_to(uint64_t service, uint32_t category, uint32_t record_kind, const void *record, size_t size);
void fake_callback(int kind, int32_t operation, uint32_t phase, uint64_t correlation, void *payload);
/* The counters of a dispatch: asks the tool which, and puts their values. */
void fake_count(const struct rocprofiler_abi_dispatch_info *info, uint64_t correlation, uint64_t start, uint64_t end);
bool fake_counting_config(const struct rocprofiler_abi_counting_data *data, struct rocprofiler_abi_id *config);
enum { FAKE_KIND_COUNTING = 99 };

#endif
