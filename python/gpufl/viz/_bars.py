# SPDX-License-Identifier: Apache-2.0
"""Bar charts: the kernels with the most GPU time, and stall reasons."""

from typing import Any, Dict, List, Optional, Tuple

from ._figure import NORMAL, SMALL, Paper, cut, duration_text, kernel_words, plain
from ._palette import blend, stall_family

_ROW_IN = 0.24
_STALL_FUNCTIONS, _STALL_SHARE_MIN = 8, 0.01
_LETTERS_PER_IN = 14
_FIGURES_IN = 2.4  # room for a kernel's time and count, right of the bars


def bars_height_in(count: int) -> float:
    return 0.4 + _ROW_IN * max(count, 1)


def titled(paper: Paper, axes: Any, title: str, detail: str = "") -> None:
    axes.set_title(title, loc="left", fontsize=NORMAL, weight="bold", color=paper.palette.text, pad=6)
    if detail:
        axes.set_title(detail, loc="right", fontsize=SMALL, color=paper.palette.dim, pad=6)


def say(paper: Paper, axes: Any, text: str) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=SMALL,
              color=paper.palette.dim, wrap=True)


def bare(axes: Any) -> None:
    """Removes axis and frame: bars are labelled with their values."""
    axes.set_xticks([])
    axes.tick_params(left=False)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_facecolor("none")


def draw_hotspots(paper: Paper, axes: Any, session: Any, top_n: int, title: str = "Kernels by GPU time") -> None:
    kernels: List[Dict[str, Any]] = session.analysis["kernels"]
    if not kernels:
        return say(paper, axes, "no kernels were recorded")
    top = kernels[:top_n]
    total = sum(kernel["total_ns"] for kernel in kernels)
    longest = top[0]["total_ns"] or 1
    shown = sum(kernel["total_ns"] for kernel in top)
    titled(paper, axes, title,
           f"{len(top)} of {len(kernels)} kernels, {shown / total:.0%} of {duration_text(total)}" if total else "")
    width_in = axes.get_position().width * paper.figure.get_figwidth()
    longest_share, figures_share = 1 - _FIGURES_IN / width_in, _FIGURES_IN / width_in
    for row, kernel in enumerate(top):
        name = kernel["name"] or "name not recorded"
        colour = paper.palette.kernel(name)
        length = kernel["total_ns"] / longest * longest_share
        axes.barh(row, length, height=0.8, color=blend(colour, paper.palette.ground, 0.42), lw=0)
        axes.barh(row, 0.06 / width_in, height=0.8, color=colour, lw=0)
        share = kernel["total_ns"] / total if total else 0
        letters = int((width_in - _FIGURES_IN) * _LETTERS_PER_IN) - 2
        for x, text, side in ((-0.08 / width_in, f"{share:.1%}", "right"),
                              (0.14 / width_in, plain(cut(kernel_words(name), letters)), "left"),
                              (1 - figures_share * 0.5, duration_text(kernel["total_ns"]), "right"),
                              (1.0, f"{kernel['count']:,} × {duration_text(kernel['median_ns'])}", "right")):
            axes.text(x, row, text, ha=side, va="center", fontsize=SMALL, color=paper.palette.text)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(top) - 0.45, -0.55)
    axes.set_yticks([])
    bare(axes)


def _stall_reason(metric: str) -> str:
    return metric.rpartition("_stalled_")[2] or metric


def stall_table(session: Any) -> Optional[Tuple[Any, Any]]:
    """Samples by function (rows, most first) and stall reason (columns, by family); None: no samples."""
    samples = session.scope_samples
    metrics = samples.metric.astype("object").fillna("not known")
    is_issued = ~metrics.str.endswith("_not_issued")  # subsets of the other metrics
    samples, reasons = samples[is_issued], metrics[is_issued].map(_stall_reason).rename("reason")
    if not len(samples):
        return None
    functions = samples.function.astype("object").fillna("not known")
    table = samples.groupby([functions, reasons]).value.sum().unstack(fill_value=0)
    if not table.to_numpy().sum():
        return None
    table = table.loc[table.sum(axis=1).sort_values(ascending=False, kind="stable").index]
    totals = table.sum()
    families = totals.groupby([stall_family(reason) for reason in totals.index]).sum()
    order = sorted(totals.index, key=lambda reason: (stall_family(reason) == "issued", -families[stall_family(reason)],
                                                     stall_family(reason), -totals[reason], reason))
    return table[order], totals[order]


def stall_rows(session: Any) -> int:
    found = stall_table(session)
    return 0 if found is None else min(len(found[0]), _STALL_FUNCTIONS) + 1


def _draw_stall_row(paper: Paper, axes: Any, row: int, values: Any) -> None:
    """A bar of 100 %, divided by stall reason; reasons are labelled where the label fits."""
    left, total = 0.0, values.sum()
    for reason, value in values.items():
        share = value / total
        axes.barh(row, share, left=left, height=0.8, color=paper.palette.stall(reason), lw=0.5,
                  edgecolor=paper.palette.ground)
        letters = int(share * axes.get_position().width * paper.figure.get_figwidth() * _LETTERS_PER_IN) - 2
        text = f"{reason.replace('_', ' ')} {share:.0%}"
        if letters >= len(text):
            axes.text(left + share / 2, row, plain(text), ha="center", va="center", fontsize=SMALL - 0.5,
                      color=paper.palette.panel)
        left += share


def draw_stalls(paper: Paper, axes: Any, session: Any) -> None:
    found = stall_table(session)
    engine = session.info["engine"] or "unknown"
    asked = session.info["requested_engine"] or engine
    if found is None and asked in ("PcSampling", "Deep"):
        return say(paper, axes, f"engine {asked} recorded no PC sample: gpufl report says why")
    if found is None:
        return say(paper, axes, f"not recorded (engine {engine} has no stalls): record with ProfilingEngine.PcSampling "
                                "or Deep")
    table, totals = found
    top = table.iloc[:_STALL_FUNCTIONS]
    titled(paper, axes, "Why warps waited", f"{int(totals.sum()):,} samples, each reason's share of them")
    _draw_stall_row(paper, axes, 0, totals)
    labels = ["all"]
    for row, (function, values) in enumerate(top.iterrows(), 1):
        _draw_stall_row(paper, axes, row, values)
        labels.append(f"{plain(cut(kernel_words(str(function)), 24))}  {values.sum() / totals.sum():.0%}")
    axes.set_xlim(0, 1)
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.set_yticks(range(len(labels)), labels, color=paper.palette.text, fontsize=SMALL)
    bare(axes)
    small = [reason for reason, value in totals.items() if value / totals.sum() >= _STALL_SHARE_MIN]
    handles = [axes.barh(0, 0, color=paper.palette.stall(reason)) for reason in small]
    legend = axes.legend(handles, [plain(cut(reason.replace("_", " "), 28)) for reason in small], loc="upper left", ncol=4,
                         bbox_to_anchor=(0, -0.01), fontsize=SMALL - 0.5, frameon=False, handlelength=1,
                         columnspacing=1.2, borderaxespad=0.2)
    for text in legend.get_texts():
        text.set_color(paper.palette.dim)
