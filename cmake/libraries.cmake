# SPDX-License-Identifier: Apache-2.0
# gpufl::gpufl_static, libgpufl.a: one object with every layer, zstd and zlib inside, in which only the functions of the
# installed headers are global. A program may use other versions of zstd and zlib, and any name that gpufl uses inside.
# gpufl::gpufl is the shared library, or the static one where the project says BUILD_SHARED_LIBS=OFF. gpufl::client is
# neither: the headers find the library when the program runs.
add_library(gpufl_client INTERFACE)
add_library(gpufl::client ALIAS gpufl_client)
set_target_properties(gpufl_client PROPERTIES EXPORT_NAME client)
target_compile_definitions(gpufl_client INTERFACE GPUFL_CLIENT)
target_include_directories(gpufl_client INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_link_libraries(gpufl_client INTERFACE ${CMAKE_DL_LIBS})

set(gpufl_library gpufl)
if(GPUFL_SANITIZE)
  add_library(gpufl::gpufl ALIAS gpufl)
  return()
endif()

set(archives "")
foreach(layer sdk capture analysis driver code logfile format base)
  list(APPEND archives $<TARGET_FILE:gpufl_${layer}>)
endforeach()
set(whole ${PROJECT_BINARY_DIR}/gpufl_whole.o)
set(object ${PROJECT_BINARY_DIR}/gpufl_static.o)
add_custom_command(OUTPUT ${object} BYPRODUCTS ${whole}
  COMMAND ${CMAKE_LINKER} -r -o ${whole} $<TARGET_OBJECTS:gpufl_sdk>
    --start-group ${archives} ${GPUFL_ZSTD_STATIC} ${GPUFL_ZLIB_STATIC} ${GPUFL_DEMANGLER_STATIC} --end-group
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=!gpufl_private --keep-global-symbol=gpufl_* ${whole} ${object}
  DEPENDS gpufl_sdk ${archives} COMMENT "Linking libgpufl.a into one object" COMMAND_EXPAND_LISTS VERBATIM)
add_library(gpufl_static STATIC ${object})
set_target_properties(gpufl_static PROPERTIES OUTPUT_NAME gpufl LINKER_LANGUAGE C)
target_include_directories(gpufl_static INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_link_libraries(gpufl_static INTERFACE pthread m ${CMAKE_DL_LIBS})

if(DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS)
  set(gpufl_library gpufl_static)
endif()
add_library(gpufl::gpufl ALIAS ${gpufl_library})
add_library(gpufl::gpufl_static ALIAS gpufl_static)
# Another project builds the library that it links with, and no other.
if(NOT GPUFL_IS_TOP_LEVEL AND gpufl_library STREQUAL "gpufl")
  set_target_properties(gpufl_static PROPERTIES EXCLUDE_FROM_ALL ON)
elseif(gpufl_library STREQUAL "gpufl_static" AND NOT GPUFL_TOOLS)
  set_target_properties(gpufl PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
