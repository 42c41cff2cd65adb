# SPDX-License-Identifier: Apache-2.0
"""Sessions with everything that pictures show, written by hand, so that a picture is the same on every machine."""
import math
import random
import sys

import fixture

sys.path.insert(0, str(fixture.GOLDEN))
import make_deep_sessions as deep  # noqa: E402
import make_sessions as make  # noqa: E402

MS, US, T0 = make.MS, make.US, make.T0
KERNELS = {"1": "void cutlass::gemm_bf16_128x128x64<float, cutlass::layout::RowMajor>(cutlass::Params)",
           "2": "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>(int, float*)",
           "3": "void at::native::reduce_kernel<512, 1, at::native::MaxOps>(at::native::ReduceOp)",
           "4": "flash_fwd_kernel$1_splitkv", "5": "layer_norm_backward"}
# Per kernel: operations, DRAM bytes, duration in ns of one launch.
WORK = {"1": (4.1e10, 6.4e7, 1.4 * MS), "2": (4.0e6, 4.8e7, 22 * US), "3": (2.0e7, 3.2e7, 60 * US),
        "4": (9.0e9, 9.0e7, 300 * US), "5": (8.0e7, 1.6e8, 90 * US)}


def _scopes(s, steps, step_ns):
    paths = {"1": "epoch", "2": "epoch|forward", "3": "epoch|forward|attention", "4": "epoch|backward", "5": "save"}
    s.event("scope", "dictionary_update", scope_name_dict=paths)
    rows, instance = [], 2
    begin = 4 * MS

    def row(at, id_, name, kind, depth, start, thread, parent):
        rows.append([at, id_, name, kind, depth, 0, 0, T0 + start, thread, parent, 0, 0])

    row(begin, 1, 1, 0, 0, begin, 100, 0)
    for i in range(steps):
        at = begin + MS + i * step_ns
        half = at + step_ns * 4 // 10
        for name, depth, parent, start, end in ((2, 1, 1, at, half), (3, 2, instance, at + MS, half - MS),
                                                (4, 1, 1, half + MS // 5, at + step_ns - MS // 2)):
            row(start, instance, name, 0, depth, start, 100, parent)
            row(end, instance, name, 1, depth, start, 100, parent)
            instance += 1
    end = begin + 2 * MS + steps * step_ns
    row(end, 1, 1, 1, 0, begin, 100, 0)
    row(end + MS, instance, 5, 0, 0, end + MS, 101, 0)
    row(end + 9 * MS, instance, 5, 1, 0, end + MS, 101, 0)
    s.batch("scope", "scope_event_batch", make.SCOPE, sorted(rows), version=3)


def _work(s, steps, step_ns, speed, rng):
    rows, copies, syncs, corr = [], [], [], 1
    for i in range(steps):
        at = 5 * MS + i * step_ns
        copies.append([at, 13, 700 * US, 18_000_000, 1, corr, 0, 1, 2 if i % 2 else 1, 3, 1, None, None, 10 * US,
                       5 * US, 100, 2])
        now = at + 900 * US
        for kernel_id in (1, 4, 2, 3, 1) + (2, 5) * 40:
            duration = int(WORK[str(kernel_id)][2] * speed * rng.uniform(0.9, 1.1))
            rows.append(make.kernel(now, kernel_id, duration, 1, stream=7, corr=corr, scope=2))
            now += duration + int(rng.uniform(2, 30) * US)
            corr += 1
        rows += [make.kernel(at + 6 * MS + j * 300 * US, 2, 40 * US, 1, stream=13, corr=corr + j) for j in range(8)]
        corr += 8
        copies.append([at + step_ns - 3 * MS, 7, 1_200 * US, 4_000_000, 2, corr, 0, 1, 3, 1, 0, None, None, 10 * US,
                       5 * US, 100, 4])
        syncs.append([at + step_ns - 3 * MS, 2 * MS, 3, 7, None, 1, corr, 0, 100, 4])
    s.batch("device", "kernel_event_batch", make.KERNEL, sorted(rows))
    s.batch("device", "memcpy_event_batch", make.COPY, copies)
    s.batch("scope", "synchronization_event_batch", make.SYNC, syncs)


def _metrics(s, length_ms):
    rows = [[i * 5 * MS, 0, 0 if i < 2 else 70 + 25 * math.sin(i / 3), 40, 50 + i // 8, 1000 * (300 + 12 * min(i, 25)),
             40_000 + 900 * min(i, 30), 143_771, 1_980 - (240 if 20 < i < 28 else 0), None, 0]
            for i in range(length_ms // 5)]
    s.batch("system", "device_metric_batch", make.METRIC, [[int(v) if v is not None else None for v in row]
                                                           for row in rows])
    s.batch("system", "host_metric_batch", make.HOST, [
        [i * 5 * MS, 600 + i, 90_000, 128_887, 9_000 + 300 * (i % 4), 2_000] for i in range(length_ms // 5)])


def _counters(s):
    for kernel_id, (operations, bytes_, duration) in WORK.items():
        for ordinal in range(2):
            metrics = {"gpu__time_duration.sum": duration, "dram__bytes_read.sum": bytes_ * 0.7,
                       "dram__bytes_write.sum": bytes_ * 0.3, "sm__inst_executed.sum": operations / 64}
            tensor = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
            op = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum"
            metrics[tensor if kernel_id in "14" else op] = operations if kernel_id in "14" else operations / 2
            s.event("device", "kernel_perf_metric_event", pid=4711, app="train.py", device_id=0, range_index=ordinal,
                    range_name=str(ordinal), kernel_name=KERNELS[kernel_id], launch_ordinal=ordinal, metrics=metrics)


def _stalls(s):
    weights = {"1": 500, "2": 180, "3": 60, "5": 210}
    percents = {  # in the order of deep.STALLS
        "1": (5, 20, 12, 5, 3, 9, 44, 1, 1), "2": (70, 8, 6, 2, 0, 1, 2, 8, 3), "3": (40, 8, 8, 3, 30, 6, 2, 1, 2),
        "5": (55, 10, 9, 4, 10, 4, 3, 1, 4)}
    s.event("scope", "dictionary_update", function_dict=KERNELS, metric_dict={
        str(i + 1): f"smsp__pcsamp_warps_issue_stalled_{reason}" for i, reason in enumerate(deep.STALLS)})
    s.batch("scope", "profile_sample_batch", deep.SAMPLE, [
        deep.sample(int(id_), 32, stall, percent * weights[id_], 1, scope=2)
        for id_, mix in percents.items() for stall, percent in zip(deep.STALLS, mix) if percent])


def write(directory, steps=8, speed=1.0, is_deep=True, seed=7):
    """A training run, into directory; speed: how long kernels take, beside the usual."""
    step_ns = 20 * MS
    s = make.Session("not_kept_here")
    s.dir = directory
    s.id = "0192f300-0000-7000-8000-%012x" % seed
    s.start(engine="nvidia.deep" if is_deep else "nvidia.trace")
    s.event("device", "device_limits", device_id=0, name="NVIDIA H200", uuid="GPU-0", compute_major=9, compute_minor=0,
            multiprocessors=132, warp_size=32, core_clock_khz=1_980_000, memory_bandwidth_bps=4_800_000_000_000)
    s.event("device", "dictionary_update", kernel_dict=KERNELS)
    _scopes(s, steps, step_ns)
    _work(s, steps, step_ns, speed, random.Random(seed))
    _metrics(s, steps * 20 + 15)
    if is_deep:
        _counters(s)
        _stalls(s)
    s.end((steps * 20 + 18) * MS)
    s.write()
    return directory
