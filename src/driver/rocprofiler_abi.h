/* SPDX-License-Identifier: Apache-2.0 */
/* The part of rocprofiler-sdk's binary interface that we use: our own declarations, so that no ROCm is needed to
 * build. For 64-bit machines and releases 0.5 (ROCm 6.3) to 1.x (ROCm 7). Every record begins with the size that its
 * library wrote. Two things differ by release and are declared twice: records of calls have one more correlation id
 * from 1.0 on, and the client's id begins with its size. Numbers of kinds and operations changed between releases:
 * except for those below they are looked up by name. */
#ifndef GPUFL_DRIVER_ROCPROFILER_ABI_H
#define GPUFL_DRIVER_ROCPROFILER_ABI_H

#include <stddef.h>
#include <stdint.h>

/* major * 10000 + minor * 100 + patch, as rocprofiler_configure gets it */
enum { ROCPROFILER_ABI_VERSION_0_5 = 500, ROCPROFILER_ABI_VERSION_1_0 = 10000, ROCPROFILER_ABI_VERSION_2_0 = 20000 };

enum { ROCPROFILER_ABI_SUCCESS = 0 }; /* the other numbers changed in 1.0: they are identified by name */

/* rocprofiler_buffer_category_t, rocprofiler_buffer_policy_t, rocprofiler_agent_type_t */
enum {
    ROCPROFILER_ABI_CATEGORY_TRACING = 1,
    ROCPROFILER_ABI_CATEGORY_COUNTERS = 3,
    ROCPROFILER_ABI_POLICY_LOSSLESS = 2,
    ROCPROFILER_ABI_AGENT_GPU = 2,
    ROCPROFILER_ABI_AGENT_VERSION = 1,
    ROCPROFILER_ABI_COUNTER_INFO_VERSION = 1
};

/* kinds whose numbers are the same in all releases */
enum {
    ROCPROFILER_ABI_KIND_HIP_RUNTIME_API = 5,
    ROCPROFILER_ABI_KIND_MEMORY_COPY = 10,
    ROCPROFILER_ABI_KIND_KERNEL_DISPATCH = 11,
    ROCPROFILER_ABI_KIND_LAST_ASKED = 63, /* names are queried up to this number */
    ROCPROFILER_ABI_CALLBACK_MARKER_CORE_API = 7,
    ROCPROFILER_ABI_CALLBACK_CODE_OBJECT = 10,
    ROCPROFILER_ABI_CALLBACK_KERNEL_DISPATCH = 12,
    ROCPROFILER_ABI_CALLBACK_MEMORY_COPY = 13,
    ROCPROFILER_ABI_COUNTER_DISPATCH_HEADER = 1,
    ROCPROFILER_ABI_COUNTER_VALUE = 2
};

/* operations of these kinds */
enum {
    ROCPROFILER_ABI_COPY_HOST_TO_HOST = 1,
    ROCPROFILER_ABI_COPY_HOST_TO_DEVICE,
    ROCPROFILER_ABI_COPY_DEVICE_TO_HOST,
    ROCPROFILER_ABI_COPY_DEVICE_TO_DEVICE,
    ROCPROFILER_ABI_MEMORY_ALLOCATE = 1,
    ROCPROFILER_ABI_MEMORY_VMEM_ALLOCATE,
    ROCPROFILER_ABI_MEMORY_FREE,
    ROCPROFILER_ABI_MEMORY_VMEM_FREE,
    ROCPROFILER_ABI_CODE_OBJECT_LOAD = 1,
    ROCPROFILER_ABI_KERNEL_SYMBOL_REGISTER = 2,
    ROCPROFILER_ABI_DISPATCH_ENQUEUE = 1, /* by callback, on the thread that launches */
    ROCPROFILER_ABI_MARK = 0,
    ROCPROFILER_ABI_RANGE_PUSH,
    ROCPROFILER_ABI_RANGE_POP,
    ROCPROFILER_ABI_RANGE_START,
    ROCPROFILER_ABI_RANGE_STOP,
    ROCPROFILER_ABI_PHASE_ENTER = 1, /* also: loaded */
    ROCPROFILER_ABI_PHASE_EXIT = 2,
    ROCPROFILER_ABI_STORAGE_FILE = 1,
    ROCPROFILER_ABI_STORAGE_MEMORY = 2
};

