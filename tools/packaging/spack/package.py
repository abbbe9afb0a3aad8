# SPDX-License-Identifier: MIT
"""A recipe for Spack 1: put it into packages/redblue/ of a repository of recipes."""

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Redblue(CMakePackage):
    """Counts every word that an attention kernel moves between a fast memory of M words and a slow
    store, and computes its results."""

    # The repository to build from is your choice: `spack develop redblue@0.1.0 --path SOURCES`, or
    # a `git` attribute of this class.
    version("0.1.0")

    license("MIT")

    variant("hwloc", default=True, description="Know the machine's caches and cores")
    variant("papi", default=True, description="Read the processor's event counters")
    variant("uring", default=True, description="Have requests to disks in flight by io_uring")
    variant("valgrind", default=False, description="Simulate the machine's caches by callgrind")
    variant("mpi", default=False, description="Run on ranks of an MPI job")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("xxhash@0.8:", type="build")
    depends_on("fmt@9:")
    depends_on("highway@1.0.3:1.0")  # the tested versions
    depends_on("zlib-api")
    depends_on("hwloc@2:", when="+hwloc")
    depends_on("papi", when="+papi")
    depends_on("liburing", when="+uring")
    depends_on("valgrind", when="+valgrind", type=("build", "run"))
    depends_on("mpi", when="+mpi")

    conflicts("%gcc@:11", msg="redblue is C++20: take gcc 12 or clang 14, or a newer one")
    conflicts("%clang@:13", msg="redblue is C++20: take gcc 12 or clang 14, or a newer one")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("REDBLUE_BUILD_BENCH", False),
            self.define("REDBLUE_BUILD_TESTS", False),
            self.define_from_variant("REDBLUE_WITH_HWLOC", "hwloc"),
            self.define_from_variant("REDBLUE_WITH_PAPI", "papi"),
            self.define_from_variant("REDBLUE_WITH_URING", "uring"),
            self.define_from_variant("REDBLUE_WITH_VALGRIND", "valgrind"),
            self.define_from_variant("REDBLUE_WITH_MPI", "mpi"),
        ]
