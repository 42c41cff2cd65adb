# SPDX-License-Identifier: Apache-2.0
# How gpufl's files are compiled. All of this is of this directory's scope: a project that gpufl is part of keeps its own
# flags, standards and output directories.
if(CMAKE_VERSION VERSION_LESS 3.21) # does not know C17
  add_compile_options($<$<COMPILE_LANGUAGE:C>:-std=c17>)
else()
  set(CMAKE_C_STANDARD 17)
  set(CMAKE_C_STANDARD_REQUIRED ON)
  set(CMAKE_C_EXTENSIONS OFF)
endif()
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(gpufl_watch "")
if(GPUFL_IS_TOP_LEVEL)
  set(gpufl_watch CONFIGURE_DEPENDS) # each build looks for new files
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
  endif()
  add_compile_options(-Wall -Wextra -Wpedantic $<$<BOOL:${GPUFL_WERROR}>:-Werror>
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
else()
  # The other project's warnings, link-time optimization, unity builds and checkers are for its own code.
  add_compile_options(-w -fno-lto)
  set(CMAKE_COMPILE_WARNING_AS_ERROR OFF)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)
  set(CMAKE_UNITY_BUILD OFF)
  foreach(checker CLANG_TIDY CPPCHECK INCLUDE_WHAT_YOU_USE)
    set(CMAKE_C_${checker} "")
  endforeach()
  set(CMAKE_LINK_WHAT_YOU_USE OFF)
endif()
# gpufl finds its libraries beside each other, and in ../lib of its programs.
if(GPUFL_IS_TOP_LEVEL OR gpufl_wants_TOOLS)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
endif()

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-fno-omit-frame-pointer)
# The same bytes from any directory.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=./build)
set(NO_UNDEFINED "")
if(GPUFL_SANITIZE)
  add_compile_options(-fsanitize=${GPUFL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GPUFL_SANITIZE})
elseif(GPUFL_IS_TOP_LEVEL)
  set(NO_UNDEFINED -Wl,-z,defs) # with clang, the sanitizer's symbols come from the program
endif()
