# SPDX-License-Identifier: Apache-2.0
# The dashboard (web/) as a table of files inside of the server. AUTO: where it cannot be built, the server says so at /;
# ON: that is an error; OFF: it is not tried.
set(GPUFL_DASHBOARD AUTO CACHE STRING "embed the dashboard: AUTO, ON or OFF")
file(GLOB_RECURSE dashboard_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/src/*.ts ${PROJECT_SOURCE_DIR}/web/src/*.tsx
  ${PROJECT_SOURCE_DIR}/web/src/*.css ${PROJECT_SOURCE_DIR}/web/public/*)
list(FILTER dashboard_sources EXCLUDE REGEX "\\.test\\.tsx?$")
set(dashboard_table ${CMAKE_BINARY_DIR}/dashboard/dashboard_files.c)
add_custom_command(OUTPUT ${dashboard_table}
  COMMAND ${PROJECT_SOURCE_DIR}/tools/build_dashboard.sh ${GPUFL_DASHBOARD} ${CMAKE_BINARY_DIR}/dashboard
  DEPENDS ${dashboard_sources} web/index.html web/package-lock.json web/vite.config.ts web/tools/embed.mjs
    tools/build_dashboard.sh
  COMMENT "Building the dashboard" VERBATIM)
target_sources(gpufl_server PRIVATE ${dashboard_table})
