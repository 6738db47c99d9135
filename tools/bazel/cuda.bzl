"""Libraries with device code, each made twice: for GPUs, and for the emulator on the CPU.

For GPUs a library is `<name>`, which is built by name only and skipped where there is no toolkit
(tools/bazel/cuda_toolkit.bzl). For the emulator it is `<name>_emulated`; its sources see
MGC_CUDA_EMULATED.
"""

load("@cuda//:toolkit.bzl", "CUDA_ROOT")
load("//tools/bazel:cc.bzl", "cc_library", "cc_test")

# Of what needs the toolkit.
NEEDS_CUDA = [] if CUDA_ROOT else ["//tools/bazel:no_cuda_toolkit"]

# Kernels round as they are written, on GPUs and in the emulator: they say fmaf where they mean it.
_NVCC_FLAGS = [
    "-std=c++17",
    "-O3",
    "--compress-mode=size",
    "--fmad=false",
    "--expt-relaxed-constexpr",
    "-Werror",
    "all-warnings",
    "-Xcompiler",
    "-Wall,-Wextra,-Werror,-Wno-maybe-uninitialized",
]

_EMULATED_COPTS = [
    "-ffp-contract=off",
    "-Wno-unknown-pragmas",  # #pragma unroll
    "-Wno-attributes",
]

def _archs_impl(ctx):
    return CudaArchs(names = ctx.build_setting_value)

CudaArchs = provider("Architectures that device code is made for.", fields = ["names"])

# `--//tools/bazel:cuda_archs=sm_80,sm_90a,compute_90`: machine code of each sm_*, PTX of compute_*.
cuda_archs = rule(
    implementation = _archs_impl,
    build_setting = config.string_list(flag = True),
)

def _switch_impl(_):
    return []

# `--//tools/bazel:cuda`: a flag that is given or not.
switch = rule(
    implementation = _switch_impl,
    build_setting = config.bool(flag = True),
)

def _generate_code(name):
    virtual = "compute_" + name.split("_")[1]
    return "--generate-code=arch=%s,code=%s" % (virtual, name)

def _nvcc_objects_impl(ctx):
    headers = [dep[CcInfo].compilation_context.headers for dep in ctx.attr.deps]
    objects = []
    for src in ctx.files.srcs:
        out = ctx.actions.declare_file(ctx.label.name + "/" + src.basename + ".o")
        args = ctx.actions.args()
        args.add_all(_NVCC_FLAGS)
        args.add_all([_generate_code(name) for name in ctx.attr._archs[CudaArchs].names])
        args.add_all(["-I.", "-I" + ctx.bin_dir.path, "-x", "cu", "-c", src.path, "-o", out.path])
        ctx.actions.run(
            executable = CUDA_ROOT + "/bin/nvcc",
            arguments = [args],
            inputs = depset([src] + ctx.files.hdrs, transitive = headers),
            outputs = [out],
            mnemonic = "Nvcc",
            use_default_shell_env = True,
        )
        objects.append(out)
    return [DefaultInfo(files = depset(objects))]

_nvcc_objects = rule(
    implementation = _nvcc_objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu.cc"]),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "_archs": attr.label(default = "//tools/bazel:cuda_archs"),
    },
)

def cuda_library(name, srcs = [], hdrs = [], deps = [], cuda_deps = [], real_deps = [], emulated_deps = [], **kwargs):
    """Makes `<name>` and `<name>_emulated`.

    Args:
      name: of both.
      srcs: host code (.cc), which may include kernels/cuda/api.h, and device code (.cu.cc).
      hdrs: headers of both kinds.
      deps: libraries that are the same for both.
      cuda_deps: names of cuda_library targets, by their labels for GPUs.
      real_deps: what only `<name>` needs: libraries of the toolkit.
      emulated_deps: what only `<name>_emulated` needs: what stands for these.
      **kwargs: of both cc_library targets.
    """
    device = [src for src in srcs if src.endswith(".cu.cc")]
    host = [src for src in srcs if not src.endswith(".cu.cc")]
    cc_library(
        name = name + "_emulated",
        srcs = srcs,
        hdrs = hdrs,
        copts = _EMULATED_COPTS,
        local_defines = ["MGC_CUDA_EMULATED"],
        deps = deps + emulated_deps + [_emulated(dep) for dep in cuda_deps] +
               ["//kernels/cuda/emulator"],
        **kwargs
    )
    objects = []
    if device and CUDA_ROOT:
        _nvcc_objects(
            name = name + "_objects",
            srcs = device,
            hdrs = hdrs,
            deps = deps + cuda_deps,
            tags = ["manual"],
        )
        objects = [":" + name + "_objects"]
    cc_library(
        name = name,
        srcs = host + objects,
        hdrs = hdrs,
        tags = ["manual"],
        deps = deps + cuda_deps + real_deps + ["//tools/third_party:cudart"],
        target_compatible_with = NEEDS_CUDA,
        **kwargs
    )

def _emulated(label):
    return label + "_emulated" if ":" in label else label + ":" + label.split("/")[-1] + "_emulated"

def cuda_test(name, srcs, deps = [], cuda_deps = [], tags = [], **kwargs):
    """Makes `<name>_emulated`, a test for any machine, and `<name>`, a program for one with a GPU."""
    cc_test(
        name = name + "_emulated",
        srcs = srcs,
        copts = _EMULATED_COPTS,
        local_defines = ["MGC_CUDA_EMULATED"],
        tags = tags + ["no-asan"],  # minutes to compile; the emulator looks for itself
        deps = deps + [_emulated(dep) for dep in cuda_deps] + ["//kernels/cuda/emulator"],
        **kwargs
    )
    cc_test(
        name = name,
        srcs = srcs,
        tags = tags + ["manual"],
        target_compatible_with = NEEDS_CUDA,
        deps = deps + cuda_deps + ["//tools/third_party:cudart"],
        **kwargs
    )
