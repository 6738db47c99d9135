"""A room: a folder of code that is one library and, with its unit tests, one test."""

load("//tools/bazel:cc.bzl", "cc_library", "cc_test")

def room(
        name,
        deps = [],
        srcs = [],
        copts = [],
        exclude = [],
        data = [],
        test_deps = [],
        test_data = [],
        test_tags = [],
        test_size = "small",
        precompiled = True,
        **kwargs):
    """Makes the library `name` of the folder's files and the test `name_test` of its *_test.cc.

    A new file is part of the room without a line here; what it includes from another room is a
    line in `deps`, and that is the only way a room can come to depend on another.

    Args:
      name: the folder's name.
      deps: libraries that the files include.
      srcs: sources made by other rules.
      copts: compiler flags.
      exclude: files that other targets of the package own.
      data: files that the library reads when it runs.
      test_deps: what the unit tests include beyond the room's own deps.
      test_data: files that the unit tests read.
      test_tags: see docs/build.md.
      test_size: Bazel's time limit.
      precompiled: whether files begin with a header that is compiled once (precompiled.bzl).
      **kwargs: visibility, testonly.
    """
    tests = native.glob(["*_test.cc"], exclude = exclude, allow_empty = True)
    cc_library(
        name = name,
        srcs = srcs + native.glob(["*.cc"], exclude = exclude + tests, allow_empty = True),
        hdrs = native.glob(["*.h"], exclude = exclude),
        textual_hdrs = native.glob(["*.inc"], exclude = exclude, allow_empty = True),
        copts = copts,
        data = data,
        deps = deps,
        precompiled = precompiled,
        **kwargs
    )
    if tests:
        cc_test(
            name = name + "_test",
            size = test_size,
            srcs = tests,
            copts = copts,
            data = test_data,
            precompiled = precompiled,
            tags = test_tags,
            visibility = ["//tests/docs:__pkg__"],  # reads the labels in it
            deps = [":" + name] + deps + [d for d in test_deps if d not in deps] + [
                "//tools/third_party:gtest_main",
            ],
        )
