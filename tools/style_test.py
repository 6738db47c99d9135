#!/usr/bin/env python3
"""Tests of tools/check_style and tools/bazel/count_results, run as commands."""

import json
import os
import subprocess
import tempfile
import unittest

TOOLS = os.path.dirname(os.path.abspath(__file__))


def function_of(lines, opening="int F() {", indent=""):
    body = [indent + "  Use(%d);" % n for n in range(lines - 2)]
    return "\n".join([indent + opening] + body + [indent + "}", ""])


class CheckStyleTest(unittest.TestCase):

    def check(self, text, name="graph/a.cc", options=(), beside=()):
        """Returns what check_style says about a file of this name and text, and its exit code.

        `beside`: other files, pairs of name and text."""
        with tempfile.TemporaryDirectory() as folder:
            for path, content in ((name, text), *beside):
                path = os.path.join(folder, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(content)
            run = subprocess.run([os.path.join(TOOLS, "check_style"), *options, name], cwd=folder,
                                 stdout=subprocess.PIPE, check=False)
            return run.stdout.decode(), run.returncode

    def assert_clean(self, text, name="graph/a.cc"):
        self.assertEqual(self.check(text, name), ("", 0))

    def assert_violates(self, text, expected, name="graph/a.cc"):
        output, code = self.check(text, name)
        self.assertEqual(code, 1)
        self.assertIn(expected, output)

    def test_function_size(self):
        self.assert_clean(function_of(80))
        self.assert_violates(function_of(81),
                             "graph/a.cc:1: function F of 81 lines; the limit is 80")

    def test_function_size_sees_through_what_stands_before_the_body(self):
        for opening in ("Foo::Foo(int a) : a_{a}, b_(a) {",
                        "auto Foo::Get() const -> Map<int, int> {",
                        "template <typename T>\nT Foo<T>::operator()(T x) noexcept {",
                        "TEST(Foo, Bar) {",
                        "struct Pair Foo(const char* s = \"{\") {"):
            self.assert_violates("namespace mgc {\n" + function_of(90, opening),
                                 "graph/a.cc:2: function")

    def test_methods_and_classes(self):
        method = function_of(85, "void Run() override {", "  ")
        self.assert_violates("class A final : public B<int> {\n public:\n" + method + "};\n",
                             "function Run of 85 lines")
        fields = "".join("  int a%d;\n" % n for n in range(199))
        self.assert_violates("struct A {\n" + fields + "};\n", "class A of 201 lines")

    def test_tables_strings_and_comments_are_no_functions(self):
        rows = "".join("    {\"a(\", %d},\n" % n for n in range(90))
        self.assert_clean("const Row kRows[] = {\n" + rows + "};\n")
        self.assert_clean("const char kText[] = R\"(\nf() {\n" + "\n" * 90 + "})\";\n")
        self.assert_clean("// f() {\n" + "\n" * 90 + "int a = 1'000;\nchar c = '{';\n// }\n")

    def test_file_and_line_length(self):
        self.assert_clean("int a;\n" * 600)
        self.assert_violates("int a;\n" * 601, "file of 601 lines")
        self.assert_violates("// " + "x" * 98 + "\n", "line of 101 columns")

    def test_soft_limits_do_not_fail(self):
        output, code = self.check(function_of(41), options=["--soft"])
        self.assertIn("(aim) function F of 41 lines; the limit is 40", output)
        self.assertEqual(code, 0)

    def test_include_guard(self):
        guarded = "#ifndef MGC_GRAPH_A_H_\n#define MGC_GRAPH_A_H_\n#endif  // MGC_GRAPH_A_H_\n"
        self.assert_clean(guarded, "graph/a.h")
        self.assert_violates(guarded, "must be MGC_GRAPH_B_H_", "graph/b.h")

    def test_types_have_one_definition(self):
        header = "#ifndef MGC_GRAPH_A_H_\n#define MGC_GRAPH_A_H_\n%s\n#endif  // MGC_GRAPH_A_H_\n"
        for a, b, code in (("struct State {};", "class State final : Base {};", 1),
                           ("struct State {};", "struct State;", 0),
                           ("struct State {};", "struct Other {\n  struct State {};\n};", 0)):
            other = header.replace("GRAPH_A", "GRAPH_B") % b
            self.assertEqual(
                self.check(header % a, "graph/a.h", options=("graph/b.h",),
                           beside=(("graph/b.h", other),))[1], code, b)

    def test_words(self):
        self.assert_violates("// TO" + "DO: later\n", "tracker")
        self.assert_violates("See /ho" + "me/me/notes.\n", "path of one machine", "docs/a.md")
        self.assert_violates("char* a = getenv(\"A\");\n", "graph/a.cc:1: getenv")
        self.assert_clean("char* a = getenv(\"A\");\n", "tools/a.cc")
        self.assert_clean("// getenv is not called\n")
        self.assert_violates("thread_local int a;\n", "thread_local")
        self.assert_violates("int a = std::random_device()();\n", "random_device")
        self.assert_violates("int a = UnitTest::GetInstance()->random_seed();\n", "random_seed")
        self.assert_clean("int a = GTEST_FLAG_GET(random_seed);\n", "runtime/a_test.cc")

    def test_includes(self):
        self.assert_violates("#include <nlohmann/json.hpp>\n", "nlohmann", "graph/base/a.h")
        self.assert_clean("#include <nlohmann/json.hpp>\n", "graph/base/a.cc")
        self.assert_violates("#include \"../a.h\"\n", "relative")

    def test_arenas_are_their_devices(self):
        copy = "int F() {\n  std::memcpy(to, from, 8);\n}\n"
        self.assert_violates(copy, "bytes are its device's", "runtime/run/step_machine.cc")
        self.assert_violates(copy, "bytes are its device's", "runtime/train/a.cc")
        for name in ("runtime/run/device_a.cc", "runtime/run/a_test.cc", "runtime/comm/a.cc"):
            self.assert_clean(copy, name)
        place = "int F() {\n  Use(device->At(0, address));\n}\n"
        self.assert_violates(place, "what its device runs", "runtime/run/executor.cc")
        self.assert_clean(place, "runtime/run/step_comm.cc")
        include = "#include \"runtime/run/arena.h\"\n"
        self.assert_violates(include, "is its device's", "runtime/run/a.cc")
        beside = [("runtime/run/arena.h", "")]
        self.assertEqual(self.check(include, "runtime/run/device_a.cc", beside=beside), ("", 0))

    def test_references(self):
        self.assert_violates("// Rules 5 and 7: paid once.\n", "have names")
        self.assert_violates("// in order (derivation rule 9)\n", "have names", "passes/a_test.cc")
        self.assert_violates("As design.md says.\n", "no such page", "docs/a.md")
        self.assert_violates("// (design-derivation 3)\n", "no such page")
        self.assert_clean("// (section 3 of the paper; the rule \"claims\")\n")

    def test_named_files_exist(self):
        self.assert_violates("// See docs/b.md.\n", "graph/a.cc:1: docs/b.md: no such file")
        self.assert_violates("See `graph/b.h`.\n", "graph/b.h: no such file", "docs/a.md")
        self.assert_clean("One pass is `passes/graph/<verb>.h`, `tests/x_*.cc`.\n", "docs/a.md")
        said = self.check("// See docs/b.md.\n", beside=(("docs/b.md", "# B\n"),))
        self.assertEqual(said, ("", 0))

    def test_passes_know_no_op_by_name(self):
        ops = (("graph/ops/a.cc", 'op.name = "add";\nCollective("lift", "Moves nothing.");\n'),)
        asks = 'if (node.op->name == "%s") return;\n'
        for op in ("add", "lift"):
            output, code = self.check(asks % op, "passes/a.cc", beside=ops)
            self.assertIn("passes/a.cc:1: compares with the op `%s`: ask for a role" % op, output)
            self.assertEqual(code, 1)
        self.assertEqual(self.check(asks % "none", "passes/a.cc", beside=ops), ("", 0))
        self.assertEqual(self.check(asks % "add", "passes/a_test.cc", beside=ops), ("", 0))

    def test_dims_are_known_to_strategies_only(self):
        asks = 'if (dim.name == "vocab") return;\n'
        for path in ("passes/graph/a.cc", "graph/types/a.cc", "kernels/cpu/a.cc", "tools/cli/a.cc"):
            self.assert_violates(asks, "compares with the dim `vocab`", path)
        for path in ("graph/ops/a.cc", "frontends/a.cc", "passes/graph/a_test.cc"):
            self.assert_clean(asks, path)


class CountResultsTest(unittest.TestCase):

    def count(self, events, exit_code):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("\n".join(json.dumps(event) for event in events))
            file.flush()
            command = [os.path.join(TOOLS, "bazel", "count_results"), file.name, str(exit_code)]
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 check=True)
            return run.stdout.decode().strip()

    @staticmethod
    def summary(label, status):
        return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}

    @staticmethod
    def completed(label, success):
        return {"id": {"targetCompleted": {"label": label}}, "completed": {"success": success}}

    def test_counts_tests_once(self):
        events = [self.completed("//a:t", True), self.summary("//a:t", "PASSED"),
                  self.completed("//a:u", True), self.summary("//a:u", "TIMEOUT")]
        self.assertEqual(self.count(events, 3), "1 1")

    def test_a_target_that_does_not_build_fails(self):
        broken = {"id": {"targetCompleted": {"label": "//a:t"}}, "completed": {}}
        self.assertEqual(self.count([broken, self.summary("//a:t", "NO_STATUS")], 1), "0 1")
        self.assertEqual(self.count([self.completed("//a:lib", True), broken], 1), "0 1")

    def test_a_missing_file_counts_with_its_target_or_alone(self):
        missing = {"id": {"unconfiguredLabel": {"label": "//a:t.cc"}},
                   "aborted": {"reason": "LOADING_FAILURE"}}
        broken = {"id": {"targetCompleted": {"label": "//a:t"}},
                  "aborted": {"reason": "ANALYSIS_FAILURE"}}
        self.assertEqual(self.count([missing, broken], 1), "0 1")
        self.assertEqual(self.count([missing, self.summary("//b:t", "PASSED")], 1), "1 1")

    def test_a_run_that_ends_early_fails(self):
        self.assertEqual(self.count([], 37), "0 1")
        self.assertEqual(self.count([self.summary("//a:t", "PASSED")], 37), "1 1")
        self.assertEqual(self.count([], 1), "0 1")

    def test_no_test_selected_is_nothing(self):
        self.assertEqual(self.count([], 4), "0 0")


if __name__ == "__main__":
    unittest.main()
