# SPDX-License-Identifier: Apache-2.0
"""A session's tables as rows of the timeline: threads with scopes and waits, streams, graphs, copies."""

from typing import Any, Callable, List, Tuple

import numpy

from ._coverage import Track
from ._palette import Palette, Rgb

_DEPTH_MAX, _THREADS_MAX, _STREAMS_MAX = 6, 4, 12
NS = 1e9


class Window:
    """The time range that a plot shows."""

    def __init__(self, start_ns: int, end_ns: int):
        self.start_ns, self.end_ns = start_ns, end_ns

    @property
    def length_s(self) -> float:
        return (self.end_ns - self.start_ns) / NS

    def seconds(self, times_ns: Any) -> Any:
        """From int64 nanoseconds; exact although a float cannot represent them."""
        return (numpy.asarray(times_ns, dtype="int64") - self.start_ns) / NS


def _rows(frame: Any, window: Window) -> Tuple[Any, Any]:
    starts = window.seconds(frame.start_ns)
    return starts, starts + numpy.asarray(frame.duration_ns, dtype="float64") / NS


def _track(label: str, frame: Any, column: str, window: Window, colour: Callable[[str], Rgb], **more: Any) -> Track:
    starts, ends = _rows(frame, window)
    texts = frame[column].cat.remove_unused_categories()
    names = [str(name) for name in texts.cat.categories] + ["not known"]
    codes = numpy.asarray(texts.cat.codes, dtype="int64")
    return Track(label, starts, ends, numpy.where(codes < 0, len(names) - 1, codes), names,
                 [colour(name) for name in names], **more)


def _ids(frame: Any, column: str) -> List[Any]:
    return sorted(frame[column].dropna().unique().tolist())


def _thread_name(thread: Any, threads: List[Any]) -> str:
    return "host" if len(threads) == 1 else f"thread {thread}"


def scope_tracks(session: Any, window: Window, palette: Palette) -> List[Track]:
    """Each thread's scopes, one row per depth, and below them its waits."""
    events = session.scope_events
    events = events[events.begin_ns.notna()]
    waits = session.syncs
    threads = list(dict.fromkeys(_ids(events, "thread_id") + _ids(waits, "thread_id")))
    by_use = sorted(threads, key=lambda thread: -int((events.thread_id == thread).sum()))
    tracks = []
    for thread in sorted(by_use[:_THREADS_MAX]):
        mine = events[events.thread_id == thread]
        deepest = int(mine.depth.max()) if len(mine) else -1
        for depth in range(min(deepest + 1, _DEPTH_MAX)):
            level = mine[mine.depth == depth]
            if not len(level):
                continue
            begins = level.begin_ns.astype("int64")
            # A scope that never ended is drawn to the end of the plot.
            ends = level.end_ns.fillna(max(window.end_ns, int(begins.max()))).astype("int64")
            frame = level.assign(start_ns=begins, duration_ns=ends - begins)
            hidden = deepest + 1 - _DEPTH_MAX if depth == _DEPTH_MAX - 1 and deepest >= _DEPTH_MAX else 0
            tracks.append(_track(_thread_name(thread, threads) if depth == 0 else "", frame, "name", window,
                                 palette.scope, note=f"+{hidden} deeper" if hidden else ""))
        frame = waits[waits.thread_id == thread]
        if len(frame):
            tracks.append(_track("waits", frame, "sync_type", window, lambda _: palette.wait, is_hatched=True,
                                 height=0.7))
    if len(threads) > _THREADS_MAX and tracks:
        tracks[-1].note = f"+{len(threads) - _THREADS_MAX} threads"
    return tracks


def _copy_tracks(copies: Any, prefix: str, window: Window, palette: Palette) -> List[Track]:
    """One row per direction, and a separate row for copies from or to pageable memory."""
    is_pageable = ((copies.src_kind == "pageable") | (copies.dst_kind == "pageable")).to_numpy(dtype="bool")
    tracks = []
    for kind in sorted(copies.copy_kind.astype("object").fillna("copy").unique()):
        mine = (copies.copy_kind.astype("object").fillna("copy") == kind).to_numpy(dtype="bool")
        for hatched in (False, True):
            frame = copies[mine & (is_pageable == hatched)]
            if len(frame):
                label = f"{prefix}{kind}{' pageable' if hatched else ''}"
                tracks.append(_track(label, frame, "copy_kind", window, palette.copy, is_hatched=hatched, height=0.7))
    return tracks


def device_tracks(session: Any, window: Window, palette: Palette) -> List[Track]:
    """Each device's streams, graphs whose kernels were not recorded individually, and copies."""
    kernels, graphs, copies = session.kernels, session.graphs, session.memcpy
    devices = sorted({device for frame in (kernels, graphs, copies) for device in _ids(frame, "device_id")})
    tracks = []
    for device in devices:
        prefix = "" if len(devices) == 1 else f"GPU {device} "
        mine = kernels[kernels.device_id == device]
        busy = mine.groupby("stream_id", observed=True).duration_ns.sum().sort_values(ascending=False)
        chosen = sorted(busy.index[:_STREAMS_MAX])
        for stream in chosen:
            tracks.append(_track(f"{prefix}stream {stream}", mine[mine.stream_id == stream], "name", window,
                                 palette.kernel, height=1.5))
        if len(busy) > len(chosen):
            share = busy.iloc[_STREAMS_MAX:].sum() / max(1, busy.sum())
            tracks[-1].note = f"+{len(busy) - len(chosen)} streams, {share:.1%}"
        launched = graphs[graphs.device_id == device]
        if len(launched):
            starts, ends = _rows(launched, window)
            tracks.append(Track(f"{prefix}graphs", starts, ends, numpy.zeros(len(starts), dtype="int64"), ["graph"],
                                [palette.kernel("graph")]))
        tracks += _copy_tracks(copies[copies.device_id == device], prefix, window, palette)
    return tracks