/* All handles are structs of one 64-bit number, which x86-64 and AArch64 pass as that number. */
struct rocprofiler_abi_id {
    uint64_t handle;
};
union rocprofiler_abi_user_data {
    uint64_t value;
    void *pointer;
};
struct rocprofiler_abi_correlation { /* of work caused by a call; before 1.0 also of calls */
    uint64_t internal;
    union rocprofiler_abi_user_data external;
};

struct rocprofiler_abi_client_id_0 {
    const char *name;
    uint32_t handle;
};
struct rocprofiler_abi_client_id_1 {
    size_t size;
    const char *name;
    uint32_t handle;
};
typedef void (*rocprofiler_abi_finalize)(void *client_id); /* takes its struct by value: never called by us */
struct rocprofiler_abi_configure_result {
    size_t size;
    int (*initialize)(rocprofiler_abi_finalize finalize, void *tool_data);
    void (*finalize)(void *tool_data);
    void *tool_data;
};
typedef struct rocprofiler_abi_configure_result *(*rocprofiler_abi_configure)(uint32_t version,
                                                                              const char *runtime_version,
                                                                              uint32_t priority, void *client_id);

struct rocprofiler_abi_header {
    uint32_t category, kind;
    void *payload;
};
struct rocprofiler_abi_dispatch_info {
    uint64_t size, agent_id, queue_id, kernel_id, dispatch_id;
    uint32_t private_segment_size, group_segment_size;
    uint32_t workgroup_size[3], grid_size[3]; /* both in work-items */
    uint8_t reserved[56];
};
struct rocprofiler_abi_call_0 { /* HIP calls before 1.0 */
    uint64_t size;
    uint32_t kind;
    int32_t operation;
    struct rocprofiler_abi_correlation correlation;
    uint64_t start, end, thread_id;
};
struct rocprofiler_abi_call_1 {
    uint64_t size;
    uint32_t kind;
    int32_t operation;
    struct rocprofiler_abi_correlation correlation;
    uint64_t ancestor;
    uint64_t start, end, thread_id;
};
struct rocprofiler_abi_copy { /* 1.0 adds two addresses at the end */
    uint64_t size;
    uint32_t kind;
    int32_t operation;
    struct rocprofiler_abi_correlation correlation;
    uint64_t thread_id, start, end, dst_agent_id, src_agent_id, bytes;
};
struct rocprofiler_abi_dispatch {
    uint64_t size;
    uint32_t kind;
    int32_t operation;
    struct rocprofiler_abi_correlation correlation;
    uint64_t thread_id, start, end;
    struct rocprofiler_abi_dispatch_info info;
};
struct rocprofiler_abi_memory_0 { /* 0.6 and 0.7; 0.5 has none */
    uint64_t size;
    uint32_t kind;
    int32_t operation;
    struct rocprofiler_abi_correlation correlation;
    uint64_t thread_id, start, end, agent_id, address, bytes;
};
struct rocprofiler_abi_memory_1 {
    uint64_t size;
    uint32_t kind;
    int32_t operation;
    struct rocprofiler_abi_correlation correlation;
    uint64_t ancestor;
    uint64_t thread_id, start, end, agent_id, address, bytes;
};

/* Passed to a callback by value. */
struct rocprofiler_abi_callback_0 {
    uint64_t context_id, thread_id;
    struct rocprofiler_abi_correlation correlation;
    uint32_t kind;
    int32_t operation;
    uint32_t phase;
    void *payload;
};
struct rocprofiler_abi_callback_1 {
    uint64_t context_id, thread_id;
    struct rocprofiler_abi_correlation correlation;
    uint64_t ancestor;
    uint32_t kind;
    int32_t operation;
    uint32_t phase;
    void *payload;
};
struct rocprofiler_abi_marker {
    uint64_t size;
    union {
        const char *message;
        uint64_t range_id;
        void *widest[2];
    } arguments;
    union {
        int32_t level;
        uint64_t range_id;
    } result;
};
struct rocprofiler_abi_code_object {
    uint64_t size, code_object_id, agent_id, hsa_agent;
    const char *uri;
    uint64_t load_base, load_size;
    int64_t load_delta;
    uint32_t storage_type;
    union {
        int file;
        struct {
            uint64_t base, size;
        } memory;
    } storage;
};
struct rocprofiler_abi_dispatch_data {
    uint64_t size, start, end;
    struct rocprofiler_abi_dispatch_info info;
};
struct rocprofiler_abi_kernel_symbol { /* 1.0 adds two members at the end */
    uint64_t size, kernel_id, code_object_id;
    const char *kernel_name;
    uint64_t kernel_object;
    uint32_t kernarg_segment_size, kernarg_segment_alignment, group_segment_size, private_segment_size;
    uint32_t sgpr_count, arch_vgpr_count, accum_vgpr_count;
};

