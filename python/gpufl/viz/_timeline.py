# SPDX-License-Identifier: Apache-2.0
"""The timeline: scopes and waits of threads, streams, graphs and copies of devices, and system metrics."""

from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

import numpy
from matplotlib.collections import PolyCollection
from matplotlib.ticker import MaxNLocator

from ._coverage import Track, clipped, coverage
from ._figure import LEFT_IN, RIGHT_IN, SMALL, WIDTH_IN, Paper, count_text, cut, duration_text, kernel_words, plain
from ._palette import Palette
from ._tracks import NS, Window, device_tracks, scope_tracks

_ROW_IN, _LANE_IN, _GAP_IN = 0.21, 0.42, 0.1
_BINS = 1000  # about a pixel each
_WIDE_BINS = 1.5  # wider events are drawn individually
_LETTER_IN = 0.06  # width of a small letter, with some margin
_PM_LANES_MAX = 4


@dataclass
class Lane:
    """A metric over time. lines: (seconds, values) per device."""

    label: str
    unit: str
    lines: List[Tuple[Any, Any]]
    top: Optional[float] = None


@dataclass
class Timeline:
    """The contents of a timeline, before drawing."""

    window: Window
    tracks: List[Track]
    lanes: List[Lane]

    @property
    def height_in(self) -> float:
        rows = sum(track.height for track in self.tracks) * _ROW_IN
        return max(rows, _ROW_IN) + len(self.lanes) * (_LANE_IN + _GAP_IN) + 0.45


