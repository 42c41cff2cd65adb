# SPDX-License-Identifier: Apache-2.0
"""Pictures of a recorded session: `python3 examples/session_pictures.py examples/recorded/h200-training`.

Writes overview.png, step.png (a tenth of a second from the middle of the run) and kernels.png.
"""
import sys

import matplotlib

matplotlib.use("Agg")  # pictures go into files: no window is needed
import gpufl.viz as viz  # noqa: E402


def main():
    session = viz.init(sys.argv[1] if len(sys.argv) > 1 else "./logs/*.log")
    viz.timeline().savefig("overview.png", dpi=110)
    middle_s = (session.info["last_ns"] - session.info["first_ns"]) / 2e9
    viz.timeline(start_s=middle_s, end_s=middle_s + 0.1, theme="dark").savefig("step.png", dpi=110)
    viz.hotspots(top_n=15).savefig("kernels.png", dpi=110)


if __name__ == "__main__":
    main()
