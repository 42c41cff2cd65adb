# SPDX-License-Identifier: Apache-2.0
"""Compiles the examples for a recording, in a folder whose name means nothing: cubins carry the path they were compiled
at, sessions the command that was run."""
import os
import pathlib
import shutil
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ARCH = os.environ.get("CUDA_ARCH", "sm_90")
SOURCES = pathlib.Path(tempfile.gettempdir()) / "gpufl-examples"
CUDA = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))


def copy_source(path):
    """Where a copy of the file, or of the folder with its headers, is."""
    copy = SOURCES / path.name
    if path.is_dir():
        shutil.copytree(path, copy, dirs_exist_ok=True)
    else:
        SOURCES.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return copy


def compile_cuda(table, source, program, *options):
    """The program, also in that folder; RuntimeError with the compiler's words when it cannot be built."""
    built = SOURCES / "bin" / program
    built.parent.mkdir(parents=True, exist_ok=True)
    lib = table.build / "lib"
    result = table.run(["nvcc", "-O3", "-std=c++17", "-lineinfo", f"-arch={ARCH}", f"-I{ROOT / 'include'}", source,
                        "-o", built, f"-L{lib}", "-lgpufl", "-Xlinker", f"-rpath,{lib}", *options], timeout=100)
    if result.returncode:
        raise RuntimeError(f"{program}: nvcc: {(result.stdout + result.stderr)[-600:]}")
    return built


def build_gemm(table):
    """examples/gemm, with cuBLAS to compare with where it is there and works; (program, whether it has cuBLAS)."""
    source = copy_source(ROOT / "examples/gemm") / "gemm.cu"
    try:
        built = compile_cuda(table, source, "gemm", "-DGEMM_CUBLAS", "-lcublas", "-Xlinker",
                             f"-rpath,{CUDA / 'lib64'}")
        tried = table.run([built, "--size", "256", "--repeat", "1", "cublas_single"], {"GPUFL_DISABLED": "1"}, 60)
        if tried.returncode == 0:
            return built, True
        print(f"     with cuBLAS: {(tried.stdout + tried.stderr)[-300:]}", flush=True)
    except RuntimeError as problem:
        print(f"     with cuBLAS: {problem}", flush=True)
    return compile_cuda(table, source, "gemm"), False


def build_pipeline(table):
    return compile_cuda(table, copy_source(ROOT / "examples/pipeline.cu"), "pipeline")


def build_sass_kernels(table):
    return compile_cuda(table, copy_source(HERE / "sass_kernels.cu"), "sass_kernels")
