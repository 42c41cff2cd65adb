# SPDX-License-Identifier: Apache-2.0
"""python -m gpufl: the gpufl command."""

import os
import pathlib
import shutil
import sys
from typing import NoReturn, Optional


def find_command() -> Optional[str]:
    """The gpufl program: in this package, in the build directory that contains the package, or on the PATH."""
    package = pathlib.Path(__file__).resolve().parent
    for place in (package / "bin" / "gpufl", package.parents[1] / "bin" / "gpufl"):
        if os.access(place, os.X_OK):
            return str(place)
    return shutil.which("gpufl")


def main() -> NoReturn:
    command = find_command()
    if command is None:
        sys.exit("gpufl: the gpufl program is neither in this package nor on the PATH")
    os.execv(command, ["gpufl", *sys.argv[1:]])


if __name__ == "__main__":
    main()
