"""In the sources: spack repo add packaging/spack && spack dev-build py-asterism-sparse@develop; +hdf5, +report for those files and reports.

Written against Spack's packaging guide (package API 2.0); Spack is not where CI runs, so it is not built there.
"""

from spack.package import depends_on, variant, version
from spack_repo.builtin.build_systems.python import PythonPackage


class PyAsterismSparse(PythonPackage):
    """Large sparse systems from PDEs: the same on a laptop, a cluster and GPUs."""

    license("BSD-3-Clause")

    version("develop")

    variant("mpi", default=True, description="Several processes, by mpi4py and the MPI that it was built with")
    variant("hdf5", default=False, description="Read and write HDF5 and MATLAB 7.3 files")
    variant("report", default=False, description="HTML reports and pictures")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.24:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.10:", type=("build", "link", "run"))
    depends_on("py-scikit-build-core@1:", type="build")
    depends_on("py-nanobind@2.8:", type="build")
    depends_on("py-numpy@1.24:", type=("build", "run"))
    depends_on("lapack")
    depends_on("blas")
    depends_on("mpi", when="+mpi")
    depends_on("py-mpi4py@4:", when="+mpi", type=("build", "run"))
    depends_on("py-h5py", when="+hdf5", type="run")
    depends_on("py-scipy", when="+hdf5", type="run")
    depends_on("py-matplotlib", when="+report", type="run")
