# SPDX-License-Identifier: Apache-2.0
"""Imports NumPy, or explains how to install it."""
try:
    import numpy
    import numpy.typing
except ImportError as error:
    raise ImportError("this part of gpufl.cupti needs NumPy: install it (apt-get install python3-numpy, or pip install "
                      "numpy)") from error

__all__ = ["numpy"]
