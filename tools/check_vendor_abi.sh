#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compares gpufl's declarations of vendor interfaces with vendors' headers.
#   tools/check_vendor_abi.sh DIR...
# Each DIR is searched for headers of CUPTI (cupti.h with cuda.h), NVML (nvml.h), NVTX (nvtx3/nvToolsExt.h), rocprofiler-sdk
# (rocprofiler-sdk/rocprofiler.h) and the amdgpu kernel driver (kgd_pp_interface.h). One line is printed for each that is found:
# "same", or what differs. "not there" lists what these headers do not declare, as older releases do not. rocprofiler's headers
# need those of HSA (hsa/hsa.h, hsakmt/hsakmttypes.h): name their directory, too; those of HIP are replaced by stubs.
# Exit status 1: something differs. Needs gcc, g++ and cmocka's header. Nothing is written outside a temporary directory.
set -euo pipefail
shopt -s extglob
[[ $# -gt 0 ]] || { sed -n '4,10s/^# \{0,1\}//p' "$0"; exit 2; }
root=$(dirname "$(realpath "$0")")/..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
differences=0 found=0

# The directory that FILE is relative to, in DIR or one of the others; "" when nobody has it.
base_of() {
  local file=$1 path
  shift
  path=$(find -L "$@" -path "*/$file" -print -quit 2>/dev/null)
  [[ -z $path ]] || echo "${path%/"$file"}"
}

# report NAME VERSION FILE INCLUDES...: compiles FILE with the includes, and prints a line
report() {
  local name=$1 version=$2 file=$3 compiler=(gcc -std=c17) messages absent differing
  shift 3
  [[ $file != *.cpp ]] || compiler=(g++ -std=c++17)
  compiler+=(-w -D_GNU_SOURCE -I"$root/src" -I"$root/include" "$@" "$root/$file")
  messages=$("${compiler[@]}" -fsyntax-only 2>&1) || true
  # The files of tests/unit compare nothing where they do not see the headers.
  if [[ $file = tests/unit/* && $("${compiler[@]}" -E -dM 2>/dev/null) != *"#define HAS_"@(VENDOR|NVML)* ]]; then
    messages="error: the headers are not usable: $(head -1 <<<"$messages")"
  fi
  messages=$(grep -E 'error' <<<"$messages" | sed 's/; did you mean.*//' || true)
  differing=$(sed -nE 's/.*static assertion failed: "?([^"]*)"?.*/\1/p' <<<"$messages" | sort -u)
  absent=$(sed -nE "s/.*(has no member named|undeclared|not declared|unknown type name).*/&/p" <<<"$messages" |
    grep -oE "[‘'][A-Za-z_0-9]+[’']" | tr -d "‘’'" | grep -vE '^(struct|CUpti_.*Params|gpu_metrics.*)$' | sort -u || true)
  found=$((found + 1))
  if [[ -n $differing ]]; then
    differences=$((differences + 1))
    echo "$name $version: $(basename "$file"): DIFFERS: $(tr '\n' ' ' <<<"$differing")${absent:+; not there: $(tr '\n' ' ' <<<"$absent")}"
  elif grep -q 'fatal error' <<<"$messages" || [[ -n $messages && -z $absent ]]; then
    differences=$((differences + 1))
    echo "$name $version: $(basename "$file"): cannot be compared: $(head -1 <<<"$messages")"
  else
    echo "$name $version: $(basename "$file"): same${absent:+; not there: $(tr '\n' ' ' <<<"$absent")}"
  fi
}

# Numbers of CUDA's calls, of which older headers lack some: every one that is there must be ours.
calls() {
  local version=$1 include=$2 wrong=0 count=0 domain name id theirs
  while read -r domain name id; do
    theirs=$(sed -nE "s/^ *CUPTI_${domain}_TRACE_CBID_${name} *= *([0-9]+).*/\1/p" "$include"/cupti_{runtime,driver}_cbid.h | head -1)
    [[ -n $theirs ]] || continue
    count=$((count + 1))
    [[ $theirs = "$id" ]] || { echo "CUPTI $version: $name is $theirs, and not $id"; wrong=1; }
  done < <(sed -nE 's/^ *X\((RUNTIME|DRIVER), ([A-Za-z_0-9]+), ([0-9]+), .*/\1 \2 \3/p' "$root/src/driver/cupti_calls.h")
  differences=$((differences + wrong))
  echo "CUPTI $version: cupti_calls.h: $count numbers of calls: $([[ $wrong = 0 ]] && echo same || echo DIFFERS)"
}

check_cupti() {
  local include cuda version test
  include=$(base_of cupti_version.h "$1")
  [[ -n $include ]] || return 0
  cuda=$(base_of cuda.h "$@")
  [[ -n $cuda ]] || { echo "CUPTI in $include: cuda.h is in none of the directories"; return 0; }
  version=$(sed -nE 's/^#define CUPTI_API_VERSION +([0-9]+).*/\1/p' "$include/cupti_version.h")
  for test in driver_abi.c pc_sampling_abi.c pm_sampling_abi.c range_profiler_abi.c sass_metrics_abi.c profiler_host_abi.cpp checkpoint_abi.cpp; do
    report CUPTI "$version" "tests/unit/test_$test" -isystem "$include" -isystem "$cuda"
  done
  calls "$version" "$include"
}

check_nvml() {
  local include version
  include=$(base_of nvml.h "$1")
  [[ -n $include ]] || return 0
  version=$(sed -nE 's/^#define NVML_API_VERSION +([0-9]+).*/\1/p' "$include/nvml.h" | head -1)
  mkdir -p "$work/nvml"
  cp "$include/nvml.h" "$work/nvml/" # alone: CUPTI's headers beside it are compared above
  report "NVML (${include##*/})" "${version:-?}" tests/unit/test_driver_abi.c -isystem "$work/nvml"
}

check_nvtx() {
  local include
  include=$(base_of nvtx3/nvToolsExt.h "$1")
  [[ -n $include ]] || return 0
  report "NVTX (${1##*/})" "$(sed -nE 's/^#define NVTX_VERSION +([0-9]+).*/\1/p' "$include/nvtx3/nvToolsExt.h")" tests/abi/nvtx.c -isystem "$include"
}

# HIP's headers, and those of libraries that need them, are replaced: none of their types is part of what is compared.
rocprofiler_stubs() {
  local stubs=$1 include=$2 name header version
  for name in hip rccl ompt rocdecode rocjpeg; do
    mkdir -p "$stubs/rocprofiler-sdk/$name"
    cat >"$stubs/rocprofiler-sdk/$name/api_args.h" <<END
#pragma once
#include <stdint.h>
typedef union { void *any[8]; } rocprofiler_${name}_api_args_t, rocprofiler_${name}_args_t;
typedef union { uint64_t any; } rocprofiler_${name}_api_retval_t;
END
    echo "#include <rocprofiler-sdk/$name/api_args.h>" >"$stubs/rocprofiler-sdk/$name.h"
    [[ $name = hip || ! -f $include/rocprofiler-sdk/$name/api_id.h ]] ||
      echo "#include <rocprofiler-sdk/$name/api_id.h>" >>"$stubs/rocprofiler-sdk/$name.h"
  done
  touch "$stubs/rocprofiler-sdk/rocdecode/api_trace.h" "$stubs/rocprofiler-sdk/rocjpeg/api_trace.h"
  version=$(cat "$include/VERSION" "$include/../VERSION" "$include/../../VERSION" 2>/dev/null | head -1 || true)
  IFS=. read -r major minor patch <<<"${version:-0.0.0}"
  for header in rocprofiler-sdk/version rocprofiler-sdk/ext_version rocprofiler-sdk-roctx/version; do # a checkout has templates
    [[ ! -f $include/$header.h && -f $include/$header.h.in ]] || continue
    mkdir -p "$stubs/$(dirname "$header")"
    sed "s/@PROJECT_VERSION_MAJOR@/$major/g; s/@PROJECT_VERSION_MINOR@/$minor/g; s/@PROJECT_VERSION_PATCH@/$patch/g
         s/@[A-Za-z_]*@/0/g; /#cmakedefine/d" "$include/$header.h.in" >"$stubs/$header.h"
  done
}

check_rocprofiler() {
  local include hsa hsakmt stubs=$work/rocprofiler version
  include=$(base_of rocprofiler-sdk/rocprofiler.h "$1")
  [[ -n $include ]] || return 0
  hsa=$(base_of hsa/hsa.h "$@") hsakmt=$(base_of hsakmt/hsakmttypes.h "$@")
  rm -rf "$stubs"
  rocprofiler_stubs "$stubs" "$include"
  version=$(cat "$stubs/rocprofiler-sdk/version.h" "$include/rocprofiler-sdk/version.h" 2>/dev/null |
    sed -nE 's/^#define ROCPROFILER_VERSION_M(AJOR|INOR) +([0-9]+).*/\2/p' | head -2 | paste -sd. || true)
  report rocprofiler-sdk "$version" tests/unit/test_rocprofiler_abi.c -isystem "$stubs" -isystem "$include" \
    ${hsa:+-isystem "$hsa"} ${hsakmt:+-isystem "$hsakmt"}
}

check_gpu_metrics() {
  local include header versions defines=() version
  include=$(base_of kgd_pp_interface.h "$1")
  [[ -n $include ]] || return 0
  header=$include/kgd_pp_interface.h
  mkdir -p "$work/metrics"
  { printf '#include <stddef.h>\n#include <stdint.h>\ntypedef uint64_t u64;\n'
    grep -E '^#define (NUM|MAX)_[A-Z_]+ [0-9]+' "$header"
    sed -n '/^enum amdgpu_metrics_attr_/,/^};/p; /^#define AMDGPU_METRICS_/,/[^\\]$/p' "$header"
    sed -n '/^struct metrics_table_header {/,/^};/p; /^struct amdgpu_xcp_metrics/,/^};/p' "$header"
    sed -n '/^struct gpu_metrics_attr {/,/^};/p; /^struct gpu_metrics_v[0-9_]* {/,/^};/p' "$header"; } >"$work/metrics/gpu_metrics_tables.h"
  versions=$(sed -nE 's/^struct gpu_metrics_v([0-9]+_[0-9]+) \{.*/\1/p' "$header")
  for version in $versions; do defines+=("-DHAS_$version"); done
  report gpu_metrics "$(tr '_\n' '. ' <<<"$versions" | sed 's/ $//')" tests/abi/gpu_metrics.c -isystem "$work/metrics" "${defines[@]}"
}

for directory in "$@"; do
  others=("$directory" "$@")
  check_cupti "${others[@]}"
  check_nvml "$directory"
  check_nvtx "$directory"
  check_rocprofiler "${others[@]}"
  check_gpu_metrics "$directory"
done
[[ $found -gt 0 ]] || { echo "no vendor headers were found" >&2; exit 2; }
exit $((differences > 0))
