# SPDX-License-Identifier: Apache-2.0
"""Comparison of two sessions: where the time went, and which kernels and scopes changed."""

from typing import Any, Dict, List, Tuple

from ._bars import bare, bars_height_in, titled
from ._figure import SMALL, Paper, cut, duration_text, kernel_words, plain
from ._palette import Rgb

_TIMES = (("busy_ns", "GPU busy"), ("copies_only_ns", "of that copies alone"),
          ("wait_launch_ns", "waiting for launches"), ("wait_sync_ns", "waiting for the host"),
          ("queued_ns", "queued"), ("no_work_ns", "no work"))
_SAME = 0.02  # smaller relative changes are ignored

Change = Tuple[str, float, float]


def _sums(session: Any) -> Dict[str, float]:
    sums: Dict[str, float] = {}
    for kernel in session.analysis["kernels"]:
        name = kernel["name"] or "name not recorded"
        sums[name] = sums.get(name, 0.0) + kernel["total_ns"]
    return sums


def kernel_changes(before: Any, after: Any) -> List[Change]:
    """GPU time by kernel in both sessions, largest change first."""
    first, second = _sums(before), _sums(after)
    changes = [(name, first.get(name, 0.0), second.get(name, 0.0)) for name in {**first, **second}]
    return sorted(changes, key=lambda change: (-abs(change[2] - change[1]), change[0]))


def scope_changes(before: Any, after: Any) -> List[Change]:
    """Wall time by scope path in both sessions; scopes that only one session has are skipped."""
    first, second = ({scope["path"]: scope["wall_ns"] for scope in session.analysis["scopes"]
                      if scope["wall_ns"] is not None} for session in (before, after))
    changes = [(path, first[path], second[path]) for path in first if path in second]
    return sorted(changes, key=lambda change: (-abs(change[2] - change[1]), change[0]))


def _has_kernels(*sessions: Any) -> bool:
    """Whether GPU times can be compared: engine Monitor records no kernels."""
    return all(session.analysis["kernels"] for session in sessions)


def _time_changes(before: Any, after: Any) -> List[Change]:
    changes = [("run", before.analysis["session"]["wall_ns"] or 0, after.analysis["session"]["wall_ns"] or 0)]
    if not _has_kernels(before, after):
        return changes
    for key, label in _TIMES:
        first, second = (sum(device[key] or 0 for device in session.analysis["time"]) for session in (before, after))
        if first or second:
            changes.append((label, first, second))
    return changes


def _ratio_text(first: float, second: float) -> str:
    if not first or not second:
        return "new" if second else "gone"
    ratio = second / first
    if abs(ratio - 1) < _SAME:
        return "same"
    if ratio < 2:
        return f"{1 - ratio:.0%} less" if ratio < 1 else f"{ratio - 1:.0%} more"
    return f"{ratio:.2f} ×" if ratio < 10 else f"{ratio:,.0f} ×"


def _time_text(time_ns: float) -> str:
    return duration_text(time_ns) if time_ns else "none"


def _draw_pairs(paper: Paper, axes: Any, changes: List[Change], colours: List[Rgb]) -> None:
    """For each name, a pale bar for before and a solid one for after."""
    longest = max(max(first, second) for _, first, second in changes) or 1
    for row, ((name, first, second), colour) in enumerate(zip(changes, colours)):
        axes.barh(row - 0.19, first / longest, height=0.34, color=colour, alpha=0.4, lw=0)
        axes.barh(row + 0.19, second / longest, height=0.34, color=colour, lw=0)
        is_slower = second > first * (1 + _SAME)
        axes.text(1.01, row, f"{_time_text(first)} → {_time_text(second)}", va="center", fontsize=SMALL - 0.5,
                  color=paper.palette.text)
        axes.text(1.2, row, _ratio_text(first, second), va="center", fontsize=SMALL - 0.5,
                  weight="bold" if is_slower else "normal",
                  color=paper.palette.text if is_slower else paper.palette.dim)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(changes) - 0.4, -0.6)
    axes.set_yticks(range(len(changes)), [plain(cut(name, 44)) for name, _, _ in changes], fontsize=SMALL,
                    color=paper.palette.text)
    bare(axes)


def parts_of(before: Any, after: Any, top_n: int) -> List[Tuple[str, List[Change], str]]:
    """(title, changes, kind) of each comparison."""
    parts = [("Where the time went", _time_changes(before, after), "time"),
             ("Kernels by change of GPU time", kernel_changes(before, after)[:top_n] if _has_kernels(before, after) else [],
              "kernel"),
             ("Scopes by change of wall time", scope_changes(before, after)[:top_n], "scope")]
    return [part for part in parts if part[1]]


def compare_height_in(parts: List[Tuple[str, List[Change], str]]) -> float:
    return 0.95 + sum((bars_height_in(len(changes)) - 0.4) * 1.15 + 0.5 for _, changes, _ in parts)


def _title(session: Any) -> str:
    return f"{cut(session.info['app'] or 'a session', 40)} ({cut(session.session_id, 15) or 'no id'})"


def draw_compare(paper: Paper, before: Any, after: Any, parts: List[Tuple[str, List[Change], str]]) -> None:
    paper.skip(0.22)
    paper.text(f"{_title(before)} → {_title(after)}", 12, weight="bold")
    paper.skip(0.27)
    sides = (("before", before), ("after", after))
    faults = {"incomplete": [name for name, session in sides if not session.is_complete],
              "no kernels recorded": [name for name, session in sides if not _has_kernels(session)]}
    notes = [f"{fault}: {', '.join(names)}" for fault, names in faults.items() if names]
    colour = paper.palette.bad if notes else paper.palette.dim
    paper.text(" · ".join(["pale: before, solid: after", *notes]), 8.5, colour)
    paper.skip(0.3)
    palette = paper.palette
    for title, changes, kind in parts:
        paper.skip(0.3)
        height = (bars_height_in(len(changes)) - 0.4) * 1.15
        axes = paper.axes(height, left_in=3.4, right_in=2.6)
        titled(paper, axes, title)
        colours = [palette.kernel(name) if kind == "kernel" else palette.scope(name.rpartition(" > ")[2])
                   if kind == "scope" else palette.accent if name == "GPU busy" else palette.wait
                   for name, _, _ in changes]
        words = [(kernel_words(name) if kind == "kernel" else name, first, second) for name, first, second in changes]
        _draw_pairs(paper, axes, words, colours)
        paper.skip(height + 0.2)
