# SPDX-License-Identifier: Apache-2.0
"""python -m gpufl: the gpufl command."""

import os
import pathlib
import shutil
import sys
from typing import NoReturn, Optional


def find_command() -> Optional[str]:
    """The program that belongs to this package: inside of it, in the build directory around it, or on the path."""
    package = pathlib.Path(__file__).resolve().parent
    for place in (package / "bin" / "gpufl", package.parents[1] / "bin" / "gpufl"):
        if os.access(place, os.X_OK):
            return str(place)
    return shutil.which("gpufl")


def main() -> NoReturn:
    command = find_command()
    if command is None:
        sys.exit("gpufl: the gpufl program is neither beside this package nor on the PATH")
    os.execv(command, ["gpufl", *sys.argv[1:]])


if __name__ == "__main__":
    main()
