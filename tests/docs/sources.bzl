"""The source files behind targets and what tests read, for tests that read code."""

_Sources = provider(fields = ["files"])

def _collect(target, ctx):
    files = []
    for attribute in ["srcs", "hdrs", "textual_hdrs", "data"]:
        if hasattr(ctx.rule.files, attribute):
            files += [f for f in getattr(ctx.rule.files, attribute) if f.is_source]
    deps = []
    for attribute in ["deps", "srcs"]:
        for dep in getattr(ctx.rule.attr, attribute, []):
            if _Sources in dep:
                deps.append(dep[_Sources].files)
    return [_Sources(files = depset(files, transitive = deps))]

_collect_sources = aspect(
    implementation = _collect,
    attr_aspects = ["deps", "srcs"],
)

def _sources(ctx):
    files = depset(transitive = [dep[_Sources].files for dep in ctx.attr.deps])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

# The sources of `deps` and of everything that they depend on.
transitive_sources = rule(
    implementation = _sources,
    attrs = {"deps": attr.label_list(aspects = [_collect_sources])},
)
