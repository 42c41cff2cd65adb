# SPDX-License-Identifier: Apache-2.0
# What the parts need, and which parts are built (options.cmake). Only the libraries of wanted parts are looked for.
find_package(Threads REQUIRED)
# Static, and kept out of our symbol table: the host program may bring its own.
foreach(library ZSTD ZLIB)
  set(names_ZSTD libzstd.a libzstd_static.a)
  set(names_ZLIB libz.a)
  set(header_ZSTD zstd.h)
  set(header_ZLIB zlib.h)
  find_library(GPUFL_${library}_STATIC NAMES ${names_${library}} DOC "static library")
  find_path(GPUFL_${library}_INCLUDE_DIR ${header_${library}})
  if(NOT GPUFL_${library}_STATIC OR NOT GPUFL_${library}_INCLUDE_DIR)
    list(GET names_${library} 0 file)
    message(FATAL_ERROR "gpufl: ${file} or ${header_${library}} was not found. Install the static library and its header "
      "(Debian: libzstd-dev and zlib1g-dev; Fedora: libzstd-static and zlib-static), or set GPUFL_${library}_STATIC and "
      "GPUFL_${library}_INCLUDE_DIR.")
  endif()
endforeach()

if(gpufl_wants_UPLOAD OR gpufl_wants_SERVER)
  find_package(CURL 7.66)
endif()
if(gpufl_wants_SERVER)
  find_library(GPUFL_MICROHTTPD microhttpd)
  find_library(GPUFL_SQLITE3 sqlite3)
endif()
if(gpufl_wants_DEMO_APP)
  find_program(GPUFL_NVCC nvcc PATHS /usr/local/cuda/bin)
endif()
if(gpufl_wants_PYTHON)
  # Any CPython from 3.11 on can use the package; any of their headers builds it.
  find_path(GPUFL_PYTHON_INCLUDE_DIR Python.h PATH_SUFFIXES python3.11 python3.12 python3.13 python3.14)
endif()
if(gpufl_wants_TESTS)
  find_library(GPUFL_CMOCKA cmocka)
  find_path(GPUFL_CUDA_INCLUDE_DIR cupti.h PATHS /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include)
endif()
set(is_not_sanitized ON)
if(GPUFL_SANITIZE)
  set(is_not_sanitized OFF)
endif()

gpufl_report("library" on "")
set(is_native ON)
if(CMAKE_CROSSCOMPILING)
  set(is_native OFF)
endif()

set(tools "GPUFL_TOOLS|the command (GPUFL_TOOLS)")
set(curl "CURL_FOUND|libcurl 7.66 or newer")
gpufl_resolve(TOOLS "command and trace")
gpufl_resolve(UPLOAD "upload" ${curl})
gpufl_resolve(SERVER "server" ${tools} "GPUFL_MICROHTTPD|libmicrohttpd" "GPUFL_SQLITE3|SQLite" ${curl})
gpufl_resolve(PYTHON "Python package" ${tools} "GPUFL_PYTHON_INCLUDE_DIR|Python.h"
  "is_not_sanitized|a build without sanitizers") # an interpreter without them cannot load it
gpufl_resolve(DEMO_APP "demo program" ${tools} "GPUFL_NVCC|nvcc" "is_native|a native build"
  "is_not_sanitized|a build without sanitizers")
gpufl_resolve(TESTS "tests" ${tools} "GPUFL_CMOCKA|cmocka")
gpufl_resolve(INSTALL "installation")
