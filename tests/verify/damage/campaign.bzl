"""A test that tries a few cases, and the campaign of the same program that tries many."""

load("//tools/bazel:cc.bzl", "cc_library", "cc_test")

def test_and_campaign(name, few, many, deps, shards, campaign_shards):
    """Makes `name_test`, of every run of tests, and `name_campaign`, of `tools/test --all`.

    Args:
      name: of the program in `name_test.cc`; its main() is RunSized (sized_test.h).
      few: cases of the test.
      many: cases of the campaign.
      deps: what the program includes.
      shards: processes of the test.
      campaign_shards: processes of the campaign.
    """
    cc_library(
        name = name + "_cases",
        testonly = True,
        srcs = [name + "_test.cc"],
        deps = deps + ["//tests/verify/damage:sized_test"],
        alwayslink = True,
    )
    cc_test(
        name = name + "_test",
        size = "medium",
        args = ["--cases=%d" % few],
        shard_count = shards,
        tags = [
            "no-asan",  # minutes there; tests/fuzz and the other tests here run the same code
            "slow",
        ],
        deps = [":%s_cases" % name],
    )
    cc_test(
        name = name + "_campaign",
        size = "large",
        args = ["--cases=%d" % many],
        shard_count = campaign_shards,
        tags = [
            "campaign",
            "manual",
        ],
        deps = [":%s_cases" % name],
    )