struct rocprofiler_abi_agent { /* as of 0.5; later ones only grew */
    uint64_t size, id;
    uint32_t type, cpu_cores_count, simd_count, mem_banks_count, caches_count, io_links_count, cpu_core_id_base;
    uint32_t simd_id_base, max_waves_per_simd, lds_size_in_kb, gds_size_in_kb, num_gws, wave_front_size, num_xcc;
    uint32_t cu_count, array_count, num_shader_banks, simd_arrays_per_engine, cu_per_simd_array, simd_per_cu;
    uint32_t max_slots_scratch_cu, gfx_target_version;
    uint16_t vendor_id, device_id;
    uint32_t location_id, domain, drm_render_minor, num_sdma_engines, num_sdma_xgmi_engines;
    uint32_t num_sdma_queues_per_engine, num_cp_queues, max_engine_clk_ccompute, max_engine_clk_fcompute;
    uint32_t sdma_fw_version, fw_version, capability, cu_per_engine, max_waves_per_cu, family_id, workgroup_max_size;
    uint32_t grid_max_size;
    uint64_t local_mem_size, hive_id, gpu_id;
    uint32_t workgroup_max_dim[3], grid_max_dim[3];
    const void *mem_banks, *caches, *io_links;
    const char *name, *vendor_name, *product_name, *model_name;
    uint32_t node_id;
    int32_t logical_node_id, logical_node_type_id, reserved;
};

struct rocprofiler_abi_counter_info {
    uint64_t id;
    const char *name, *description, *block, *expression;
    uint8_t flags; /* bit 0 constant, bit 1 derived */
};
struct rocprofiler_abi_counting_data { /* the dispatch about to be made; by value */
    uint64_t size;
    struct rocprofiler_abi_correlation correlation;
    uint64_t start, end;
    struct rocprofiler_abi_dispatch_info info;
};
struct rocprofiler_abi_counting_header { /* in the buffer, before the values of its dispatch */
    uint64_t size, num_records;
    struct rocprofiler_abi_correlation correlation;
    uint64_t start, end;
    struct rocprofiler_abi_dispatch_info info;
};
struct rocprofiler_abi_counter_value { /* 1.0 adds the agent at the end */
    uint64_t id;
    double value;
    uint64_t dispatch_id;
    union rocprofiler_abi_user_data user_data;
};

typedef void (*rocprofiler_abi_buffer_callback)(struct rocprofiler_abi_id context, struct rocprofiler_abi_id buffer,
                                                struct rocprofiler_abi_header **headers, size_t count, void *user,
                                                uint64_t dropped);
typedef void (*rocprofiler_abi_callback)(void); /* one of the two below, by release */
typedef void (*rocprofiler_abi_counting_callback)(struct rocprofiler_abi_counting_data data,
                                                  struct rocprofiler_abi_id *config,
                                                  union rocprofiler_abi_user_data *user_data, void *user);

