"""What the folders of the GPU's kernels are built from."""

load("//tools/bazel:cuda.bzl", "cuda_library")

def cuda_family(name, deps = [], cuda_deps = [], real_deps = []):
    """All of a family's folder as one library: device code, its launches, the adapter <name>_op.cc.

    Args:
      name: the folder's name.
      deps: beside what every family needs, as in cuda_library.
      cuda_deps: likewise.
      real_deps: likewise.
    """
    cuda_library(
        name = name,
        srcs = native.glob(["*.cc"], exclude = ["*_test.cc"]),
        hdrs = native.glob(["*.h"]),
        cuda_deps = ["//kernels/cuda:adapt", "//kernels/cuda/device"] + cuda_deps,
        real_deps = real_deps,
        visibility = ["//kernels:__subpackages__"],
        deps = [
            "//graph/types",
            "//kernels:kernel",
            "//kernels:spec",
            "//kernels/cuda:launch_shape",
            "//tools/third_party:absl",
        ] + deps,
    )
