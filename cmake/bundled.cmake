# SPDX-License-Identifier: Apache-2.0
# Portable builds: programs and libraries contain what tools/bundled_libraries.sh made, and need nothing but the C library;
# its toolchain file finds it. GPUFL_STATIC: one program without a loader, which contains upload and server, too.
option(GPUFL_BUNDLED "contain SQLite, libcurl, libmicrohttpd and the demangler instead of loading the system's" OFF)
option(GPUFL_STATIC "build gpufl as one static program: target gpufl_cli alone (needs GPUFL_BUNDLED)" OFF)
if(GPUFL_BUNDLED)
  add_compile_definitions(GPUFL_BUNDLED)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libsupc++.a OUTPUT_VARIABLE demangler
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(GPUFL_DEMANGLER_STATIC ${demangler} CACHE FILEPATH "the archive with __cxa_demangle")
endif()
if(GPUFL_STATIC)
  add_compile_definitions(GPUFL_STATIC)
  add_link_options(-Wl,-z,stack-size=8388608) # of threads, too: musl gives them 128 KiB otherwise
endif()
