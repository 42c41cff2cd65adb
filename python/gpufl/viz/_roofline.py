# SPDX-License-Identifier: Apache-2.0
"""A roofline from range counters: operations per byte of DRAM traffic against operations per second.

Where operations were not counted, warp instructions take their place, as in the dashboard
(web/src/kernels/roofline.ts).
"""

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import numpy

from ._bars import say, titled
from ._figure import SMALL, Paper, count_text, cut, kernel_words, plain

# Fused multiply-adds per multiprocessor and clock, (single, double, tensor), by compute capability. Sources: CUDA
# programming guide, arithmetic instruction throughput; tensor (dense 16-bit inputs): the architecture's white paper.
# 0: unknown.
_LANES = {(7, 0): (64, 32, 512), (7, 5): (64, 2, 512), (8, 0): (64, 32, 1024), (8, 6): (128, 2, 512),
          (8, 9): (128, 2, 512), (9, 0): (128, 64, 2048), (10, 0): (128, 64, 0), (12, 0): (128, 2, 0)}
_INSTRUCTIONS_PER_CLOCK = 4  # one per sub-partition of a multiprocessor
# Input types of the tensor cores, fastest first: speed relative to 16-bit (0: no fixed factor), name.
_TENSOR = (("fp8", 2, "8 bit"), ("bf16_dst_fp32", 1, "16 bit"), ("fp16", 1, "16 bit"), ("fp16_dst_fp16", 1, "16 bit"),
           ("fp16_dst_fp32", 1, "16 bit"), ("fp16_bf16_tf32_dst_fp32", 1, "16 bit"), ("tf32_dst_fp32", 0.5, "TF32"),
           ("fp64", 0, "double precision"))
_POINTS_MAX = 16


@dataclass
class Point:
    name: str
    is_scope: bool
    unit: str
    intensity: float
    per_second: float
    tensor: Optional[int]  # the fastest input type used on tensor cores, index into _TENSOR


def _value(metrics: Dict[str, float], *names: str) -> Optional[float]:
    return next((metrics[name] for name in names if name in metrics), None)


def _tensor_work(metrics: Dict[str, float], kind: str) -> float:
    return metrics.get(f"sm__ops_path_tensor_src_{kind}.sum", 0.0)


def _operations(metrics: Dict[str, float]) -> float:
    """Additions, multiplications and fused multiply-adds (two each), of all precisions and the tensor cores."""
    work = sum(_tensor_work(metrics, kind) for kind, _, _ in _TENSOR)
    for letter in "fdh":
        for op, weight in (("add", 1), ("mul", 1), ("fma", 2)):
            name = f"sass_thread_inst_executed_op_{letter}{op}_pred_on.sum"
            work += weight * (_value(metrics, f"sm__{name}", f"smsp__{name}") or 0.0)
    return work


def _point(name: str, is_scope: bool, metrics: Dict[str, float], duration_ns: Optional[float]) -> Optional[Point]:
    read = _value(metrics, "dram_read_bytes", "dram__bytes_read.sum")
    written = _value(metrics, "dram_write_bytes", "dram__bytes_write.sum")
    moved = read + written if read is not None and written is not None else metrics.get("dram__bytes.sum")
    work, unit = _operations(metrics), "operation"
    if not work:
        work, unit = _value(metrics, "sm__inst_executed.sum", "smsp__inst_executed.sum") or 0.0, "instruction"
    time_ns = metrics.get("gpu__time_duration.sum") or duration_ns
    if not work or not moved or not time_ns:
        return None
    tensor = next((index for index, (kind, _, _) in enumerate(_TENSOR) if _tensor_work(metrics, kind)), None)
    return Point(name, is_scope, unit, work / moved, work / time_ns * 1e9, tensor)


def roofline_points(session: Any) -> List[Point]:
    """Kernels if they were counted individually, otherwise scopes; all in the same unit."""
    perf = session.perf
    perf = perf[perf.value.notna() & perf.metric.notna()]
    if not len(perf):
        return []
    means = perf.groupby([perf.level.astype(str), perf.name.astype(str), perf.metric.astype(str)]).value.mean()
    medians = session.kernels.groupby("name", observed=True).duration_ns.median()
    points = []
    for (level, name), values in means.groupby(level=[0, 1]):
        metrics = {metric: float(value) for (_, _, metric), value in values.items()}
        point = _point(name, level != "kernel", metrics, medians.get(name) if level == "kernel" else None)
        points += [point] if point else []
    for is_scope, unit in ((False, "operation"), (True, "operation"), (False, "instruction"), (True, "instruction")):
        chosen = [point for point in points if point.is_scope == is_scope and point.unit == unit]
        if chosen:
            return sorted(chosen, key=lambda point: -point.per_second)
    return []


