# SPDX-License-Identifier: Apache-2.0
# Protection against memory errors in every program and library; tools/check_hardening.py finds what lacks it.
# Flags that this compiler does not know are left out and named in the summary.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
if(GPUFL_IS_TOP_LEVEL) # how another project's programs are linked is its own decision
  include(CheckPIESupported)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  check_pie_supported(LANGUAGES ${languages})
endif()

set(hardening_flags -fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND hardening_flags -fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  list(APPEND hardening_flags -mbranch-protection=standard)
endif()
foreach(flag IN LISTS hardening_flags)
  string(MAKE_C_IDENTIFIER "GPUFL_HAS${flag}" has)
  check_c_compiler_flag(${flag} ${has})
  if(${has})
    add_compile_options(${flag})
  else()
    list(APPEND GPUFL_HARDENING_MISSING ${flag})
  endif()
endforeach()

# Sanitizers have their own checks of the same calls, and without optimization there are none.
set(CMAKE_REQUIRED_FLAGS "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles("#include <string.h>
#if __USE_FORTIFY_LEVEL != 3
#error
#endif
int main(void) { return 0; }" GPUFL_HAS_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT GPUFL_SANITIZE)
  set(fortify -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$<IF:$<BOOL:${GPUFL_HAS_FORTIFY_3}>,3,2>)
  add_compile_options("$<$<NOT:$<CONFIG:Debug>>:${fortify}>")
endif()

add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
if(GPUFL_HARDENING_MISSING)
  message(STATUS "hardening: this compiler does not know ${GPUFL_HARDENING_MISSING}")
endif()
