"""C++ code generated from protocol buffers by the system's protoc."""

def mgc_cc_proto_library(name, src, deps = [], visibility = None):
    """Makes `<package>/<stem>.pb.h` and the library that defines its messages.

    Args:
      name: the cc_library that others depend on.
      src: one .proto file of this package; it imports others by their path from the root.
      deps: further mgc_cc_proto_library targets that src imports.
      visibility: of the library.
    """
    stem = src[:-len(".proto")]
    native.filegroup(
        name = name + "_proto",
        srcs = [src] + [dep + "_proto" for dep in deps],
        visibility = visibility,
    )
    native.genrule(
        name = name + "_protoc",
        srcs = [":" + name + "_proto"],
        outs = [stem + ".pb.h", stem + ".pb.cc"],
        cmd = "protoc -I. --cpp_out=$(GENDIR) " + (native.package_name() + "/" + src).lstrip("/"),
    )
    native.cc_library(
        name = name,
        srcs = [stem + ".pb.cc"],
        hdrs = [stem + ".pb.h"],
        copts = ["-w"],
        visibility = visibility,
        deps = ["//tools/third_party:protobuf"] + deps,
    )
