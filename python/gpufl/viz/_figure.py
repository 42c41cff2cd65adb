# SPDX-License-Identifier: Apache-2.0
"""Figures that notebooks show, their layout in inches, and the formatting of numbers."""

import io
import re
from typing import Any, Dict, List, Optional

try:
    import matplotlib
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError(f"gpufl.viz needs matplotlib, and {error.name or 'it'} cannot be imported: install it (apt-get "
                      "install python3-matplotlib, or pip install matplotlib)") from error

from ._palette import Palette

WIDTH_IN = 13.0
LEFT_IN, RIGHT_IN = 1.75, 1.15  # room for the names of rows and for the figures at their ends
SMALL, NORMAL, LARGE = 7.5, 8.5, 12.0


def _lost_text(completeness: Dict[str, Any]) -> str:
    """How many records were lost, as far as known; records that only lack a detail are not counted."""
    lost = completeness["lost"] - completeness.get("lost_details", 0)
    if completeness["lost_is_exact"]:
        return f"{lost:,}"
    return f"at least {lost:,}" if lost else "an unknown number"


class Picture(Figure):  # type: ignore[misc]
    """A matplotlib figure that shows itself at the end of a notebook's cell."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=110)
        return out.getvalue()


class Paper:
    """Lays out a figure from top to bottom: each axes takes its height in inches from the remaining space."""

    def __init__(self, palette: Palette, height_in: float, figure: Optional[Picture] = None):
        self.palette, self.height_in, self.top_in = palette, height_in, 0.0
        self.figure: Picture = figure if figure is not None else Picture()
        self.figure.set_size_inches(WIDTH_IN, height_in)
        self.figure.set_facecolor(palette.ground)

    def skip(self, height_in: float) -> None:
        self.top_in += height_in

    def axes(self, height_in: float, left_in: float = LEFT_IN, right_in: float = RIGHT_IN, **more: Any) -> Any:
        """Axes at the current position, which stays where it is."""
        box = (left_in / WIDTH_IN, 1 - (self.top_in + height_in) / self.height_in,
               (WIDTH_IN - left_in - right_in) / WIDTH_IN, height_in / self.height_in)
        axes = self.figure.add_axes(box, **more)
        axes.set_facecolor(self.palette.panel)
        for side in axes.spines.values():
            side.set_color(self.palette.line)
        axes.tick_params(colors=self.palette.dim, labelsize=SMALL, length=3, width=0.6)
        return axes

    def text(self, text: str, size: float = NORMAL, colour: Any = None, left_in: float = 0.25, **more: Any) -> None:
        self.figure.text(left_in / WIDTH_IN, 1 - self.top_in / self.height_in, plain(text), fontsize=size, va="top",
                         color=colour or self.palette.text, **more)


def styled() -> Any:
    """A context in which figures do not depend on the program's matplotlib settings, which are kept."""
    return matplotlib.rc_context({
        **matplotlib.rcParamsDefault, "backend": matplotlib.rcParams["backend"],
        "interactive": matplotlib.rcParams["interactive"], "font.family": "DejaVu Sans", "axes.linewidth": 0.6,
        "hatch.linewidth": 0.5})


def plain(text: str) -> str:
    """Text from logs, escaped so that matplotlib does not parse it as a formula or fail."""
    return re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text).replace("$", r"\$")


def cut(text: str, most: int) -> str:
    """Shortened in the middle, because names differ at their ends."""
    if len(text) <= most:
        return text
    head = max(1, (most - 1) * 2 // 3)
    tail = most - 1 - head
    return text[:head] + "…" + (text[-tail:] if tail > 0 else "")


def kernel_words(name: str) -> str:
    """A kernel's name without return type, namespaces and parameters."""
    text = re.sub(r"^void ", "", name)
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth <= 0 and index and not text.startswith("(anonymous", index):
            text = text[:index]
            break
    # The common prefix of PyTorch's elementwise kernels hides the part that distinguishes them.
    text = re.sub(r"(::operator\(\)\([^()]*\)( const)?)?::\{lambda\([^{}]*\)#\d+\}", "", text)
    text = re.sub(r", (std::)?array<char\*, \d+ul>", "", text)
    return re.sub(r"(\(anonymous namespace\)|[A-Za-z_]\w*)::", "", text).replace("> >", ">>").replace(" >", ">") or name


def duration_text(duration_ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(duration_ns) >= size:
            return f"{duration_ns / size:.3g} {unit}" if abs(duration_ns) < 999.5 * size else \
                f"{duration_ns / size:,.0f} {unit}"
    return f"{duration_ns:.0f} ns"


def count_text(count: float) -> str:
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(count) >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.3g} "


def header(paper: Paper, session: Any) -> None:
    """What ran, and whether the data is complete."""
    info, analysis = session.info, session.analysis
    gpus: List[str] = [gpu["name"] for gpu in analysis["gpus"] if gpu["name"]]
    gpu = f"{len(gpus)} × {gpus[0]}" if len(set(gpus)) == 1 and len(gpus) > 1 else ", ".join(dict.fromkeys(gpus))
    wall = analysis["session"]["wall_ns"]
    parts = [cut(info["app"] or "a session without a name", 60), gpu, info["host"],
             info["engine"] and f"engine {info['engine']}", wall and duration_text(wall)]
    paper.skip(0.22)
    paper.text(" · ".join(part for part in parts if part), LARGE, weight="bold")
    paper.skip(0.26)
    completeness = analysis["completeness"]
    lost = _lost_text(completeness)
    state = "complete" if completeness["is_complete"] else "incomplete"
    if not completeness["has_shutdown"]:
        state += " (still running)" if completeness["is_live"] else " (the program did not end properly)"
    paper.text(f"{state}: {completeness['kernels']:,} kernels recorded, {lost} lost", NORMAL,
               paper.palette.dim if completeness["is_complete"] else paper.palette.bad)
    paper.skip(0.34)
