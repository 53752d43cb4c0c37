# Spack recipe. `spack repo add scripts/packaging/spack`, then, in a checkout of the sources,
# `spack dev-build minidirac@0.2.0`.
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
    depends_on("mpi")
    depends_on("hdf5@1.10.5: +mpi")
    depends_on("random123")
    depends_on("cjson")
    depends_on("inih")
    depends_on("libdeflate")
    depends_on("zlib-api")
    depends_on("openblas threads=pthreads", when="+blas")
    depends_on("cuda@12:", when="+cuda")

    generator("ninja")

    def cmake_args(self):
        args = [self.define("MINIDIRAC_TESTS", False), self.define("MINIDIRAC_CUDA", "ON" if "+cuda" in self.spec else "OFF")]
        if "+cuda" in self.spec and "none" not in self.spec.variants["cuda_arch"].value:
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args
