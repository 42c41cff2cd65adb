# SPDX-License-Identifier: Apache-2.0
# cmake --install: programs, libraries, headers, pages, and what other builds need to find them. Components:
# runtime (record, monitor, agent, report), server (gpufl serve), devel (headers and build files), systemd (units).
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "libraries, below the prefix")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
if(NOT CMAKE_INSTALL_LIBDIR STREQUAL "lib" OR NOT CMAKE_INSTALL_BINDIR STREQUAL "bin")
  # A prefix can be moved as a whole, because the program finds its libraries from where it stands itself.
  message(FATAL_ERROR "programs go to PREFIX/bin and libraries to PREFIX/lib: gpufl looks for them in ../lib")
endif()

install(TARGETS gpufl_cli RUNTIME DESTINATION bin COMPONENT runtime)
install(FILES ${CMAKE_BINARY_DIR}/bin/gpufl-monitor ${CMAKE_BINARY_DIR}/bin/gpufl-agent DESTINATION bin COMPONENT runtime)
# The links without a version are for programs, too: libraries are loaded by these names.
install(TARGETS gpufl EXPORT gpuflTargets LIBRARY DESTINATION lib COMPONENT runtime INCLUDES DESTINATION include)
install(TARGETS gpufl_inject gpufl_preload LIBRARY DESTINATION lib COMPONENT runtime)
if(GPUFL_UPLOAD)
  install(TARGETS gpufl_upload_so LIBRARY DESTINATION lib COMPONENT runtime)
endif()
if(GPUFL_SERVER)
  install(TARGETS gpufl_server_so LIBRARY DESTINATION lib COMPONENT server)
endif()
if(TARGET gpufl_demo_app)
  install(PROGRAMS ${CMAKE_BINARY_DIR}/bin/gpufl-demo-app DESTINATION bin COMPONENT runtime OPTIONAL)
endif()
# What an upload or a reader noted beside a recording is not a part of it.
install(DIRECTORY examples/recorded DESTINATION share/gpufl/examples COMPONENT runtime PATTERN ".gpufl-*" EXCLUDE)

install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime FILES_MATCHING PATTERN "*.1")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY include/gpufl DESTINATION include COMPONENT devel)
configure_file(packaging/cmake/gpufl.pc.in ${CMAKE_BINARY_DIR}/packaging/gpufl.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/packaging/gpufl.pc DESTINATION lib/pkgconfig COMPONENT devel)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/packaging/gpuflConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES packaging/cmake/gpuflConfig.cmake ${CMAKE_BINARY_DIR}/packaging/gpuflConfigVersion.cmake
  DESTINATION lib/cmake/gpufl COMPONENT devel)
install(EXPORT gpuflTargets NAMESPACE gpufl:: DESTINATION lib/cmake/gpufl COMPONENT devel)

# What the program prints (completions), what the prefix is part of (units), and what the built files contain (bill of
# materials) is made at installation.
foreach(component runtime systemd)
  install(CODE "set(source_dir \"${PROJECT_SOURCE_DIR}\")
set(build_dir \"${CMAKE_BINARY_DIR}\")
set(output_dir \"${CMAKE_BINARY_DIR}/packaging\")
set(program \"$<TARGET_FILE:gpufl_cli>\")" COMPONENT ${component})
endforeach()
install(SCRIPT packaging/cmake/install_completions.cmake COMPONENT runtime)
install(SCRIPT packaging/cmake/install_sbom.cmake COMPONENT runtime)
install(SCRIPT packaging/cmake/install_units.cmake COMPONENT systemd)
