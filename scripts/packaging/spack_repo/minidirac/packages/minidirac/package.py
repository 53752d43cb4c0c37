# For Spack 1.0 and newer; in a checkout of the sources:
#
#   spack repo add scripts/packaging/spack_repo/minidirac
#   spack dev-build minidirac@0.2.0
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Minidirac(CMakePackage, CudaPackage):
    """Lattice QCD mini-app: staggered Dirac operators, solvers and their rounding on CPUs, CUDA cores and Tensor
    Cores."""

    license("BSD-3-Clause")

    version("0.2.0")

    variant("blas", default=True, description="OpenBLAS as the reference of the dense kernels")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python", type="build")  # man page and completion
    depends_on("mpi")
    depends_on("hdf5@1.10.5: +mpi")
    depends_on("random123")
    depends_on("cjson")
    depends_on("libinih")
    depends_on("libdeflate")
    depends_on("zlib-api")
    depends_on("openblas threads=pthreads", when="+blas")
    depends_on("cuda@12:", when="+cuda")

    generator("ninja")

    def cmake_args(self):
        args = [self.define("MINIDIRAC_TESTS", False), self.define_from_variant("MINIDIRAC_CUDA", "cuda")]
        if self.spec.satisfies("+cuda") and not self.spec.satisfies("cuda_arch=none"):
            args.append(self.define_from_variant("CMAKE_CUDA_ARCHITECTURES", "cuda_arch"))
        return args
