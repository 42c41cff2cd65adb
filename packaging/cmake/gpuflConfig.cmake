# SPDX-License-Identifier: Apache-2.0
# find_package(gpufl 1): the target gpufl::gpufl, for C and C++.
include(${CMAKE_CURRENT_LIST_DIR}/gpuflTargets.cmake)
