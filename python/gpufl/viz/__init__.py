# SPDX-License-Identifier: Apache-2.0
"""Plots of recorded sessions.

    import gpufl.viz as viz

    viz.init("./logs/*.log")
    viz.show()

Each function returns a matplotlib figure: a notebook shows it, savefig() writes it. A kernel has the same colour in
every plot and in the dashboard.
"""

import os
import warnings
from typing import Optional, Union

from ..analyzer import GpuFlightSession
from ._bars import bars_height_in, draw_hotspots, draw_stalls, stall_rows
from ._compare import compare_height_in, draw_compare, parts_of
from ._figure import LEFT_IN, RIGHT_IN, SMALL, WIDTH_IN, Paper, Picture, header, styled
from ._palette import Palette
from ._roofline import draw_roofline, roofline_points
from ._source import session_of
from ._timeline import draw_timeline, timeline_of

__all__ = ["Picture", "compare", "hotspots", "init", "roofline", "show", "stalls", "timeline"]

Logs = Union[str, "os.PathLike[str]", GpuFlightSession]

_HEADER_IN = 0.82
_ROOFLINE_IN = 3.4


class _Chosen:
    """What init() chose."""

    session: Optional[GpuFlightSession] = None
    theme = "light"


def init(logs: Logs, log_prefix: Optional[str] = None, session_id: Optional[str] = None,
         theme: str = "light") -> GpuFlightSession:
    """Selects the session that the other functions draw.

    logs: a pattern of log files, a directory or a GpuFlightSession; log_prefix and session_id select one of several
    sessions, as for GpuFlightSession. theme: "light" or "dark".
    """
    Palette(theme)
    session = session_of(logs, log_prefix, session_id)
    _Chosen.session, _Chosen.theme = session, theme
    return session


def _session(logs: Optional[Logs]) -> GpuFlightSession:
    if logs is not None:
        return session_of(logs)
    if _Chosen.session is None:
        raise RuntimeError("call viz.init(\"./logs/*.log\") first, or pass a session")
    return _Chosen.session


def _colours(theme: Optional[str]) -> Palette:
    return Palette(theme if theme is not None else _Chosen.theme)


def _top(top_n: int) -> int:
    if isinstance(top_n, bool) or not isinstance(top_n, int):
        raise TypeError(f"top_n must be int, not {type(top_n).__name__}")
    if not 1 <= top_n <= 100:
        raise ValueError(f"top_n must be 1 to 100, not {top_n}")
    return top_n


def timeline(logs: Optional[Logs] = None, *, start_s: Optional[float] = None, end_s: Optional[float] = None,
             theme: Optional[str] = None) -> Picture:
    """A timeline: scopes and waits of each thread, streams, graphs and copies of each GPU, and system metrics.

    start_s, end_s: the part to show, in seconds from the session's start. Where events are narrower than a pixel, the
    height of the bar is the busy fraction, in the colour of the kernel with the most time in that pixel.
    """
    session, palette = _session(logs), _colours(theme)
    with styled():
        parts = timeline_of(session, palette, start_s, end_s)
        paper = Paper(palette, _HEADER_IN + parts.height_in + 0.2)
        header(paper, session)
        draw_timeline(paper, parts, session.info["first_ns"])
    return paper.figure


def hotspots(logs: Optional[Logs] = None, *, top_n: int = 10, theme: Optional[str] = None) -> Picture:
    """The kernels with the most GPU time."""
    session, palette = _session(logs), _colours(theme)
    with styled():
        height = bars_height_in(min(_top(top_n), max(1, len(session.analysis["kernels"]))))
        paper = Paper(palette, _HEADER_IN + height + 0.3)
        header(paper, session)
        paper.skip(0.3)
        draw_hotspots(paper, paper.axes(height - 0.4, left_in=0.85, right_in=0.3), session, top_n)
    return paper.figure


def stalls(logs: Optional[Logs] = None, *, theme: Optional[str] = None) -> Picture:
    """Stall reasons of warps, in total and by function."""
    session, palette = _session(logs), _colours(theme)
    with styled():
        height = bars_height_in(max(2, stall_rows(session)))
        paper = Paper(palette, _HEADER_IN + height + 0.8)
        header(paper, session)
        paper.skip(0.3)
        draw_stalls(paper, paper.axes(height - 0.4, left_in=2.6, right_in=0.3), session)
    return paper.figure


