# SPDX-License-Identifier: Apache-2.0
"""Recorded sessions as DataFrames, and their analysis.

    from gpufl.analyzer import GpuFlightSession

    session = GpuFlightSession("./logs", log_prefix="my_app")
    session.print_summary()
    session.kernels.groupby("name", observed=True).duration_ns.sum()
"""

import functools
import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from . import _native
from ._directory import find_session
from ._frames import frame_of
from ._options import raise_unknown

if TYPE_CHECKING:
    import pandas

# Parts of the text report, as bits: enum report_section of src/analysis/report.h.
_SECTIONS = {name: 1 << bit for bit, name in enumerate((
    "header", "time", "kernels", "kinds", "steps", "scopes", "scope_kernels", "operators", "stalls", "code", "counters", "metrics", "pm", "sources", "copies", "syncs",
    "memory", "graphs", "system", "insights", "losses"))}


def _check_top(top_n: int) -> None:
    if isinstance(top_n, bool) or not isinstance(top_n, int):
        raise TypeError(f"top_n must be int, not {type(top_n).__name__}")
    if not 1 <= top_n < 2**31:
        raise ValueError(f"top_n must be 1 or more, not {top_n}")


class GpuFlightSession:
    """A recorded session, running, finished or killed; written by gpufl or by GPUFlight (wire v1).

    log_dir: a session directory, or a directory of them. log_prefix: selects by app_name. session_id: selects by id, or
    by the start of an id. If several sessions match, the newest is read and a UserWarning names the others. The session
    of a killed program is read up to its last complete record; `is_complete` and the report show that.

    FileNotFoundError: no such session. ValueError: the session cannot be read.

    DataFrames are created on first use and share the session's memory: their columns are read-only; use .copy() to
    change them. Unknown values are <NA>, never zero.
    """

    def __init__(self, log_dir: Union[str, "os.PathLike[str]"], log_prefix: Optional[str] = None,
                 session_id: Optional[str] = None, **others: Any):
        for name in others:
            raise_unknown("GpuFlightSession", name, ("log_dir", "log_prefix", "session_id"))
        for name, value in (("log_prefix", log_prefix), ("session_id", session_id)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"GpuFlightSession(): {name} must be str, not {type(value).__name__}")
        if not isinstance(log_dir, (str, os.PathLike)):
            raise TypeError(f"GpuFlightSession(): log_dir must be str or os.PathLike, not {type(log_dir).__name__}")
        self.path = find_session(os.fspath(log_dir), log_prefix or None, session_id)
        self._session = _native.Session(self.path)
        app = self.info["app"]
        if log_prefix and app and app != log_prefix:
            raise FileNotFoundError(f"the session in {self.path} was recorded by '{app}', not '{log_prefix}'")

    def __repr__(self) -> str:
        state = "complete" if self.is_complete else "incomplete"
        return f"<GpuFlightSession {self.info['app']!r} {self.session_id}: {state}>"

    @functools.cached_property
    def analysis(self) -> Dict[str, Any]:
        """All data of the report, as in `gpufl report --json` (docs/report.md)."""
        answer: Dict[str, Any] = json.loads(self._session.report_json())
        return answer

    @functools.cached_property
    def info(self) -> Dict[str, Any]:
        """The run: app, pid, host, command, engine, requested_engine, versions, first_ns and last_ns; None where
        unknown."""
        return self._session.info

    @property
    def session_id(self) -> str:
        return self.info["id"] or ""

    @property
    def is_complete(self) -> bool:
        """Whether no data is known to be missing."""
        return self._session.is_complete

    @staticmethod
    def table_names() -> List[str]:
        return _native.table_names()

    def table(self, name: str) -> _native.Table:
        """A table for Arrow readers, without copying, for example polars.from_arrow(session.table("kernels")).

        It has __arrow_c_stream__, so pyarrow, polars and DuckDB accept it; pandas is not needed.
        """
        try:
            return self._session.table(name)
        except KeyError:
            raise KeyError(f"there is no table '{name}'; tables are {', '.join(_native.table_names())}") from None

    def _frame(self, name: str) -> "pandas.DataFrame":
        return frame_of(self._session.table(name))

    @functools.cached_property
    def devices(self) -> "pandas.DataFrame":
        """The GPUs: name, compute capability, multiprocessors, maximum clock and memory bandwidth."""
        return self._frame("devices")

    @functools.cached_property
    def kernels(self) -> "pandas.DataFrame":
        """One row per kernel execution, ordered by start: timing, scope, launch configuration, occupancy."""
        return self._frame("kernels")

    @functools.cached_property
    def memcpy(self) -> "pandas.DataFrame":
        """Copies."""
        return self._frame("memcpy")

    @functools.cached_property
    def memsets(self) -> "pandas.DataFrame":
        return self._frame("memsets")

    @functools.cached_property
    def scopes(self) -> "pandas.DataFrame":
        """Profile samples (PC sampling and SASS counters) by code location, summed over the run."""
        return self._frame("scopes")

    @functools.cached_property
    def scope_samples(self) -> "pandas.DataFrame":
        """PC samples by scope, function and stall reason."""
        return self._frame("scope_samples")

    @functools.cached_property
    def scope_events(self) -> "pandas.DataFrame":
        """One row per entry into a scope: begin, end, thread, parent. scope_row of other tables is the row here."""
        return self._frame("scope_events")

    @functools.cached_property
    def adoptions(self) -> "pandas.DataFrame":
        """Times in which a thread worked for a scope of another thread."""
        return self._frame("adoptions")

    @functools.cached_property
    def device_metrics(self) -> "pandas.DataFrame":
        """Samples of GPU utilization, temperature, power, clocks and more."""
        return self._frame("device_metrics")

    @functools.cached_property
    def host_metrics(self) -> "pandas.DataFrame":
        """Samples of CPU and memory use of the host and the process."""
        return self._frame("host_metrics")

    @functools.cached_property
    def process_metrics(self) -> "pandas.DataFrame":
        """Samples of GPU memory by process."""
        return self._frame("process_metrics")

    @functools.cached_property
    def perf(self) -> "pandas.DataFrame":
        """Hardware counters of scopes and kernels, one row per value."""
        return self._frame("perf")

    @functools.cached_property
    def syncs(self) -> "pandas.DataFrame":
        """Synchronizing calls."""
        return self._frame("syncs")

    @functools.cached_property
    def allocs(self) -> "pandas.DataFrame":
        """Allocations and frees."""
        return self._frame("allocs")

    @functools.cached_property
    def graphs(self) -> "pandas.DataFrame":
        """CUDA graph launches."""
        return self._frame("graphs")

    @functools.cached_property
    def pm_samples(self) -> "pandas.DataFrame":
        """Hardware counters over time, one row per value."""
        return self._frame("pm_samples")

    @functools.cached_property
    def launches(self) -> "pandas.DataFrame":
        """Distinct launch configurations."""
        return self._frame("launches")

    @functools.cached_property
    def untimed_launches(self) -> "pandas.DataFrame":
        """Kernels launched while tracing was paused for counters: their GPU time is unknown."""
        return self._frame("untimed_launches")

    @functools.cached_property
    def losses(self) -> "pandas.DataFrame":
        """Data that was not recorded, and why."""
        return self._frame("losses")

    @functools.cached_property
    def capabilities(self) -> "pandas.DataFrame":
        """The capabilities that were requested, and whether they were available."""
        return self._frame("capabilities")

    @functools.cached_property
    def work_by_kind(self) -> "pandas.DataFrame":
        """GPU time of kernels by what they compute, most time first: kind, total_ns, share, count, kernels."""
        import pandas

        return pandas.DataFrame(self.analysis["work_by_kind"],
                                columns=["kind", "total_ns", "share", "count", "kernels"])

    @functools.cached_property
    def steps(self) -> "pandas.DataFrame":
        """The steps that `analysis["steps"]` describes, at most 1,000: step, begin_ns, duration_ns, kernels, is_warmup.

        Empty if none were found; `analysis["steps"]["none_because"]` is the reason.
        """
        import pandas

        summary = self.analysis["steps"]
        frame = pandas.DataFrame(summary.get("list", []), columns=["step", "begin_ns", "duration_ns", "kernels"],
                                 dtype="int64")
        return frame.assign(is_warmup=frame.step <= summary.get("warmup", 0))

    @functools.cached_property
    def operators(self) -> "pandas.DataFrame":
        """GPU time of kernels by operator, most time first: name, total_ns, forward_ns, backward_ns, optimizer_ns, share,
        count. Each kernel counts for its innermost operator."""
        import pandas

        return pandas.DataFrame(self.analysis["operators"], columns=[
            "name", "total_ns", "forward_ns", "backward_ns", "optimizer_ns", "share", "count"])

    def report_text(self, *sections: str, top_n: int = 10, is_wide: bool = False) -> str:
        """The text report, or the given sections of it."""
        _check_top(top_n)
        bits = 0
        for section in sections:
            bits |= _SECTIONS[section]
        return self._session.report_text(top=top_n, is_wide=is_wide, sections=bits)

    def report_html(self, *, top_n: int = 10) -> str:
        """The report with a timeline as one HTML page that loads nothing."""
        _check_top(top_n)
        return self._session.report_html(top=top_n)

    def _print(self, missing: str, *sections: str, **options: Any) -> None:
        print(self.report_text(*sections, **options).strip("\n") or missing)

    def _missing(self, what: str, advice: str, *engines: str) -> str:
        """The message for missing data; a session recorded with one of the engines gets no advice to use it."""
        engine = self.info["engine"]
        return f"no {what}: engine {engine} ran and recorded none" if engine in engines else f"no {what}: {advice}"

    def print_summary(self) -> None:
        """A summary: what ran, whether the data is complete, where the time went, and what to do about it."""
        self._print("nothing was recorded", "header", "time", "insights", "losses")

    def inspect_scopes(self) -> None:
        """Time and GPU time of each scope, as a tree, and the kernels inside of each."""
        self._print("no scopes were recorded", "scopes", "scope_kernels", is_wide=True)

    def inspect_steps(self) -> None:
        """The steps, in the whole run and in the steady state, and why the slowest one took longer."""
        self._print("no kernels were recorded", "steps")

    def inspect_hotspots(self, top_n: int = 5) -> None:
        """The kernels with the most GPU time."""
        self._print("no kernels were recorded", "kernels", top_n=top_n)

    def inspect_stalls(self) -> None:
        """Why warps waited, by PC sampling."""
        self._print(self._missing("stall samples", "record with ProfilingEngine.PcSampling or Deep",
                                  "PcSampling", "Deep"), "stalls")

    def inspect_profile_samples(self) -> None:
        """The hottest code: PC samples and SASS counters by source line and instruction."""
        self._print(self._missing("profile samples", "record with ProfilingEngine.PcSampling, SassMetrics or Deep",
                                  "PcSampling", "SassMetrics", "Deep"), "code", "counters", "sources")

    def inspect_perf_metrics(self) -> None:
        """Hardware counters of scopes and kernels, and over time."""
        self._print(self._missing("hardware counters", "record with ProfilingEngine.RangeProfiler, or set pm_metrics",
                                  "RangeProfiler"), "metrics", "pm")
