"""Builds the package by CMake, in build/wheel of the repository. More options of CMake are taken from CMAKE_ARGS. With
-DREDBLUE_PORTABLE=ON in it, the package contains the libraries that not every Linux has.

REDBLUE_PACKAGE is a package that CMake has built, build/dev/python/redblue; it is taken as it is.

A source distribution is the repository, with the files of this folder at its root, too.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
ROOT = next(folder for folder in (HERE, *HERE.parents) if (folder / "memsim").is_dir())
BUILD = ROOT / "build" / "wheel"
CMAKE_ARGS = shlex.split(os.environ.get("CMAKE_ARGS", ""))
IS_PORTABLE = "-DREDBLUE_PORTABLE=ON" in CMAKE_ARGS
# Of those that every Linux has by the manylinux policy (PEP 600).
ON_EVERY_LINUX = {"ld-linux-x86-64.so.2", "libc.so.6", "libgcc_s.so.1", "libm.so.6", "libstdc++.so.6"}


class BuildByCMake(build_ext):
    def run(self):
        built = os.environ.get("REDBLUE_PACKAGE") or self.build_package()
        shutil.rmtree(self.build_lib, ignore_errors=True)  # files of an earlier build
        package = shutil.copytree(built, pathlib.Path(self.build_lib) / "redblue",
                                  ignore=shutil.ignore_patterns("__pycache__"))
        if IS_PORTABLE:
            (module,) = package.glob("*.so")
            for name, path in re.findall(r"(\S+) => (\S+)", output_of("ldd", module)):
                if name not in ON_EVERY_LINUX:
                    shutil.copy(path, package / name)

    def build_package(self):
        build = BUILD / sys.implementation.cache_tag
        options = {
            "CMAKE_BUILD_TYPE": "Release",
            "REDBLUE_BUILD_PYTHON": "ON",
            "REDBLUE_BUILD_TESTS": "OFF",
            "REDBLUE_BUILD_BENCH": "OFF",
            "REDBLUE_INSTALL": "OFF",
            "REDBLUE_QUICK_BUILD": "ON",
            "REDBLUE_PORTABLE": "OFF",
            "REDBLUE_WITH_VALGRIND": "OFF",  # the redblue command on the PATH simulates caches
            "Python_EXECUTABLE": sys.executable,
        }
        subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja",
                        *(f"-D{name}={value}" for name, value in options.items()),
                        *CMAKE_ARGS], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "redblue_python"], check=True)
        return build / "python" / "redblue"

    def get_outputs(self):
        return [str(path) for path in pathlib.Path(self.build_lib).rglob("redblue/*")]


class Wheel(bdist_wheel):
    def get_tag(self):
        """The tag of a portable wheel names the glibc that its files need."""
        python, abi, platform = super().get_tag()
        if IS_PORTABLE:
            needed = "".join(output_of("objdump", "-T", path) for path in pathlib.Path(self.bdist_dir).rglob("*.so*"))
            newest = max(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", needed))
            platform = f"manylinux_2_{newest}_x86_64"
        return python, abi, platform


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class SdistOfRepository(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in tracked_files(base_dir):
            target = pathlib.Path(base_dir) / name
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)


def tracked_files(base_dir):
    """The files of the repository; in a source distribution, all but what a build makes."""
    if (ROOT / ".git").exists():
        return output_of("git", "-C", ROOT, "ls-files").splitlines()
    output = pathlib.Path(base_dir).resolve()
    names = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file() and output not in path.parents)
    return [str(name) for name in names if name.parts[0] != "build" and not name.name.endswith(".pyc")]


BUILD.mkdir(parents=True, exist_ok=True)
setup(
    version=re.search(r"project\(redblue VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1],
    packages=[],
    ext_modules=[Extension("redblue._redblue", sources=[])],
    cmdclass={"build_ext": BuildByCMake, "bdist_wheel": Wheel, "sdist": SdistOfRepository},
    options={"build": {"build_base": str(BUILD / "setuptools")}, "egg_info": {"egg_base": str(BUILD)}},
    zip_safe=False,
)