/* X(member, symbol, parameters): functions that return a rocprofiler_status_t */
#define ROCPROFILER_ABI_FUNCTIONS(X)                                                                                 \
    X(get_version, rocprofiler_get_version, (uint32_t * major, uint32_t * minor, uint32_t * patch))                  \
    X(get_timestamp, rocprofiler_get_timestamp, (uint64_t * now))                                                    \
    X(is_initialized, rocprofiler_is_initialized, (int *answer))                                                     \
    X(force_configure, rocprofiler_force_configure, (rocprofiler_abi_configure configure))                           \
    X(create_context, rocprofiler_create_context, (struct rocprofiler_abi_id * context))                             \
    X(start_context, rocprofiler_start_context, (struct rocprofiler_abi_id context))                                 \
    X(stop_context, rocprofiler_stop_context, (struct rocprofiler_abi_id context))                                   \
    X(create_buffer, rocprofiler_create_buffer,                                                                      \
      (struct rocprofiler_abi_id context, size_t bytes, size_t watermark, int policy,                                \
       rocprofiler_abi_buffer_callback callback, void *user, struct rocprofiler_abi_id *buffer))                     \
    X(flush_buffer, rocprofiler_flush_buffer, (struct rocprofiler_abi_id buffer))                                    \
    X(create_thread, rocprofiler_create_callback_thread, (struct rocprofiler_abi_id * thread))                       \
    X(assign_thread, rocprofiler_assign_callback_thread,                                                             \
      (struct rocprofiler_abi_id buffer, struct rocprofiler_abi_id thread))                                          \
    X(buffer_service, rocprofiler_configure_buffer_tracing_service,                                                  \
      (struct rocprofiler_abi_id context, int kind, const int32_t *operations, size_t count,                         \
       struct rocprofiler_abi_id buffer))                                                                            \
    X(callback_service, rocprofiler_configure_callback_tracing_service,                                              \
      (struct rocprofiler_abi_id context, int kind, const int32_t *operations, size_t count,                         \
       rocprofiler_abi_callback callback, void *user))                                                               \
    X(kind_name, rocprofiler_query_buffer_tracing_kind_name, (int kind, const char **name, uint64_t *length))        \
    X(operation_name, rocprofiler_query_buffer_tracing_kind_operation_name,                                          \
      (int kind, int32_t operation, const char **name, uint64_t *length))                                            \
    X(iterate_operations, rocprofiler_iterate_buffer_tracing_kind_operations,                                        \
      (int kind, int (*each)(int kind, int32_t operation, void *user), void *user))                                  \
    X(query_agents, rocprofiler_query_available_agents,                                                              \
      (int version, int (*each)(int version, const void **agents, size_t count, void *user), size_t agent_bytes,     \
       void *user))                                                                                                  \
    X(iterate_counters, rocprofiler_iterate_agent_supported_counters,                                                \
      (struct rocprofiler_abi_id agent,                                                                              \
       int (*each)(struct rocprofiler_abi_id agent, struct rocprofiler_abi_id * counters, size_t count, void *user), \
       void *user))                                                                                                  \
    X(counter_info, rocprofiler_query_counter_info, (struct rocprofiler_abi_id counter, int version, void *info))    \
    X(record_counter, rocprofiler_query_record_counter_id, (uint64_t instance, struct rocprofiler_abi_id * counter)) \
    X(create_config_1, rocprofiler_create_counter_config,                                                            \
      (struct rocprofiler_abi_id agent, struct rocprofiler_abi_id * counters, size_t count,                          \
       struct rocprofiler_abi_id * config))                                                                          \
    X(create_config_0, rocprofiler_create_profile_config,                                                            \
      (struct rocprofiler_abi_id agent, struct rocprofiler_abi_id * counters, size_t count,                          \
       struct rocprofiler_abi_id * config))                                                                          \
    X(destroy_config_1, rocprofiler_destroy_counter_config, (struct rocprofiler_abi_id config))                      \
    X(destroy_config_0, rocprofiler_destroy_profile_config, (struct rocprofiler_abi_id config))                      \
    X(counting_service_1, rocprofiler_configure_buffer_dispatch_counting_service,                                    \
      (struct rocprofiler_abi_id context, struct rocprofiler_abi_id buffer,                                          \
       rocprofiler_abi_counting_callback callback, void *user))                                                      \
    X(counting_service_0_6, rocprofiler_configure_buffered_dispatch_counting_service,                                \
      (struct rocprofiler_abi_id context, struct rocprofiler_abi_id buffer,                                          \
       rocprofiler_abi_counting_callback callback, void *user))                                                      \
    X(counting_service_0, rocprofiler_configure_buffered_dispatch_profile_counting_service,                          \
      (struct rocprofiler_abi_id context, struct rocprofiler_abi_id buffer,                                          \
       rocprofiler_abi_counting_callback callback, void *user))

#endif
