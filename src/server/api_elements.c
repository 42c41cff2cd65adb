/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas of the objects inside answers; the schemas in openapi.c refer to them. */
#include "server/api_route.h"

#define KERNEL_DURATIONS "min_ns:i? max_ns:i?"

const struct api_schema api_elements[] = {
    {"ErrorDetail", "code: a stable word for programs; message: for people", "code:s message:s"},
    {"CatalogEntry",
     "a session in the catalog; times are of the recording machine's clock, created_ns and received_ns of the server's; "
     "missing_rows: counted by its shutdown record but not received",
     "id:s app:s? host:s? kind:s? engine:s? state:s start_ns:i? end_ns:i? wall_ns:i? created_ns:i? received_ns:i? "
     "kernels:i kernel_ns:i rows:i lines:i bytes:i lost:i lost_is_exact:b missing_rows:i? revision:i retention:s "
     "retention_ns:i? tags:a=s gpus:a=CatalogGpu"},
    {"CatalogGpu", "a GPU that a session has used", "device:i? uuid:s? name:s?"},
    {"Host", "metrics: the latest sample of the host itself",
     "host:s first_seen_ns:i? last_seen_ns:i? metrics:o?=Sample gpus:a=HostGpu"},
    {"HostGpu", "a GPU with its latest metrics",
     "uuid:s name:s? device:i? first_seen_ns:i? last_seen_ns:i? session_id:s? metrics:o?=Sample"},
    {"Sample", "one sample: sample_ns and the log's columns by name; null where the driver has no value",
     "sample_ns:i? *:i?"},
    {"MetricSeries", "points: [minute_ns, min, mean, max]", "metric:s points:a"},
    {"SessionInfo", "the program and the versions of what recorded it",
     "id:s? app:s? pid:i? host:s? command:s? engine:s? requested_engine:s? driver_version:s? cuda_version:s? "
     "cupti_version:s? gpufl_version:s? start_ns:i? end_ns:i? wall_ns:i?"},
    {"Gpu", "a GPU of the session", "device:i? name:s? uuid:s? compute_capability:s? multiprocessors:i?"},
    {"Capability", "a requested feature and whether it was available",
     "feature:s requested:b status:s reason_code:s? message:s?"},
    {"Completeness", "whether anything is missing",
     "is_complete:b has_shutdown:b is_live:b has_torn_tail:b signal:i? lines:i bytes:i damaged_lines:i missing_lines:i "
     "missing_rows:i invalid_rows:i kernels:i lost:i lost_details:i lost_is_exact:b losses:a=Loss"},
    {"Loss", "something that was not recorded or cannot be read",
     "reason:s? record_type:s? count:i? count_is_exact:b message:s? cause:s?"},
    {"Overhead", "what recording cost",
     "cupti_fraction:n? gpufl_fraction:n? wall_ns:i? cupti_ns:i? collector_cpu_ns:i? sampler_cpu_ns:i? seal_cpu_ns:i? "
     "flush_ns:i? memory_peak_bytes:i? slowdown:o?=Slowdown"},
    {"Slowdown",
     "how much longer the program took because it was recorded: an estimate, with its parts of the wall time",
     "fraction:n is_least:b is_default_cost:b cupti_ns:i callbacks_ns:i stacks_ns:i gate_ns:i replay_ns:i switches_ns:i "
     "start_ns:i counting_ns:i sampling_ns:i"},
    {"WorkOfKind", "kernels by what their names say they compute", "kind:s total_ns:i share:n? count:i kernels:i"},
    {"DeviceTime", "parts of one GPU's wall time",
     "device:i? busy_ns:i? kernel_ns:i? memsets_only_ns:i? compute_ns:i? copies_only_ns:i? wait_launch_ns:i? "
     "wait_sync_ns:i? queued_ns:i? no_work_ns:i? unknown_ns:i?"},
    {"Kernel", "a kernel by name; launch: the configuration with the most time",
     "name:s? kernel_id:i kind:s count:i total_ns:i mean_ns:n? median_ns:i? p90_ns:i? p99_ns:i? " KERNEL_DURATIONS
     " share:n? launch:o?=Launch launch_variants:i?"},
    {"Launch", "a launch configuration with its occupancy, in basis points, and what limits it",
     "grid:a=i block:a=i cluster:a? num_regs:i? sgprs:i? accum_vgprs:i? static_shared_bytes:i? dyn_shared_bytes:i? "
     "local_per_thread_bytes:i? "
     "occupancy_bp:i? occupancy_regs_bp:i? occupancy_shared_bp:i? occupancy_warps_bp:i? occupancy_blocks_bp:i? "
     "active_blocks_max:i? limiter:s?"},
    {"KernelInstance", "one execution",
     "row:i start_ns:i duration_ns:i api_start_ns:i? api_duration_ns:i? device:i? stream_id:i? thread_id:i? "
     "correlation_id:i? graph_id:i? scope:s? launch:o?=Launch"},
    {"HistogramBin", "durations from from_ns up to, not including, to_ns", "from_ns:i to_ns:i count:i total_ns:i"},
    {"KernelHistogram", "durations of one kernel in bins of equal width or, when scale is logarithmic, of equal factor",
     "kernel_id:i scale:s from_ns:i to_ns:i counts:a=i"},
    {"DeviceLimits", "device limits for occupancy and rooflines; bandwidth in bytes per second",
     "device:i? name:s? compute_major:i? compute_minor:i? multiprocessors:i? warp_size:i? warps_per_sm_max:i? "
     "blocks_per_sm_max:i? regs_per_sm:i? regs_per_block_max:i? shared_per_sm:i? shared_per_block_max:i? "
     "shared_reserved_per_block:i? core_clock_khz:i? memory_bandwidth_bps:i?"},
    {"DurationStep", "executions that begin in a step", "from_ns:i count:i min_ns:i median_ns:i max_ns:i total_ns:i"},
    {"KernelLaunches", "executions with one launch configuration",
     "count:i total_ns:i share:n? device:i? launch:o?=Launch"},
    {"LaunchedKernel", "a kernel that was launched but not timed", "name:s? kernel_id:i count:i"},
    {"Scope", "a scope and the work in it; self: without nested scopes; untimed_launches: kernels without a time",
     "path:s depth:i calls:i open_calls:i wall_ns:i? gpu_ns:i? gpu_self_ns:i? gpu_inferred_ns:i? kernels:i kernels_self:i "
     "untimed_launches:i untimed_launches_self:i sync_ns:i? repeat:i? warmup:i? per_iteration_ns:n? "
     "gpu_per_iteration_ns:n? tag:s? tags:a=ScopeTag top_kernels:a?=ScopeKernel -different_kernels:i"},
    {"ScopeTag", "calls of a scope with this tag, or with tags that differ only in numbers; null: the other tags",
     "tag:s? tags:i calls:i wall_ns:i gpu_ns:i? kernels:i"},
    {"ScopeKernel", "a kernel inside a scope or its children", "name:s? kernel_id:i kind:s count:i total_ns:i"},
    {"StepSummary", "source: scope, period (of kernels), or null: no steps were found",
     "source:s? none_because:s? -name:s? -thread_id:i? -period_kernels:i? -warmup:i -whole:o=StepTimes "
     "-steady:o=StepTimes -slowest:o?=Step -typical:o?=Step -differences:a=StepDifference -list:a=Step -left_out:i"},
    {"StepTimes", "durations of steps; busy_ns: of all GPUs, in wall_ns",
     "count:i wall_ns:i busy_ns:i min_ns:i p10_ns:i median_ns:i mean_ns:n p90_ns:i p99_ns:i max_ns:i kernels:n"},
    {"Step", "a step, counted from 1", "step:i begin_ns:i duration_ns:i kernels:i"},
    {"StepDifference", "time in the slowest and in the typical step; what: time, scope, kind, kernel, copies",
     "what:s name:s? slowest_ns:i typical_ns:i"},
    {"OperatorTime", "kernels by the innermost operator that they were launched in; the directions add up to the total",
     "name:s total_ns:i forward_ns:i backward_ns:i optimizer_ns:i share:n? count:i"},
    {"OutsideScopes", "work outside all scopes", "gpu_ns:i? kernels:i untimed_launches:i"},
    {"Track", "one row of the timeline",
     "id:s kind:s -device:i? -stream_id:i? -thread_id:i? -depth:i count:i busy_ns:i?"},
    {"Copy", "copies of one kind", "kind:s? host_memory:s? calls:i bytes:i total_ns:i"},
    {"Memsets", "all memsets", "calls:i bytes:i total_ns:i"},
    {"Sync", "waits of one kind", "type:s? calls:i total_ns:i max_ns:i?"},
    {"SyncPlace", "waits by CPU stack", "stack:s? calls:i total_ns:i"},
    {"MemoryKind", "allocations of one kind of memory",
     "kind:s? allocs:i frees:i unmatched_frees:i allocated_bytes:i peak_bytes:i? never_freed_bytes:i never_freed:i"},
    {"MemoryHistory", "the maximum held in each step", "kind:s? held_bytes:a=i"},
    {"KeptMemory", "an allocation that was never freed", "kind:s? bytes:i time_ns:i device:i? thread_id:i? scope:s?"},
    {"Graph", "launches of one CUDA graph", "graph_id:i? launches:i nodes:i? total_ns:i? busy_ns:i?"},
    {"StepSeries", "one value per step, null where nothing was sampled; any: bits that were set at least once",
     "metric:s device:i? -min:a -mean:a -max:a -any:a"},
    {"Process", "a process on a GPU", "device:i? pid:i? used_mib_max:i?"},
    {"CounterSeries", "one hardware counter over the whole session",
     "metric:s device:i? samples:i interval_ns:i? mean:n? p50:n? p95:n? max:n? gaps:i gap_ns:i"},
    {"Sampling", "how PC samples were taken",
     "device:i? context:i? mode:s? period_cycles:i? target_rate_hz:i? hardware_buffer_bytes:i?"},
    {"StallSums", "samples by reason, function and scope; certain: samples that belong to exactly one kernel",
     "samples:i not_issued:i certain:i undecided:i kinds:a=StallKind functions:a=StallFunction scopes:a=StallScope"},
    {"StallKind", "one reason", "name:s family:s? samples:i words:s?"},
    {"StallFunction", "a function's samples",
     "name:s? function_id:i? cubin_crc:s? samples:i not_issued:i kinds:o=Counts"},
    {"StallScope", "a scope's samples; path null: outside all scopes",
     "path:s? certain:i samples:i not_issued:i kinds:o=Counts"},
    {"Counts", "numbers by name", "*:i"},
    {"Window", "time spans in which a data source was on",
     "source:s? windows:i covered_ns:i? share:n? launches:i? launches_are_exact:b invalid:i"},
    {"CodeObject", "code in the session: a cubin, or an AMDGPU code object (arch gfx...)",
     "cubin_crc:s? arch:s? bytes:i? is_stored:b skipped:s?"},
    {"Counters", "counts per instruction, summed, and ratios of them; null where not collected", "*:n?"},
    {"CodeSummary", "a function with samples or counters, or an AMD kernel that ran; language: SASS or ISA",
     "name:s? function_id:i? symbol:s? language:s cubin_crc:s? samples:i counters:o?=Counters problem:s?"},
    {"CodeLine", "a source line with its instructions",
     "function:s? cubin_crc:s? problem:s? file:s? line:i? source:s? samples:i not_issued:i stalls:o=Counts "
     "counters:o?=Counters instructions:a=LineInstruction"},
    {"LineInstruction", "an instruction of a line",
     "pc:i sass:s? is_raw:b inlined_at:a? samples:i counters:o?=Counters"},
    {"Instruction", "an instruction with its samples and counters",
     "pc:i sass:s? is_raw:b word:s? is_beyond_end:b file:s? line:i? source:s? inlined_at:a=Place samples:i not_issued:i "
     "stalls:o=Counts counters:o?=Counters"},
    {"KernelResources", "resources of an AMD kernel and its occupancy; null where unknown",
     "arch:s vgprs:i? agprs:i? sgprs:i? vgpr_spills:i? sgpr_spills:i? lds_bytes:i? scratch_bytes:i? wave_size:i? "
     "work_group_size:i? waves_per_simd:n? waves_per_simd_max:i? limiter:s? occupancy_problem:s?"},
    {"Place", "an inlined call", "file:s? line:i?"},
    {"RangeMetrics", "metrics of a scope or a kernel: passes collected, and mean, min, max, count by name",
     "-scope:s? -kernel:s? device:i? metric_set:s? results:i incomplete:i reason:s? passes_needed:i? "
     "passes_collected:i? instances:i? metrics:o"},
    {"Insight", "a suggestion; impact_ns: the time it concerns", "rule:s severity:s impact_ns:i? text:s"},
    {"ComparedSession", "one of the two sessions; kernel_times_missing: why kernels, kernel_ns and busy_ns are null",
     "session_id:s? app:s? host:s? start_ns:i? wall_ns:i? kernels:i? kernel_ns:i? busy_ns:i? kernel_times_missing:s? "
     "lost:i lost_is_exact:b is_complete:b common_share:n?"},
    {"ComparedKernel", "a kernel in both; base or new null: only in the other",
     "name:s? verdict:s is_regression:b change_ns:i share_of_change:n? median_ratio:n? base:o?=ComparedDurations "
     "new:o?=ComparedDurations"},
    {"ComparedScope", "a scope in both; base or new null: only in the other",
     "path:s? verdict:s is_regression:b change_ns:i share_of_change:n? median_ratio:n? base:o?=ComparedDurations "
     "new:o?=ComparedDurations"},
    {"ComparedDurations", "durations in one of the two sessions",
     "count:i total_ns:i mean_ns:n? median_ns:i? p25_ns:i? p75_ns:i? p90_ns:i? p99_ns:i? " KERNEL_DURATIONS
     " -gpu_ns:i?"},
    {"FoundKernel", "a kernel of a session",
     "session_id:s app:s? host:s? start_ns:i? name:s kernel_id:i count:i total_ns:i mean_ns:n? deviation_ns:n? " KERNEL_DURATIONS},
    {"ConfigEntry", "a named configuration", "name:s revision:i changed_ns:i bytes:i"},
    {"LineError", "a line that was rejected", "line:i type:s? reason:s"},
    {0}};
