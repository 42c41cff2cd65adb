# SPDX-License-Identifier: Apache-2.0
"""The analysis of a session as one HTML page: no scripts, nothing loaded, everything that came from the log escaped."""

import html
import unicodedata
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #777; --bar: #2f7d4f; --wait: #b4690e; --idle: #8886; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: 0; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p.soft, td.soft { color: var(--soft); } .bad { color: #b3261e; font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th, td { white-space: nowrap; } th { font-weight: 600; }
.text { text-align: left; white-space: normal; overflow-wrap: anywhere; width: 60%; }
.text div { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
.text div:hover { -webkit-line-clamp: none; }
.bar { display: flex; height: 1.4rem; border-radius: 4px; overflow: hidden; background: var(--idle); }
.bar span { display: block; } .busy { background: var(--bar); } .wait { background: var(--wait); }
"""
_DASH = "–"


def _text(text: str) -> str:
    """Escaped for HTML; control and bidirectional characters are spelled out."""
    shown = "".join(f"\\u{ord(c):04x}" if unicodedata.category(c).startswith("C") else c for c in text)
    return html.escape(shown)


def quantity(value: Optional[float], units: Sequence[Tuple[float, str]]) -> str:
    """Three significant digits and a unit; a dash for an unknown value."""
    if value is None:
        return _DASH
    size, unit = next(((size, unit) for size, unit in units if abs(value) >= size), units[-1])
    number = value / size
    digits = 0 if abs(number) >= 100 or number == int(number) and size == 1 else 1 if abs(number) >= 10 else 2
    return f"{number:,.{digits}f} {unit}"


def time_text(ns: Optional[float]) -> str:
    return quantity(ns, ((60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")))


def bytes_text(size: Optional[float]) -> str:
    return quantity(size, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")))


def _count(value: Optional[int]) -> str:
    return _DASH if value is None else f"{value:,}"


def lost_text(completeness: Dict[str, Any]) -> str:
    """How many records were lost, as far as known; records that only lack a detail are not counted."""
    lost = completeness["lost"] - completeness.get("lost_details", 0)
    if completeness["lost_is_exact"]:
        return _count(lost)
    return f"at least {_count(lost)}" if lost else "an unknown number"


def _percent(fraction: Optional[float]) -> str:
    return _DASH if fraction is None else f"{100 * fraction:.1f} %"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The last column is text, clamped to two lines unless hovered; cells are escaped here."""
    def row(cells: Sequence[str], tag: str) -> str:
        plain = "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in cells[:-1])
        return f"<tr>{plain}<{tag} class=text><div>{_text(cells[-1])}</div></{tag}></tr>"

    return "<table>" + row(head, "th") + "".join(row(cells, "td") for cells in rows) + "</table>"


def _header(data: Dict[str, Any]) -> str:
    run, whole = data["session"], data["completeness"]
    gpus = ", ".join(gpu["name"] or f"GPU {gpu['device']}" for gpu in data["gpus"])
    facts = [f"pid {run['pid']}" if run["pid"] is not None else "", f"host {run['host']}" if run["host"] else "", gpus,
             f"engine {run['engine']}" if run["engine"] else "", time_text(run["wall_ns"])]
    state = "complete" if whole["is_complete"] else "incomplete: some data is missing"
    lost = f"{lost_text(whole)} lost"
    kind = "soft" if whole["is_complete"] else "bad"
    return (f"<h1>{_text(run['app'] or 'unnamed program')}</h1>"
            f"<p class=soft>{_text(' · '.join(fact for fact in facts if fact))}</p>"
            f"<p class={kind}>{state}: {_count(whole['kernels'])} kernels recorded, {lost}</p>")


_TIME_PARTS = (("busy_ns", "busy", "busy"), ("wait_launch_ns", "waiting for launches", "wait"),
               ("wait_sync_ns", "host waiting in sync", "wait"), ("queued_ns", "queued", "wait"),
               ("no_work_ns", "no work queued", "idle"), ("unknown_ns", "not known", "idle"))


def _time(data: Dict[str, Any], _: int) -> str:
    wall = data["session"]["wall_ns"] or 0
    parts = []
    for gpu in data["time"]:
        shares = [(gpu[key] / wall if wall else 0.0, words, kind) for key, words, kind in _TIME_PARTS if gpu[key]]
        bar = "".join(f'<span class={kind} style="width:{100 * share:.2f}%" title="{words} {_percent(share)}"></span>'
                      for share, words, kind in shares)
        legend = " · ".join(f"{words} {_percent(share)}" for share, words, _ in shares)
        parts.append(f"<p>GPU {gpu['device']}: {legend}</p><div class=bar>{bar}</div>")
    return "".join(parts)


def _kernels(data: Dict[str, Any], top: int) -> str:
    rows = [(time_text(kernel["total_ns"]), _percent(kernel["share"]), _count(kernel["count"]),
             time_text(kernel["mean_ns"]), time_text(kernel["median_ns"]), time_text(kernel["p99_ns"]),
             _occupancy(kernel["launch"]), kernel["name"] or f"kernel {kernel['kernel_id']}, name not recorded")
            for kernel in data["kernels"][:top]]
    more = len(data["kernels"]) - len(rows)
    note = f"<p class=soft>and {_count(more)} more</p>" if more > 0 else ""
    head = ("total", "share", "calls", "mean", "median", "p99", "occupancy", "name")
    return _table(head, rows) + note if rows else ""


def _occupancy(launch: Optional[Dict[str, Any]]) -> str:
    value = launch["occupancy_bp"] if launch else None
    return _DASH if value is None else f"{value / 100:.0f} %"


def _scopes(data: Dict[str, Any], _: int) -> str:
    rows = []
    for scope in data["scopes"]:
        tag = f" [{scope['tag']}]" if scope["tag"] else ""
        name = "\u2003" * scope["depth"] + scope["path"].split(" > ")[-1] + tag
        rows.append((time_text(scope["wall_ns"]), time_text(scope["gpu_ns"]), time_text(scope["gpu_self_ns"]),
                     _count(scope["calls"]), time_text(scope["per_iteration_ns"]), _count(scope["kernels"]), name))
    return _table(("wall", "GPU", "GPU self", "calls", "per iteration", "kernels", "scope"), rows) if rows else ""


def _stalls(data: Dict[str, Any], _: int) -> str:
    stalls = (data.get("deep") or {}).get("stalls") or {}
    total = stalls.get("samples") or 0
    rows = [(_percent(kind["samples"] / total), _count(kind["samples"]),
             kind["name"] + (f": {kind['words']}" if kind["words"] else ""))
            for kind in sorted(stalls.get("kinds", ()), key=lambda kind: -int(kind["samples"])) if kind["samples"]]
    return _table(("share", "samples", "reason"), rows) if total and rows else ""


def _copies(data: Dict[str, Any], _: int) -> str:
    rows = [(bytes_text(copy["bytes"]), time_text(copy["total_ns"]),
             bytes_text(copy["bytes"] * 1e9 / copy["total_ns"]) + "/s" if copy["total_ns"] else _DASH,
             _count(copy["calls"]), " ".join(word for word in (copy["kind"], copy["host_memory"]) if word))
            for copy in data["copies"]]
    return _table(("bytes", "time", "throughput", "calls", "kind"), rows) if rows else ""


def _syncs(data: Dict[str, Any], _: int) -> str:
    rows = [(time_text(sync["total_ns"]), _count(sync["calls"]), time_text(sync["max_ns"]), sync["type"] or "other")
            for sync in data["syncs"]]
    return _table(("total", "calls", "max", "call"), rows) if rows else ""


_SYSTEM_METRICS = (("gpu_util", "%", 1), ("power_mw", "W", 1000), ("temp_c", "°C", 1), ("used_mib", "MiB", 1))


def _system(data: Dict[str, Any], _: int) -> str:
    rows = []
    for gpu in data["system"]:
        for key, unit, scale in _SYSTEM_METRICS:
            metric = gpu.get(key)
            if metric:
                rows.append((f"{metric['mean'] / scale:,.0f} {unit}", f"{metric['max'] / scale:,.0f} {unit}",
                             f"GPU {gpu['device']} {key.split('_')[0]}"))
    return _table(("mean", "max", "metric"), rows) if rows else ""


def _insights(data: Dict[str, Any], _: int) -> str:
    items = "".join(f"<li>{_text(insight['text'])}</li>" for insight in data["insights"])
    return f"<ol>{items}</ol>" if items else ""


def _lost(loss: Dict[str, Any]) -> str:
    if loss["count_is_exact"]:
        return _count(loss["count"])
    return f"at least {_count(loss['count'])}" if loss["count"] else "not known"


def _losses(data: Dict[str, Any], _: int) -> str:
    words = ("reason", "record_type", "message", "cause")
    rows = [(_lost(loss), " · ".join(str(loss[key]) for key in words if loss.get(key)))
            for loss in data["completeness"]["losses"]]
    if rows:
        return _table(("records", "reason"), rows)
    is_exact = data["completeness"]["lost_is_exact"]
    return f"<p class=soft>{'nothing lost' if is_exact else 'the number of missing records is unknown'}</p>"


_SECTIONS: Tuple[Tuple[str, Callable[[Dict[str, Any], int], str]], ...] = (
    ("Insights", _insights), ("Where the time went", _time), ("Kernels", _kernels), ("Scopes", _scopes),
    ("Stalls", _stalls), ("Copies", _copies), ("Synchronization", _syncs), ("System", _system), ("Losses", _losses))


def page_of(data: Dict[str, Any], top_n: int) -> str:
    """The page; sections without data say so."""
    title = _text(data["session"]["app"] or "gpufl report")
    body = [_header(data)]
    for name, section in _SECTIONS:
        body.append(f"<h2>{name}</h2>" + (section(data, top_n) or "<p class=soft>not recorded</p>"))
    return (f'<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">'
            f"<title>{title}</title><style>{_STYLE}</style>\n" + "\n".join(body) + "\n</html>\n")
