# SPDX-License-Identifier: Apache-2.0
# The dashboard as a table of files inside of the server, from the committed bundle; `make dashboard` makes that from web/.
file(GLOB_RECURSE dashboard_bundle CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/dist/*)
set(dashboard_table ${PROJECT_BINARY_DIR}/dashboard_files.c)
add_custom_command(OUTPUT ${dashboard_table}
  COMMAND ${PROJECT_SOURCE_DIR}/tools/embed_dashboard.sh ${PROJECT_SOURCE_DIR}/web/dist ${dashboard_table}
  DEPENDS ${dashboard_bundle} tools/embed_dashboard.sh
  COMMENT "Embedding the dashboard" VERBATIM)
target_sources(gpufl_server PRIVATE ${dashboard_table})
