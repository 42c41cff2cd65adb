# SPDX-License-Identifier: Apache-2.0
# usage: cmake -DFOLDER=web/report -DOUTPUT=report_assets.c -P embed_report_assets.cmake
set(code "/* Made by cmake/embed_report_assets.cmake from web/report. */\n#include \"analysis/report_html.h\"\n")
foreach(pair "report_style|report.css" "report_script|report.js")
  string(REPLACE "|" ";" parts ${pair})
  list(GET parts 0 name)
  list(GET parts 1 file)
  file(READ ${FOLDER}/${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND code "const unsigned char ${name}[] = {${bytes}0};\nconst size_t ${name}_size = sizeof ${name} - 1;\n")
endforeach()
file(WRITE ${OUTPUT} "${code}")
