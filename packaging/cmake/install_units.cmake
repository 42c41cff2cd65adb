# SPDX-License-Identifier: Apache-2.0
# Part of cmake --install: the systemd units, with the prefix that they are installed to.
foreach(unit gpufl-monitor gpufl-agent gpufl-serve)
  configure_file(${source_dir}/packaging/systemd/${unit}.service.in ${output_dir}/${unit}.service @ONLY)
  # An equal modification time does not imply the same prefix.
  file(REMOVE $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/systemd/system/${unit}.service)
  file(INSTALL ${output_dir}/${unit}.service DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
endforeach()
file(INSTALL ${source_dir}/packaging/systemd/gpufl.conf DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/sysusers.d)
