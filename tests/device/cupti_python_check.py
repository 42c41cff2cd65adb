#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpufl.cupti on a real GPU, with PyTorch for work. Each part runs in a separate process; those that read counters run one
after the other, because counters exclude each other.

usage: PYTHONPATH=build/python cupti_python_check.py [PART...]    exit 1 when a part failed"""
import concurrent.futures
import os
import subprocess
import sys
import time

METRIC = "sm__cycles_active.avg"
TIMEOUT_S = 60


def gpu_work(seconds=0.0):
    """Matrix products for a while, at least one; waits for them."""
    import torch
    matrix = torch.ones(1024, 1024, device="cuda")
    end = time.monotonic() + seconds
    count = 0
    while count == 0 or time.monotonic() < end:
        matrix = torch.relu(matrix @ matrix * 1e-4)
        count += 1
        torch.cuda.synchronize()
    return count


def activity():
    from gpufl.cupti import cupti
    kernels, views = [], []
    cupti.activity_register_callbacks(lambda: (8 << 20, 0), kernels.extend)
    cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
    gpu_work(0.2)
    cupti.activity_flush_all(1)
    assert kernels and all(one.name and one.end > one.start for one in kernels), kernels[:3]
    cupti.activity_register_callbacks(lambda: (8 << 20, 0), lambda buffer: views.append(
        len(buffer.array(cupti.ActivityKind.CONCURRENT_KERNEL))), as_buffers=True)
    gpu_work(0.2)
    cupti.activity_flush_all(1)
    assert sum(views) > 0
    return f"{len(kernels)} kernels as objects, {sum(views)} in arrays; first {kernels[0].name[:60]}"


def callback():
    from gpufl.cupti import cupti
    gpu_work()
    calls = []

    def called(user, domain, cbid, data):
        calls.append((data.function_name, data.symbol_name))

    subscriber = cupti.subscribe(called, None)
    for domain in (cupti.CallbackDomain.RUNTIME_API, cupti.CallbackDomain.DRIVER_API):
        cupti.enable_domain(1, subscriber, domain)
    gpu_work()
    cupti.unsubscribe(subscriber)
    launches = {name for name, symbol in calls if symbol}
    assert launches, calls[:5]
    return f"{len(calls)} callbacks, launches by {sorted(launches)}"


def pm_sampling():
    from gpufl.cupti.pm_sampling import Collector
    gpu_work()
    with Collector() as collector:
        found = []
        for interval in (100_000, 50_000):  # configured again, too
            collector.configure(metrics=[METRIC, "dram__bytes_read.sum"], sampling_interval=interval)
            collector.start()
            gpu_work(0.1)
            collector.stop()
            data = collector.decode()
            assert len(data) > 100, data
            assert max(sample.metric_values[0] for sample in data) > 0
            found.append(len(data))
    return f"{found} samples, image mark {bytes(data._image[:8])!r}"


def ranges():
    from gpufl.cupti.range_profiler import ProfilerRange, RangeProfiler
    gpu_work()
    with RangeProfiler() as profiler:
        profiler.configure(metrics=["smsp__inst_executed.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed"])
        for _ in profiler.passes():
            with profiler.range("step"):
                gpu_work()
        step, = profiler.decode()
        assert step.name == "step" and step.metric_values[0] > 0, step
    with RangeProfiler() as profiler:
        profiler.configure(metrics=["smsp__inst_executed.sum"], range_mode=ProfilerRange.AutoRange)
        profiler.start()
        gpu_work()
        profiler.stop()
        kernels = list(profiler.decode())
        assert kernels and all(one.metric_values[0] > 0 for one in kernels), kernels
    return f"step {step.metric_values}, {len(kernels)} kernels"


def pc_sampling():
    from gpufl.cupti.pc_sampling import PCSampler
    gpu_work()
    with PCSampler(sampling_period=16) as sampler:
        gpu_work(0.5)
        data = sampler.stop()
    assert data.samples, data
    return f"{data.total_samples} samples of {len({one.function_name for one in data.samples})} functions"


def sass_metrics():
    from gpufl.cupti.pc_sampling import PCSampler
    from gpufl.cupti.sass_metrics import SassMetrics
    gpu_work()
    with PCSampler(), SassMetrics(metrics=["smsp__sass_inst_executed"]) as counter:
        gpu_work()
        counts = counter.flush_data()
    total = sum(one.value for one in counts)
    assert total > 0, counts[:3]
    return f"{total} instructions at {len(counts)} places"


def checkpoint():
    import torch
    from gpufl.cupti.checkpoint import Checkpoint
    values = torch.arange(1000, device="cuda")
    torch.cuda.synchronize()
    with Checkpoint() as saved:
        saved.save()
        values += 1
        torch.cuda.synchronize()
        saved.restore()
        assert values.cpu().tolist() == list(range(1000))
    return "1000 numbers are back"


PARTS = {part.__name__: part
         for part in (activity, callback, pm_sampling, ranges, pc_sampling, sass_metrics, checkpoint)}
ALONE = {"pm_sampling", "ranges", "pc_sampling", "sass_metrics"}


def run(name):
    """A part in a process: None or what went wrong, what it said, and its seconds."""
    start = time.monotonic()
    try:
        result = subprocess.run([sys.executable, __file__, name], env={**os.environ, "CUPTI_PYTHON_PART": "1"},
                                capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        wrong = f"exit {result.returncode}" if result.returncode else None
        text = (result.stderr if wrong else result.stdout).strip()
    except subprocess.TimeoutExpired:
        wrong, text = "hangs", f"it took more than {TIMEOUT_S} s"
    return wrong, text, time.monotonic() - start


def main():
    chosen = sys.argv[1:] or list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        sys.exit(f"cupti_python_check: no part '{unknown[0]}'; parts are {', '.join(PARTS)}")
    if os.environ.get("CUPTI_PYTHON_PART"):
        print(PARTS[chosen[0]]())
        return 0
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(1) as alone, concurrent.futures.ThreadPoolExecutor(3) as together:
        running = {name: (alone if name in ALONE else together).submit(run, name) for name in chosen}
        for name, future in running.items():
            wrong, text, seconds = future.result()
            failures += wrong is not None
            print(f"{name:<13} {'ok' if wrong is None else 'FAILED, ' + wrong:<7} {seconds:5.1f} s  {text[-1500:]}",
                  flush=True)
    print("cupti_python_check: " + ("good" if not failures else f"{failures} parts failed"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
