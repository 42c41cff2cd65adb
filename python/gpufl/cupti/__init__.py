# SPDX-License-Identifier: Apache-2.0
"""CUPTI for Python: the modules of CUPTI Python under the same names, and modules that CUPTI Python lacks.

    from gpufl.cupti import cupti              # function for function: Activity, Callback, and all below
    from gpufl.cupti import profiler_host, pm_sampling, range_profiler, pc_sampling, sass_metrics, checkpoint

A program written for CUPTI Python runs after `from cupti import` is changed to `from gpufl.cupti import`. Importing
loads no NVIDIA library; the first call does, and if the library is missing its error lists where it was searched."""
