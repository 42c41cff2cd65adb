# SPDX-License-Identifier: Apache-2.0
"""python -m gpufl.frameworks: runs an unmodified Python program and records its framework's operators with kernels."""

import argparse
import importlib.util
import os
import runpy
import sys

from .. import ProfilingEngine, _native, init, shutdown
from . import attach


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m gpufl.frameworks", allow_abbrev=False,
        description="Run a Python program and record it, with PyTorch's operators and all NVTX ranges as scopes. "
                    "Under `gpufl trace`, only add the scopes.")
    parser.add_argument("--log-path", help="directory of the session (default: that of gpufl.init)")
    parser.add_argument("program", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    arguments = parser.parse_args()
    if not os.path.isfile(arguments.program):
        parser.error(f"there is no file '{arguments.program}'")
    return arguments


def main() -> None:
    arguments = _arguments()
    is_traced = _native.is_recording()
    if not is_traced:
        init(app_name=os.path.basename(arguments.program), log_path=arguments.log_path,
             profiling_engine=ProfilingEngine.Trace)
    if importlib.util.find_spec("torch"):
        importlib.import_module("torch")
    sys.argv = [arguments.program, *arguments.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(arguments.program))
    try:
        with attach():
            runpy.run_path(arguments.program, run_name="__main__")
    finally:
        if not is_traced:
            shutdown()


if __name__ == "__main__":
    main()
