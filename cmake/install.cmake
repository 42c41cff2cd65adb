# SPDX-License-Identifier: Apache-2.0
# cmake --install: programs, libraries, headers, pages, and what other builds need to find them. Components:
# runtime (record, monitor, agent, report), server (gpufl serve), devel (headers and build files), systemd (units).
# A prefix can be moved as a whole: programs, CMake's files and pkg-config's find the rest relative to themselves.
include(CMakePackageConfigHelpers)
set(libdir ${CMAKE_INSTALL_LIBDIR})
set(bindir ${CMAKE_INSTALL_BINDIR})
set(made ${PROJECT_BINARY_DIR}/packaging)

# The links without a version are for programs, too: libraries are loaded by these names.
if(GPUFL_TOOLS OR gpufl_library STREQUAL "gpufl")
  install(TARGETS gpufl EXPORT gpuflTargets LIBRARY DESTINATION ${libdir} COMPONENT runtime
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
install(TARGETS gpufl_client EXPORT gpuflTargets COMPONENT devel INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET gpufl_static)
  install(TARGETS gpufl_static EXPORT gpuflTargets ARCHIVE DESTINATION ${libdir} COMPONENT devel
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
if(GPUFL_UPLOAD)
  install(TARGETS gpufl_upload_so LIBRARY DESTINATION ${libdir} COMPONENT runtime)
endif()
if(GPUFL_SERVER)
  install(TARGETS gpufl_server_so LIBRARY DESTINATION ${libdir} COMPONENT server)
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)

install(DIRECTORY include/gpufl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT devel)
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
file(RELATIVE_PATH libdir_from_prefix ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH includedir_from_prefix ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(pc_private Libs.private)
if(NOT GPUFL_TOOLS AND gpufl_library STREQUAL "gpufl_static")
  set(pc_private Libs) # there is no shared library
endif()
configure_file(packaging/cmake/gpufl.pc.in ${made}/gpufl.pc @ONLY)
install(FILES ${made}/gpufl.pc DESTINATION ${libdir}/pkgconfig COMPONENT devel)
write_basic_package_version_file(${made}/gpuflConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES packaging/cmake/gpuflConfig.cmake ${made}/gpuflConfigVersion.cmake
  DESTINATION ${libdir}/cmake/gpufl COMPONENT devel)
install(EXPORT gpuflTargets NAMESPACE gpufl:: DESTINATION ${libdir}/cmake/gpufl COMPONENT devel)

# What the program prints (completions), what the prefix is part of (units), and what the built files contain (bill of
# materials) is made at installation.
foreach(component runtime devel systemd)
  install(CODE "file(APPEND \"${made}/prefixes\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\\n\")
set(source_dir \"${PROJECT_SOURCE_DIR}\")
set(build_dir \"${PROJECT_BINARY_DIR}\")
set(output_dir \"${made}\")
set(datadir \"${CMAKE_INSTALL_DATADIR}\")
set(bindir \"${bindir}\")
set(emulator \"${CMAKE_CROSSCOMPILING_EMULATOR}\")
set(is_cross_built \"${CMAKE_CROSSCOMPILING}\")" COMPONENT ${component})
endforeach()
if(GPUFL_TOOLS)
  install(TARGETS gpufl_cli RUNTIME DESTINATION ${bindir} COMPONENT runtime)
  install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/gpufl-monitor ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/gpufl-agent
    DESTINATION ${bindir} COMPONENT runtime)
  install(TARGETS gpufl_inject gpufl_preload LIBRARY DESTINATION ${libdir} COMPONENT runtime)
  # What an upload or a reader noted beside a recording is not a part of it.
  install(DIRECTORY examples/recorded DESTINATION ${CMAKE_INSTALL_DATADIR}/gpufl/examples COMPONENT runtime
    PATTERN ".gpufl-*" EXCLUDE)
  install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime FILES_MATCHING PATTERN "*.1")
  install(CODE "set(program \"$<TARGET_FILE:gpufl_cli>\")" COMPONENT runtime)
  install(SCRIPT packaging/cmake/install_completions.cmake COMPONENT runtime)
  install(SCRIPT packaging/cmake/install_units.cmake COMPONENT systemd)
endif()
if(GPUFL_DEMO_APP)
  install(PROGRAMS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/gpufl-demo-app DESTINATION ${bindir} COMPONENT runtime OPTIONAL)
endif()
if(GPUFL_IS_TOP_LEVEL)
  if(GPUFL_TOOLS)
    install(SCRIPT packaging/cmake/install_sbom.cmake COMPONENT runtime)
  endif()
  add_custom_target(uninstall VERBATIM
    COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${PROJECT_BINARY_DIR} -P ${PROJECT_SOURCE_DIR}/packaging/cmake/uninstall.cmake)
endif()
