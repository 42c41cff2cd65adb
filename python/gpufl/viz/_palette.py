# SPDX-License-Identifier: Apache-2.0
"""The colour scheme, which is the same as in the dashboard (web/src/colour.ts).

Kernels: the hue is a hash of the name; lightness and chroma are equal, so that no kernel stands out and a kernel has
the same colour in every plot.
"""

import math
import re
from typing import Tuple

Rgb = Tuple[float, float, float]

_COPY_HUES = {"h2d": 200, "d2h": 320, "d2d": 160, "p2p": 160}
_FAMILY_HUES = {"memory": 250, "execution": 60, "synchronization": 310, "control": 150, "issued": 250, "other": 20}
# Matched against words in CUPTI's names, so that reasons of newer GPUs are assigned to a family too.
_FAMILIES = (
    (re.compile(r"selected|issued|^active$"), "issued"),
    (re.compile(r"barrier|membar|sync|sleep"), "synchronization"),
    (re.compile(r"scoreboard|lg_?throttle|drain|tex|memory|imc|constant|mio_?memory|lsu"), "memory"),
    (re.compile(r"math|pipe|mio|dispatch|wait|exec|gmma|tensor"), "execution"),
    (re.compile(r"no_?inst|branch|fetch|control|misc"), "control"),
)


def name_hash(text: str) -> int:
    """FNV-1a over UTF-16 units, the last bytes mixed into the rest."""
    value = 0x811C9DC5
    units = text.encode("utf-16-le", "surrogatepass")
    for low, high in zip(units[::2], units[1::2]):
        value = (value ^ (low | high << 8)) * 0x01000193 & 0xFFFFFFFF
    value = (value ^ value >> 15) * 0x2C1B3C6D & 0xFFFFFFFF
    return value ^ value >> 12


def rgb(lightness: float, chroma: float, hue: float) -> Rgb:
    """OKLCH as sRGB, 0 to 1 each; out of gamut is clipped."""
    angle = math.radians(hue)
    a, b = chroma * math.cos(angle), chroma * math.sin(angle)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3

    def gamma(value: float) -> float:
        value = min(1.0, max(0.0, value))
        return 12.92 * value if value <= 0.0031308 else 1.055 * math.pow(value, 1 / 2.4) - 0.055

    return (gamma(4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short),
            gamma(-1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short),
            gamma(-0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * short))


def blend(colour: Rgb, ground: Rgb, share: float) -> Rgb:
    """The colour with opacity `share` on the background."""
    return tuple(share * a + (1 - share) * b for a, b in zip(colour, ground))  # type: ignore[return-value]


def stall_family(reason: str) -> str:
    word = re.sub(r"^stall_?", "", reason.lower()).replace(" ", "_")
    return next((family for pattern, family in _FAMILIES if pattern.search(word)), "other")


class Palette:
    """The colours of one theme: "light" or "dark"."""

    def __init__(self, theme: str):
        if theme not in ("light", "dark"):
            raise ValueError(f"theme must be 'light' or 'dark', not {theme!r}")
        self.is_dark = theme == "dark"
        grey = (0.17, 0.20, 0.28, 0.92, 0.68) if self.is_dark else (0.985, 1.0, 0.90, 0.22, 0.48)
        self.ground, self.panel, self.line, self.text, self.dim = (rgb(level, 0.005, 250) for level in grey)
        self._loud = 0.72 if self.is_dark else 0.62
        self.accent = rgb(self._loud, 0.14, 250)
        self.bad = rgb(0.68 if self.is_dark else 0.55, 0.19, 27)
        self.wait = rgb(0.56 if self.is_dark else 0.62, 0.01, 250)
        self.stripe = rgb(0.215 if self.is_dark else 0.955, 0.005, 250)

    def kernel(self, name: str) -> Rgb:
        return rgb(self._loud, 0.11, name_hash(name) % 360)

    def scope(self, name: str) -> Rgb:
        return rgb(self._loud, 0.055, name_hash(name) % 360)

    def copy(self, kind: str) -> Rgb:
        """kind: the log's word, "H2D", "DtoH" and the like."""
        hue = _COPY_HUES.get(re.sub(r"[^a-z0-9]", "", kind.lower().replace("to", "2", 1)))
        return rgb(0.68 if self.is_dark else 0.55, 0.01, 250) if hue is None else rgb(self._loud, 0.11, hue)

    def stall(self, reason: str) -> Rgb:
        """Reasons of a family differ in lightness, which colour-blind readers can see."""
        family = stall_family(reason)
        level = (0.62 if self.is_dark else 0.5) + name_hash(reason) % 5 * 0.045
        return rgb(level, 0.01 if family in ("issued", "other") else 0.12, _FAMILY_HUES[family])
