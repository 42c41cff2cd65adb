# SPDX-License-Identifier: Apache-2.0
"""Figures of the GEMM story out of gpufl's own reports: {"STEP.what": text}. What was not measured is absent."""
import re

# An operation each, two for a fused one, as the roofline of the dashboard counts them.
ROOFLINE_WEIGHTS = {kind + name: weight for kind in "fdh" for name, weight in (("add", 1), ("mul", 1), ("fma", 2))}
OVERVIEW = {
    "sm": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
}


def number_text(value):
    """Three digits that mean something."""
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:,.{digits}f}"


def is_step(name, step):
    """Whether a kernel of a report is the step's: gemm_naive(float const*, ...)"""
    return bool(re.match(rf"(void )?gemm_{step}\b", name or ""))


def trace_figures(report, steps):
    result = {}
    for step in steps:
        for kernel in report["kernels"]:
            launch = kernel["launch"]
            if not is_step(kernel["name"], step) or not launch or launch.get("occupancy_bp") is None:
                continue
            result[f"{step}.occupancy"] = f"{launch['occupancy_bp'] / 100:.0f} %"
            result[f"{step}.limiter"] = launch["limiter"] or "nothing"
            result[f"{step}.registers"] = str(launch["num_regs"])
            result[f"{step}.shared"] = f"{launch['static_shared_bytes'] / 1024:.1f} KiB"
    return result


def deep_figures(report, step):
    result = {}
    deep = report.get("deep") or {}
    for function in (deep.get("stalls") or {}).get("functions", []):
        if not is_step(function["name"], step) or not function["samples"]:
            continue
        kinds = sorted(function["kinds"].items(), key=lambda kind: -kind[1])
        waits = [(name, count) for name, count in kinds if name not in ("selected", "not_selected")]
        issued = function["kinds"].get("selected", 0) / function["samples"]
        result[f"{step}.samples"] = f"{function['samples']:,}"
        result[f"{step}.issued"] = f"{issued:.1%}".replace("%", " %")
        for place, (name, count) in zip(("stall", "stall2"), waits):
            result[f"{step}.{place}"] = f"{name} {count / function['samples']:.0%}".replace("%", " %")
    sums = {}
    for line in deep.get("lines", []):
        if is_step(line["function"], step):
            for name, value in (line["counters"] or {}).items():
                if value is not None:
                    sums[name] = sums.get(name, 0) + value
    if sums.get("inst_executed"):
        result[f"{step}.executed"] = f"{sums['inst_executed']:,.0f}"
    if sums.get("sectors_global") and "sectors_global_ideal" in sums:
        result[f"{step}.useful"] = f"{100 * sums['sectors_global_ideal'] / sums['sectors_global']:.0f} %"
    if sums.get("wavefronts_shared_ideal") and "wavefronts_shared" in sums:
        result[f"{step}.passes"] = f"{sums['wavefronts_shared'] / sums['wavefronts_shared_ideal']:.2f}"
    elif sums:
        result[f"{step}.passes"] = "no shared memory"
    return result


def roofline_figures(step, means):
    """Operations a second, and per byte of device memory."""
    operations = sum(value * ROOFLINE_WEIGHTS[found[1]] for name, value in means.items()
                     if (found := re.match(r"sm__sass_thread_inst_executed_op_(\w+)_pred_on\.sum$", name))
                     and found[1] in ROOFLINE_WEIGHTS)
    operations += sum(value for name, value in means.items() if name.startswith("sm__ops_path_tensor_src_"))
    moved = means.get("dram__bytes_read.sum", 0) + means.get("dram__bytes_write.sum", 0)
    time_ns = means.get("gpu__time_duration.sum")
    if not operations or not time_ns or not moved:
        return {}
    return {f"{step}.operations_tflops": number_text(operations / time_ns / 1e3),
            f"{step}.intensity": number_text(operations / moved), f"{step}.moved": f"{moved / 1e6:,.0f} MB"}


def counters_figures(report, steps):
    result = {}
    for entry in (report.get("deep") or {}).get("metrics", []):
        for step in steps:
            if not is_step(entry.get("kernel"), step):
                continue
            means = {name: value["mean"] for name, value in entry["metrics"].items() if value["mean"] is not None}
            for short, name in OVERVIEW.items():
                if name in means:
                    result[f"{step}.{short}"] = f"{means[name]:.1f} %"
            result.update(roofline_figures(step, means))
    return result


def report_section(text, title, lines_max):
    """The section of a text report, up to its first empty line."""
    found = re.search(rf"^ {re.escape(title)}\b.*?(?=\n\s*\n|\Z)", text, re.M | re.S)
    if not found:
        return "not measured"
    lines = found[0].split("\n")
    return "\n".join(lines[:lines_max] + (["   …"] if len(lines) > lines_max else []))