def _roofs(session: Any, points: List[Point]) -> Tuple[List[Tuple[str, float]], Optional[float], List[str]]:
    """Compute roofs, bytes per second, and what could not be drawn."""
    unit, tensor = points[0].unit, min((point.tensor for point in points if point.tensor is not None), default=None)
    devices, missing = session.devices, []
    device = devices.iloc[0] if len(devices) else None
    known = {} if device is None else {key: int(value) for key, value in device.items()
                                       if key not in ("name", "uuid") and value == value and value is not None
                                       and str(value) != "<NA>"}
    roofs: List[Tuple[str, float]] = []
    if not known.get("multiprocessors") or not known.get("core_clock_khz"):
        missing.append("the device's clock was not recorded: no compute roof")
    else:
        clocks = known["multiprocessors"] * known["core_clock_khz"] * 1e3
        lanes = _LANES.get((known.get("compute_major", -1), known.get("compute_minor", -1)))
        if unit == "instruction":
            roofs = [("issue", _INSTRUCTIONS_PER_CLOCK * clocks)]
        elif lanes:
            roofs = [("single precision", 2 * lanes[0] * clocks), ("double precision", 2 * lanes[1] * clocks)]
            _, factor, words = _TENSOR[tensor] if tensor is not None else ("", 0, "")
            if factor and lanes[2]:
                roofs.append((f"tensor cores, {words}", 2 * lanes[2] * factor * clocks))
            elif words:
                missing.append(f"peak of the tensor cores ({words}) is unknown: no tensor roof")
        else:
            missing.append("peak of this compute capability is unknown: no compute roof")
    slope = known.get("memory_bandwidth_bps")
    if not slope:
        missing.append("the device's bandwidth was not recorded: no memory roof")
    return roofs, float(slope) if slope else None, missing


def _draw_roofs(paper: Paper, axes: Any, roofs: List[Tuple[str, float]], slope: Optional[float],
                span: Tuple[float, float]) -> None:
    palette = paper.palette
    highest = max((peak for _, peak in roofs), default=None)
    if slope:
        end = highest / slope if highest else span[1]
        axes.plot([span[0], end], [slope * span[0], slope * end], color=palette.dim, lw=1.3)
        middle = math.sqrt(span[0] * end)
        axes.annotate(f"DRAM {count_text(slope)}B/s", (middle, slope * middle), xytext=(-6, 6), fontsize=SMALL - 0.5,
                      textcoords="offset points", color=palette.dim, ha="right")
    for name, peak in roofs:
        start = peak / slope if slope else span[0]
        axes.plot([min(start, span[1]), span[1]], [peak, peak], color=palette.dim, lw=1.3)
        axes.annotate(f"{name} {count_text(peak)}/s", (span[1], peak), xytext=(-4, 3), fontsize=SMALL - 0.5, ha="right",
                      textcoords="offset points", color=palette.dim)


def _draw_points(paper: Paper, axes: Any, points: List[Point]) -> None:
    """Points with non-overlapping labels. The axes' limits must be set."""
    to_points = 72 / paper.figure.dpi
    points = sorted(points, key=lambda point: -point.per_second)
    places = axes.transData.transform([(point.intensity, point.per_second) for point in points]) * to_points
    used = [(x - 5, x + 5, y - 3) for x, y in places]  # left, right and height of the labels placed so far, in points
    for point, (x, y) in zip(points, places):
        colour = (paper.palette.scope if point.is_scope else paper.palette.kernel)(point.name)
        axes.scatter([point.intensity], [point.per_second], s=42, color=[colour], edgecolors=[paper.palette.panel],
                     linewidths=0.7, zorder=3)
        name = cut(kernel_words(point.name), 30)
        width = len(name) * 4.3
        is_left = x + width > axes.get_window_extent().x1 * to_points
        left = x - width - 6 if is_left else x + 6
        level = y - 3
        while any(left < right and other < left + width and abs(level - height) < 9 for other, right, height in used):
            level -= 9
        used.append((left, left + width, level))
        axes.annotate(plain(name), (point.intensity, point.per_second), xytext=(-6 if is_left else 6, level - y),
                      textcoords="offset points", fontsize=SMALL - 0.5, color=paper.palette.text,
                      ha="right" if is_left else "left",
                      arrowprops={"arrowstyle": "-", "lw": 0.5, "color": paper.palette.dim} if y - level > 9 else None)


def draw_roofline(paper: Paper, axes: Any, session: Any) -> None:
    points = roofline_points(session)
    if not points:
        return say(paper, axes, "not recorded: record with ProfilingEngine.RangeProfiler and the metric set roofline")
    unit = points[0].unit
    roofs, slope, missing = _roofs(session, points)
    shown = points[:_POINTS_MAX]
    what = "scopes" if points[0].is_scope else "kernels"
    titled(paper, axes, "Roofline", f"{len(shown)} of {len(points)} {what}")
    lowest = min([point.intensity for point in shown] + [peak / slope for _, peak in roofs if slope])
    highest = max([point.intensity for point in shown] + [peak / slope for _, peak in roofs if slope])
    span = (lowest / 4, highest * 8)
    _draw_roofs(paper, axes, roofs, slope, span)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*span)
    levels = numpy.array([point.per_second for point in shown] + [peak for _, peak in roofs])
    axes.set_ylim(levels.min() / 4, levels.max() * 4)
    axes.set_xlabel(f"{unit}s per byte of DRAM traffic", fontsize=SMALL, color=paper.palette.dim)
    axes.set_ylabel(f"{unit}s per second", fontsize=SMALL, color=paper.palette.dim)
    axes.grid(color=paper.palette.line, lw=0.5)
    axes.set_axisbelow(True)
    _draw_points(paper, axes, shown)
    for index, text in enumerate(missing):
        axes.text(0.01, 0.97 - 0.05 * index, text, transform=axes.transAxes, fontsize=SMALL - 0.5, va="top",
                  color=paper.palette.dim)
