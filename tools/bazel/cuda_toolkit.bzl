"""Finds CUDA's toolkit and NCCL on this machine: the repository @cuda.

Nothing is downloaded. Where the toolkit is not found, @cuda says so, and targets that need it are
skipped as incompatible: their reason is the name of the constraint that no platform has.
"""

_FOUND = """
package(default_visibility = ["//visibility:public"])

# Headers that host code includes; nvcc finds its own.
cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/*"]),
    includes = ["include"],
)
"""

def _cuda_toolkit_impl(ctx):
    root = ctx.os.environ.get("CUDA_PATH", "/usr/local/cuda")
    found = ctx.path(root + "/bin/nvcc").exists
    nccl = ""
    for place in [root, "/usr", "/usr/local"]:
        if not nccl and found and ctx.path(place + "/include/nccl.h").exists:
            nccl = place
    if found:
        ctx.symlink(root + "/include", "include")
        ctx.file("BUILD.bazel", _FOUND)
    else:
        ctx.file("BUILD.bazel", "package(default_visibility = [\"//visibility:public\"])\n" +
                                "cc_library(name = \"headers\")\n")
    ctx.file("toolkit.bzl", "CUDA_ROOT = %r\nNCCL_ROOT = %r\n" % (root if found else "", nccl))

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    environ = ["CUDA_PATH"],
    local = True,
)
