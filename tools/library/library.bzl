"""mgc as a library for programs outside of this tree."""

def _library(ctx):
    cc = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    objects, link_options = [], []
    for part in cc.linking_context.linker_inputs.to_list():
        link_options += part.user_link_flags
        for library in part.libraries:
            objects += library.pic_objects or library.objects
    headers = [
        header
        for header in cc.compilation_context.headers.to_list()
        if not header.short_path.startswith("tools/bazel/")  # of the build alone
    ]

    manifest = ctx.actions.declare_file(ctx.label.name + ".manifest")
    ctx.actions.write(
        manifest,
        "\n".join(
            ["object " + object.path for object in objects] +
            ["header %s %s" % (header.path, header.short_path) for header in headers] +
            ["link " + option for option in link_options],
        ),
    )
    tree = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run_shell(
        command = 'python3 "$@"',
        arguments = [ctx.file._make_tree.path, ctx.attr.version, manifest.path, tree.path],
        inputs = objects + headers + [ctx.file._make_tree, manifest],
        outputs = [tree],
        mnemonic = "Library",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([tree]))]

# The folder `name` with lib/libmgc.a, the objects of `deps` and of all that they depend on; their
# headers in include/mgc; and the files by which pkg-config and CMake find both, and Debian's libraries.
library = rule(
    implementation = _library,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "version": attr.string(mandatory = True),
        "_make_tree": attr.label(
            default = "//tools/library:make_tree.py",
            allow_single_file = True,
        ),
    },
)
