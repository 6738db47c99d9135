"""What the folders of the kernels' families are built from."""

load("//tools/bazel:cc.bzl", "cc_library", "cc_test")

# Sums and products round as they are written (no contraction), so that an element has the same bits
# in a whole vector and in a partial one; the vectors themselves are chosen at run time
# (simd/simd.h).
KERNEL_COPTS = [
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
]

def kernel_library(name, srcs = None, hdrs = None, textual_hdrs = None, deps = []):
    """Functions over plain arrays, compiled for every instruction set.

    Args:
      name: of the target and, where nothing else is said, of its files.
      srcs: [name.cc] by default.
      hdrs: [name.h] by default.
      textual_hdrs: the bodies that simd_each.inc compiles; by default the folder's.
      deps: beside the shared SIMD pieces and Parallel.
    """
    native.cc_library(
        name = name,
        srcs = srcs or [name + ".cc"],
        hdrs = hdrs or [name + ".h"],
        copts = KERNEL_COPTS,
        textual_hdrs = textual_hdrs or native.glob(["*.inc"], allow_empty = True),
        visibility = [
            "//:above_kernels",
            "//kernels:__subpackages__",
        ],
        deps = [
            "//kernels:parallel",
            "//kernels/cpu/simd",
            "//tools/third_party:absl",
        ] + deps,
    )

def kernel_ops(family, deps):
    """The adapter of a family, <family>_op.cc: from ops to functions over plain arrays."""
    cc_library(
        name = family + "_op",
        srcs = [family + "_op.cc"],
        visibility = ["//kernels:__subpackages__"],
        deps = [
            "//kernels/cpu:adapt",
            "//kernels/cpu/simd",
            "//tools/third_party:absl",
        ] + deps,
    )

def kernel_test(name, deps):
    """<name>.cc: kernels against double precision, over widths and odd sizes."""
    cc_test(
        name = name,
        size = "medium",
        srcs = [name + ".cc"],
        tags = ["threads"],
        deps = [
            "//kernels/cpu:test_util",
            "//tools/third_party:gtest_main",
        ] + deps,
    )
