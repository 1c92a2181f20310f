# Copyright 2026 the polycast developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Recipe for Spack: put this folder as packages/polycast into a repository of your own, then `spack dev-build polycast@0.2.0 ^openmpi` in a checkout."""

from spack.package import *

try:
    # Since Spack 1.0 the classes for build systems are part of the repository of packages.
    from spack_repo.builtin.build_systems.makefile import MakefilePackage
except ImportError:
    from spack.package import MakefilePackage


class Polycast(MakefilePackage):
    """MPI_Bcast and the collectives built on it at the speed of the wire, in unmodified MPI programs on Ethernet clusters."""

    license("BSD-3-Clause")

    # Without an address to fetch it from.
    version("0.2.0")

    variant("slurm", default=False, description="Build the plug-in for srun --polycast")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("gmake", type="build")
    depends_on("binutils", type="build")
    depends_on("mpi")
    depends_on("slurm", when="+slurm")

    def build(self, spec, prefix):
        make("build", f"MPICC={spec['mpi'].mpicc}")
        if "+slurm" in spec:
            make("spank", f"SLURM_CFLAGS=-I{spec['slurm'].prefix.include}")

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")