def window_of(session: Any, start_s: Optional[float], end_s: Optional[float]) -> Window:
    first, last = session.info["first_ns"], session.info["last_ns"]
    if first is None or last is None:
        raise ValueError(f"the session in {session.path} holds nothing that has a time")
    for name, value in (("start_s", start_s), ("end_s", end_s)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    start = first if start_s is None else first + round(start_s * NS)
    end = max(last, first + 1) if end_s is None else first + round(end_s * NS)
    if not start < end:
        raise ValueError(f"start_s must be before end_s; the session lasts {(last - first) / NS:.6g} s")
    return Window(start, end)


def _inside(frame: Any, window: Window) -> Any:
    """The rows in the window and one on either side, so that lines reach its edges. frame must be sorted by time."""
    first, last = numpy.searchsorted(frame.time_ns, (window.start_ns, window.end_ns))
    return frame.iloc[max(0, first - 1):last + 1]


def _lines(frame: Any, column: str, scale: float, window: Window) -> List[Tuple[Any, Any]]:
    """A line per device, as (seconds, values)."""
    lines = []
    keys = frame.device_id.astype("Int64").fillna(-1) if "device_id" in frame else numpy.zeros(len(frame))
    for device in sorted(set(keys)):
        mine = _inside(frame[keys == device].sort_values("time_ns"), window)
        values = mine[column].astype("Float64").to_numpy(dtype="float64", na_value=numpy.nan) * scale
        if not numpy.isnan(values).all():
            lines.append((window.seconds(mine.time_ns), values))
    return lines


def _lanes(session: Any, window: Window) -> List[Lane]:
    device, host = session.device_metrics, session.host_metrics
    lanes = []
    for frame, column, label, unit, scale, top in (
            (device, "gpu_util", "GPU util", "%", 1, 100), (device, "power_mw", "power", "W", 1e-3, None),
            (device, "clock_sm", "SM clock", "MHz", 1, None), (device, "used_mib", "GPU memory", "GiB", 1 / 1024, None),
            (host, "process_cpu_pct_x100", "process CPU", "%", 1e-2, None)):
        lines = _lines(frame, column, scale, window)
        if lines:
            lanes.append(Lane(label, unit, lines, top))
    counters = session.pm_samples
    for metric in counters.metric.cat.remove_unused_categories().cat.categories[:_PM_LANES_MAX]:
        is_share = ".pct" in metric
        lines = _lines(counters[counters.metric == metric], "value", 1, window)
        if lines:
            lanes.append(Lane(cut(metric.split(".")[0], 24), "%" if is_share else "", lines,
                              100 if is_share else None))
    return lanes


def timeline_of(session: Any, palette: Palette, start_s: Optional[float], end_s: Optional[float]) -> Timeline:
    window = window_of(session, start_s, end_s)
    rows = scope_tracks(session, window, palette) + device_tracks(session, window, palette)
    tracks = [track for row in rows if (track := clipped(row, window.length_s))]
    return Timeline(window, tracks, _lanes(session, window))


def _boxes(lefts: Any, rights: Any, bottoms: Any, tops: Any) -> Any:
    corners = numpy.empty((len(lefts), 4, 2))
    corners[:, 0, 0] = corners[:, 1, 0] = lefts
    corners[:, 2, 0] = corners[:, 3, 0] = rights
    corners[:, 0, 1] = corners[:, 3, 1] = bottoms
    corners[:, 1, 1] = corners[:, 2, 1] = tops
    return corners


def _draw_labels(axes: Any, track: Track, wide: Any, middle: float, second_in: float, palette: Palette) -> None:
    for start, end, code in zip(track.starts[wide], track.ends[wide], track.codes[wide]):
        letters = int((end - start) * second_in / _LETTER_IN) - 1
        words = kernel_words(track.names[code])
        if letters >= min(9, len(words)):
            paper = {"facecolor": palette.stripe, "edgecolor": "none", "pad": 0.8} if track.is_hatched else None
            axes.text((start + end) / 2, middle, plain(cut(words, letters)), fontsize=SMALL - 1, ha="center",
                      va="center", clip_on=True, bbox=paper, zorder=3,
                      color=palette.text if track.is_hatched else palette.panel)


def _draw_track(axes: Any, track: Track, y: float, length_s: float, palette: Palette) -> None:
    """y: the row's lower edge. Wide events are boxes; for narrow events each pixel shows its busy fraction."""
    top = y + track.height * 0.9
    axes.axhspan(y, top, color=palette.stripe, lw=0, zorder=0)
    bin_s = length_s / _BINS
    wide = track.ends - track.starts >= _WIDE_BINS * bin_s
    if wide.any():
        colours = [track.colours[code] for code in track.codes[wide]]
        axes.add_collection(PolyCollection(
            _boxes(track.starts[wide], track.ends[wide], y, top), linewidths=0.5, zorder=2,
            facecolors="none" if track.is_hatched else colours,
            edgecolors=colours if track.is_hatched else palette.panel, hatch="/////" if track.is_hatched else None))
        _draw_labels(axes, track, wide, (y + top) / 2, (WIDTH_IN - LEFT_IN - RIGHT_IN) / length_s, palette)
    if not wide.all():
        edges = numpy.linspace(0, length_s, _BINS + 1)
        share, winner = coverage(track, ~wide, edges)
        busy = share > 0
        # The minimum visible height, so that a pixel with any work does not look idle.
        heights = numpy.maximum(share[busy], 0.12) * (top - y)
        colours = [track.colours[code] if code >= 0 else palette.dim for code in winner[busy]]
        axes.add_collection(PolyCollection(_boxes(edges[:-1][busy], edges[1:][busy], y, y + heights), linewidths=0,
                                           facecolors=colours, zorder=1, antialiaseds=False))


def _draw_lane(paper: Paper, lane: Lane, shared: Any) -> None:
    palette = paper.palette
    axes = paper.axes(_LANE_IN, sharex=shared)
    highest = max(numpy.nanmax(values) for _, values in lane.lines)
    axes.set_ylim(0, lane.top or (highest * 1.15 if highest > 0 else 1))
    for index, (times, values) in enumerate(lane.lines):
        axes.plot(times, values, color=palette.accent, lw=1.1, alpha=1 - 0.6 * index / len(lane.lines),
                  marker="." if len(times) == 1 else None)
        if len(lane.lines) == 1:
            axes.fill_between(times, values, color=palette.accent, alpha=0.18, lw=0)
    axes.set_yticks([])
    axes.tick_params(labelbottom=False, bottom=False)
    axes.text(-0.01, 0.5, plain(lane.label), transform=axes.transAxes, ha="right", va="center", fontsize=SMALL,
              color=palette.text)
    values = numpy.concatenate([values for _, values in lane.lines])
    with numpy.errstate(over="ignore"):  # logs may contain any value
        mean_value = numpy.nanmean(values)
    mean, most = (count_text(value).rstrip() if highest >= 1e6 else f"{value:,.0f}" if highest >= 1000 else
                  f"{value:.3g}" for value in (mean_value, numpy.nanmax(values)))
    axes.text(1.008, 0.5, f"mean {mean}\nmax {most} {lane.unit}", transform=axes.transAxes, ha="left",
              va="center", fontsize=SMALL - 0.5, color=palette.dim, linespacing=1.3)
    paper.skip(_LANE_IN + _GAP_IN)


def _draw_rows(paper: Paper, axes: Any, timeline: Timeline) -> None:
    palette, length_s = paper.palette, timeline.window.length_s
    y = sum(track.height for track in timeline.tracks)
    axes.set_ylim(-0.1, max(y, 1))
    for track in timeline.tracks:
        y -= track.height
        _draw_track(axes, track, y, length_s, palette)
        middle = y + track.height * 0.45
        axes.text(-0.01 * length_s, middle, plain(cut(track.label, 26)), ha="right", va="center", fontsize=SMALL,
                  color=palette.text)
        note = track.note or (duration_text(track.busy_s * NS) if track.label else "")
        axes.text(1.008 * length_s, middle, note, ha="left", va="center", fontsize=SMALL - 0.5, color=palette.dim)
    if not timeline.tracks:
        axes.text(0.5, 0.5, "no scopes, kernels or copies were recorded here", transform=axes.transAxes, ha="center",
                  va="center", fontsize=SMALL, color=palette.dim)


def draw_timeline(paper: Paper, timeline: Timeline, first_ns: int) -> None:
    """first_ns: the session's start, the origin of the time axis."""
    window = timeline.window
    rows_in = max(sum(track.height for track in timeline.tracks), 1) * _ROW_IN
    paper.skip(0.22)
    axes = paper.axes(rows_in)
    axes.set_xlim(0, window.length_s)
    axes.set_yticks([])
    _draw_rows(paper, axes, timeline)
    unit, scale = next(((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3)) if window.length_s >= size),
                       ("µs", 1e-6))
    offset = (window.start_ns - first_ns) / NS
    ticks = MaxNLocator(10, steps=(1, 2, 5, 10)).tick_values(offset / scale, (offset + window.length_s) / scale)
    ticks = [tick for tick in ticks if 0 <= tick * scale - offset <= window.length_s]
    axes.xaxis.set_ticks_position("top")
    axes.set_xticks([tick * scale - offset for tick in ticks], [f"{tick:,.10g} {unit}" for tick in ticks])
    axes.grid(axis="x", color=paper.palette.line, lw=0.5, zorder=0.5)
    axes.set_axisbelow(True)
    paper.skip(rows_in + _GAP_IN)
    for lane in timeline.lanes:
        _draw_lane(paper, lane, axes)
    paper.skip(0.13)
