# SPDX-License-Identifier: Apache-2.0
"""Rows of the timeline: named events, and the fraction of each pixel they cover when there are too many to draw."""

from dataclasses import dataclass, replace
from typing import Any, List, Optional, Tuple

import numpy

from ._palette import Rgb

# Number of kernels that can colour a pixel; the other kernels of a row are drawn in a neutral colour.
_NAMES_MAX = 64


@dataclass
class Track:
    """One row. starts and ends: seconds from the left edge; codes: indexes into names and colours."""

    label: str
    starts: Any
    ends: Any
    codes: Any
    names: List[str]
    colours: List[Rgb]
    is_hatched: bool = False
    height: float = 1.0
    note: str = ""

    @property
    def busy_s(self) -> float:
        return float(numpy.sum(self.ends - self.starts))


def busy_until(starts: Any, ends: Any, edges: Any) -> Any:
    """Total seconds of the intervals before each edge; overlaps count twice."""
    def ramp(times: Any) -> Any:
        times = numpy.sort(times)
        before = numpy.searchsorted(times, edges)
        sums = numpy.concatenate(([0.0], numpy.cumsum(times)))
        return before * edges - sums[before]

    return ramp(starts) - ramp(ends)


def coverage(track: Track, selected: Any, edges: Any) -> Tuple[Any, Any]:
    """For each bin between edges: the busy share (0 to 1), and the code with the largest part (-1: a rare one)."""
    starts, ends, codes = track.starts[selected], track.ends[selected], track.codes[selected]
    widths = numpy.diff(edges)
    share = numpy.clip(numpy.diff(busy_until(starts, ends, edges)) / widths, 0.0, 1.0)
    totals = numpy.bincount(codes, weights=ends - starts, minlength=len(track.names))
    leaders = numpy.argsort(-totals, kind="stable")[:_NAMES_MAX]
    best, winner = numpy.zeros(len(widths)), numpy.full(len(widths), -1)
    for code in leaders[totals[leaders] > 0]:
        mine = codes == code
        busy = numpy.diff(busy_until(starts[mine], ends[mine], edges))
        is_better = busy > best
        best, winner = numpy.where(is_better, busy, best), numpy.where(is_better, code, winner)
    rest = share * widths - best
    return share, numpy.where((rest > best) & (len(leaders) == _NAMES_MAX), -1, winner)


def clipped(track: Track, length_s: float) -> Optional[Track]:
    """The part inside the window; None if empty."""
    inside = (track.ends > 0) & (track.starts < length_s)
    if not inside.any():
        return None
    return replace(track, starts=numpy.clip(track.starts[inside], 0, length_s),
                   ends=numpy.clip(track.ends[inside], 0, length_s), codes=track.codes[inside])
