# SPDX-License-Identifier: Apache-2.0
# find_package(gpufl 1): the targets gpufl::gpufl and gpufl::gpufl_static, for C and C++. Where only the static library was
# installed, the first is the second.
include(${CMAKE_CURRENT_LIST_DIR}/gpuflTargets.cmake)
if(NOT TARGET gpufl::gpufl)
  add_library(gpufl::gpufl INTERFACE IMPORTED)
  target_link_libraries(gpufl::gpufl INTERFACE gpufl::gpufl_static)
endif()
foreach(component IN LISTS gpufl_FIND_COMPONENTS) # there are none
  if(gpufl_FIND_REQUIRED_${component})
    set(gpufl_FOUND FALSE)
    set(gpufl_NOT_FOUND_MESSAGE "gpufl has no component ${component}")
  endif()
endforeach()
