# SPDX-License-Identifier: Apache-2.0
"""Conan 2 recipe of this source: conan create packaging/conan

The library alone: the command and the server are installed by their packages (docs/install.md)."""
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

SOURCE_PARTS = ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "packaging/cmake/*", "src/*", "web/report/*")
# Recipe: file of the static library, and what gpufl's CMakeLists.txt calls it.
ARCHIVES = {"zstd": ("libzstd.a", "ZSTD"), "zlib": ("libz.a", "ZLIB")}


class Gpufl(ConanFile):
    name = "gpufl"
    license = "Apache-2.0"
    description = "A GPU profiler that is cheap enough to leave on"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": True, "zstd/*:shared": False, "zlib/*:shared": False, "zstd/*:fPIC": True,
                       "zlib/*:fPIC": True}

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "..", "..", "include", "gpufl", "gpufl.h"))
        self.version = re.search(r'GPUFL_VERSION_STRING "([0-9.]+)"', header).group(1)

    def export_sources(self):
        for part in SOURCE_PARTS:
            copy(self, part, os.path.join(self.recipe_folder, "..", ".."), self.export_sources_folder)

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")  # the library is C
        self.settings.rm_safe("compiler.libcxx")

    def requirements(self):
        for name, version in (("zstd", "[>=1.4.4 <2]"), ("zlib", "[>=1.2.11 <2]")):
            self.requires(f"{name}/{version}", visible=False)  # becomes a part of the library

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["GPUFL_TOOLS"] = "OFF"
        toolchain.cache_variables["GPUFL_UPLOAD"] = "OFF"
        for name, (file, variable) in ARCHIVES.items():
            info = self.dependencies[name].cpp_info.aggregated_components()
            toolchain.cache_variables[f"GPUFL_{variable}_STATIC"] = os.path.join(info.libdirs[0], file)
            toolchain.cache_variables[f"GPUFL_{variable}_INCLUDE_DIR"] = info.includedirs[0]
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "gpufl")
        self.cpp_info.set_property("cmake_target_name", "gpufl::gpufl")
        self.cpp_info.set_property("pkg_config_name", "gpufl")
        self.cpp_info.libs = ["gpufl"]
        self.cpp_info.system_libs = ["pthread", "m", "dl"]
