#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The pictures that test_viz.py compares with; after a wanted change, look at them and run this to keep them.

usage: viz_golden.py   (rewrites golden/*.png beside this file; GPUFL_BUILD_DIR names the build)
"""
import pathlib
import tempfile

import viz_sessions
import gpufl.viz as viz

FOLDER = pathlib.Path(__file__).parent / "golden"
DPI = 60


def pictures(directory):
    """Figures by name, of sessions written below directory."""
    before = viz_sessions.write(directory / "before")
    after = viz_sessions.write(directory / "after", speed=0.6, is_deep=False, seed=8)
    viz.init(before)
    return {"overview": viz.show(), "timeline_dark": viz.timeline(start_s=0.02, end_s=0.05, theme="dark"),
            "hotspots": viz.hotspots(top_n=3), "stalls_dark": viz.stalls(theme="dark"), "roofline": viz.roofline(),
            "compare": viz.compare(before, after)}


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, figure in pictures(pathlib.Path(folder)).items():
            figure.savefig(FOLDER / f"{name}.png", dpi=DPI)
