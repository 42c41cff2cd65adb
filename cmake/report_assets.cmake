# SPDX-License-Identifier: Apache-2.0
# The style and script of the HTML report (web/report) as strings inside of the analysis library. Needs nothing but CMake:
# the files are part of the page as they are.
set(report_assets ${PROJECT_BINARY_DIR}/report_assets.c)
add_custom_command(OUTPUT ${report_assets}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR}/web/report -DOUTPUT=${report_assets}
    -P ${PROJECT_SOURCE_DIR}/cmake/embed_report_assets.cmake
  DEPENDS ${PROJECT_SOURCE_DIR}/web/report/report.css ${PROJECT_SOURCE_DIR}/web/report/report.js
    ${PROJECT_SOURCE_DIR}/cmake/embed_report_assets.cmake
  COMMENT "Embedding the HTML report's style and script" VERBATIM)
target_sources(gpufl_analysis PRIVATE ${report_assets})
