"""Tests that no dependency crosses a wall between the rooms of the architecture."""

def wall_test(name, roots, room, crossed = False):
    """Tests that nothing `roots` depend on, directly or not, lies in the folder `room`.

    Args:
      name: of the test.
      roots: labels of the topmost targets of a room. While there are none there is no test.
      room: a folder from the repository's root, such as "runtime".
      crossed: expect a dependency instead; shows that the test can fail.
    """
    if not roots:
        return
    native.genquery(
        name = name + "_query",
        testonly = True,
        expression = "filter('^//%s[/:]', deps(set(%s)))" % (room, " ".join(roots)),
        scope = roots,
    )
    native.sh_test(
        name = name,
        size = "small",
        srcs = ["wall_test.sh"],
        args = [
            "$(location :%s_query)" % name,
            "crossed" if crossed else "whole",
        ],
        data = [":%s_query" % name],
    )
