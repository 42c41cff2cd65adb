# SPDX-License-Identifier: Apache-2.0
"""CUPTI for Python: the modules of CUPTI Python by their names, and what it does not have.

    from gpufl.cupti import cupti              # function for function: Activity, Callback, and all below
    from gpufl.cupti import profiler_host, pm_sampling, range_profiler, pc_sampling, sass_metrics, checkpoint

A program written for CUPTI Python runs when `from cupti import` becomes `from gpufl.cupti import`. Importing loads no
library of NVIDIA's: the first call does, and says where it looked when there is none."""
