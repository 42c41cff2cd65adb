# SPDX-License-Identifier: Apache-2.0
# Part of cmake --install: the bill of materials, and the licences of third-party code.
find_program(PYTHON3 NAMES python3 PATHS /usr/bin)
if(NOT PYTHON3)
  message(STATUS "no bill of materials: there is no python3")
  return()
endif()
execute_process(COMMAND ${PYTHON3} -B ${source_dir}/tools/sbom.py ${build_dir} ${output_dir}/sbom
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "tools/sbom.py: ${status}")
endif()
file(INSTALL ${output_dir}/sbom/gpufl.cdx.json ${output_dir}/sbom/third-party-licenses.txt
  DESTINATION ${CMAKE_INSTALL_PREFIX}/${datadir}/doc/gpufl)
