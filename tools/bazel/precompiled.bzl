"""Headers that the compiler reads once for all files: most of a compile is reading Abseil's.

GCC takes `x.h.gch` for `x.h` where both were compiled for the same processor, and else reads `x.h`:
a file with flags of its own is compiled as it would be without. What a file needs it still includes
by itself: `--//tools/bazel:precompiled=false` shows where a line is missing.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    src = ctx.file.hdr
    header = ctx.actions.declare_file(ctx.label.name + "/" + src.basename)
    ctx.actions.symlink(output = header, target_file = src)
    files = [header] + ctx.files.includes
    if toolchain.compiler != "clang":
        compiled = ctx.actions.declare_file(header.basename + ".gch", sibling = header)
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            source_file = header.path,
            output_file = compiled.path,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts +
                                 ["-x", "c++-header"],
            quote_include_directories = depset(["."]),
            use_pic = True,
        )
        ctx.actions.run(
            executable = cc_common.get_tool_for_action(
                feature_configuration = features,
                action_name = "c++-compile",
            ),
            arguments = cc_common.get_memory_inefficient_command_line(
                feature_configuration = features,
                action_name = "c++-compile",
                variables = variables,
            ),
            env = cc_common.get_environment_variables(
                feature_configuration = features,
                action_name = "c++-compile",
                variables = variables,
            ),
            inputs = depset(files, transitive = [toolchain.all_files]),
            outputs = [compiled],
            mnemonic = "PrecompileHeader",
        )
        files.append(compiled)
    return [
        DefaultInfo(files = depset(files)),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(files))),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "hdr": attr.label(mandatory = True, allow_single_file = [".h"]),
        "includes": attr.label_list(allow_files = [".h"], doc = "Headers of ours that it includes."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