def roofline(logs: Optional[Logs] = None, *, theme: Optional[str] = None) -> Picture:
    """Operations per second against operations per byte, of the kernels or scopes with recorded counters."""
    session, palette = _session(logs), _colours(theme)
    with styled():
        paper = Paper(palette, _HEADER_IN + _ROOFLINE_IN + 1.6)
        header(paper, session)
        paper.skip(0.3)
        draw_roofline(paper, paper.axes(_ROOFLINE_IN + 0.6, left_in=0.9, right_in=0.3), session)
    return paper.figure


def compare(before: Logs, after: Logs, *, top_n: int = 10, theme: Optional[str] = None) -> Picture:
    """Compares two sessions: where the time went, and the kernels and scopes that changed most."""
    first, second, palette = session_of(before), session_of(after), _colours(theme)
    with styled():
        parts = parts_of(first, second, _top(top_n))
        paper = Paper(palette, compare_height_in(parts))
        draw_compare(paper, first, second, parts)
    return paper.figure


def _draw_all(session: GpuFlightSession, palette: Palette, figure: Picture, start_s: Optional[float],
              end_s: Optional[float], top_n: int) -> Picture:
    parts = timeline_of(session, palette, start_s, end_s)
    has_roofline, stall_count = bool(roofline_points(session)), stall_rows(session)
    kernel_count = min(top_n, len(session.analysis["kernels"]))
    heights = [bars_height_in(count) + 0.2 for count in (kernel_count,) if count]
    heights += [bars_height_in(stall_count) + 0.65] if stall_count else []
    heights += [_ROOFLINE_IN + 0.9] if has_roofline else []
    missing = [text for is_there, text in (
        (stall_count, "stalls (ProfilingEngine.PcSampling or Deep)"),
        (has_roofline, "roofline (ProfilingEngine.RangeProfiler with the metric set roofline)")) if not is_there]
    paper = Paper(palette, _HEADER_IN + parts.height_in + sum(heights) + (0.5 if missing else 0.25), figure)
    header(paper, session)
    draw_timeline(paper, parts, session.info["first_ns"])
    if kernel_count:
        paper.skip(0.35)
        whole = ", whole session" if start_s is not None or end_s is not None else ""
        draw_hotspots(paper, paper.axes(bars_height_in(kernel_count) - 0.4, LEFT_IN, RIGHT_IN), session, top_n,
                      f"Kernels by GPU time{whole}")
        paper.skip(bars_height_in(kernel_count) - 0.3)
    if stall_count:
        paper.skip(0.35)
        draw_stalls(paper, paper.axes(bars_height_in(stall_count) - 0.4, left_in=2.6, right_in=RIGHT_IN), session)
        paper.skip(bars_height_in(stall_count) + 0.3)
    if has_roofline:
        paper.skip(0.35)
        draw_roofline(paper, paper.axes(_ROOFLINE_IN, LEFT_IN, right_in=WIDTH_IN - 9.5), session)
        paper.skip(_ROOFLINE_IN + 0.45)
    if missing:
        paper.skip(0.2)
        paper.text(f"not recorded: {', '.join(missing)}", SMALL, palette.dim, left_in=LEFT_IN)
    return paper.figure


def show(logs: Optional[Logs] = None, *, start_s: Optional[float] = None, end_s: Optional[float] = None,
         top_n: int = 10, theme: Optional[str] = None) -> Picture:
    """The whole session in one figure: timeline, hotspots and, if recorded, stalls and the roofline.

    With an interactive matplotlib backend it opens a window and waits until the window is closed; a notebook shows the
    returned figure.
    """
    session, palette = _session(logs), _colours(theme)
    _top(top_n)
    from matplotlib import pyplot

    with styled():
        figure: Picture = pyplot.figure(FigureClass=Picture)
        has_windows = getattr(type(figure.canvas), "required_interactive_framework", None) is not None
        if not has_windows:
            pyplot.close(figure)  # a notebook would show it twice
        _draw_all(session, palette, figure, start_s, end_s, top_n)
        if has_windows:
            pyplot.show()
        elif not _is_notebook():
            warnings.warn("matplotlib has no window to show this in; the figure is returned, savefig(\"gpufl.png\") "
                          "writes it", UserWarning, stacklevel=2)
    return figure


def _is_notebook() -> bool:
    import sys

    shell = sys.modules.get("IPython")
    return shell is not None and shell.get_ipython() is not None
