#!/usr/bin/env python3
"""Makes the folder of the library that tools/install installs.

  make_tree.py VERSION MANIFEST FOLDER

A line of MANIFEST is `object PATH`, `header PATH NAME` (the name that programs include) or `link
OPTION`. Debian's libraries stay outside of the archive: each `-lNAME` becomes a package that
pkg-config or CMake looks for, so that an unknown one is an error here and not in a user's link.
"""

import os
import shutil
import subprocess
import sys

PC = """\
prefix=${{pcfiledir}}/../..

Name: mgc
Description: Training plans for many ranks from a model for one, proved and run
Version: {version}
Requires: {packages}
Cflags: -I${{prefix}}/include/mgc
Libs: -L${{prefix}}/lib -lmgc -pthread
"""

CMAKE = """\
# find_package(mgc): the target mgc::mgc is the library with all that it needs.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
{finds}
if(NOT TARGET mgc::mgc)
  get_filename_component(mgc_prefix "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
  add_library(mgc::mgc STATIC IMPORTED)
  set_target_properties(mgc::mgc PROPERTIES
    IMPORTED_LOCATION "${{mgc_prefix}}/lib/libmgc.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES CXX
    INTERFACE_COMPILE_FEATURES cxx_std_17
    INTERFACE_INCLUDE_DIRECTORIES "${{mgc_prefix}}/include/mgc"
    INTERFACE_LINK_LIBRARIES "{targets}")
  unset(mgc_prefix)
endif()
"""

CMAKE_VERSION = """\
set(PACKAGE_VERSION {version})
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
elseif(PACKAGE_FIND_VERSION VERSION_LESS PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
"""


def find_package(name):
    return "find_dependency(%s)" % name


# Debian has no CMake package of it.
FIND_XXHASH = """\
find_library(mgc_XXHASH xxhash)
if(NOT mgc_XXHASH)
  set(mgc_FOUND FALSE)
  set(mgc_NOT_FOUND_MESSAGE "mgc needs libxxhash (Debian: libxxhash-dev)")
  return()
endif()"""

# library: its pkg-config package, how CMake finds it, its CMake target
KNOWN = {
    "protobuf": ("protobuf", find_package("Protobuf"), "protobuf::libprotobuf"),
    "xxhash": ("libxxhash", FIND_XXHASH, "${mgc_XXHASH}"),
}


def dependency(library):
    if library.startswith("absl_"):
        return library, find_package("absl"), "absl::" + library[len("absl_"):]
    if library not in KNOWN:
        sys.exit("make_tree.py: say in KNOWN how -l%s is found" % library)
    return KNOWN[library]


def describe(version, link_options):
    """The texts of the .pc file and of the CMake package."""
    packages, finds, targets = [], [], ["Threads::Threads"]
    for option in link_options:
        if not option.startswith("-l"):
            continue  # -pthread is there, and --as-needed is the user's choice
        package, find, target = dependency(option[2:])
        packages.append(package)
        finds += [find] if find not in finds else []
        targets.append(target)
    return (PC.format(version=version, packages=", ".join(packages)),
            CMAKE.format(finds="\n".join(finds), targets=";".join(targets)))


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        out.write(text)


def archive(objects, path):
    """An archive of objects of which several have the same name: `q` never replaces."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    params = path + ".params"
    with open(params, "w") as out:
        out.write("\n".join(objects))
    subprocess.run(["ar", "qcsD", path, "@" + params], check=True)
    os.remove(params)


def main():
    version, manifest, folder = sys.argv[1:]
    lines = [line.split() for line in open(manifest).read().splitlines()]
    archive([line[1] for line in lines if line[0] == "object"],
            os.path.join(folder, "lib/libmgc.a"))
    for _, path, name in (line for line in lines if line[0] == "header"):
        to = os.path.join(folder, "include/mgc", name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(path, to)
    pc, cmake = describe(version, [line[1] for line in lines if line[0] == "link"])
    write(folder, "lib/pkgconfig/mgc.pc", pc)
    write(folder, "lib/cmake/mgc/mgcConfig.cmake", cmake)
    write(folder, "lib/cmake/mgc/mgcConfigVersion.cmake", CMAKE_VERSION.format(version=version))


if __name__ == "__main__":
    main()
