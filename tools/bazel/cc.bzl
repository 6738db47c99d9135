"""Bazel's C++ rules; each file begins with a header that is compiled once (precompiled.bzl)."""

def _begun_with(header, precompiled, copts, deps):
    if not precompiled:
        return {"copts": copts, "deps": deps}
    return {
        "copts": copts + select({
            "//tools/bazel:without_precompiled": [],
            "//conditions:default": ["-include", "$(GENDIR)/tools/bazel/%s/%s.h" % (header, header)],
        }),
        "deps": deps + select({
            "//tools/bazel:without_precompiled": [],
            "//conditions:default": ["//tools/bazel:" + header],
        }),
    }

def cc_library(name, copts = [], deps = [], precompiled = True, **kwargs):
    kwargs.update(_begun_with("libraries", precompiled and kwargs.get("srcs"), copts, deps))
    native.cc_library(name = name, **kwargs)

def cc_binary(name, copts = [], deps = [], precompiled = True, **kwargs):
    kwargs.update(_begun_with("libraries", precompiled, copts, deps))
    native.cc_binary(name = name, **kwargs)

def cc_test(name, copts = [], deps = [], precompiled = True, **kwargs):
    kwargs.update(_begun_with("test_libraries", precompiled, copts, deps))
    native.cc_test(name = name, **kwargs)
