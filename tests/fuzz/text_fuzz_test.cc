// Hostile texts and bytes: whatever is read gives a graph that prints and checks, or an error, and
// never ends the program.

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/check.h"
#include "graph/ir/op.h"
#include "graph/ir/testing/graph_difference.h"
#include "graph/proto/wire.h"
#include "graph/text/machine_text.h"
#include "graph/text/parser.h"
#include "graph/text/printer.h"
#include "graph/types/machine.h"
#include "gtest/gtest.h"
#include "tests/fuzz/fuzz_cases.h"

namespace mgc {
namespace {

constexpr int kCases = 10000;

constexpr char kGraph[] = R"(mesh @m [tp.1=2, tp.0=2, dp=2; ep=dp*tp.1]
graph @g sharded layers=2 (
  param %w: f32[embed=16,mlp=32] @m[-,tp] {init="normal", std=0.02},
  accumulator %w/grad: f32[embed=16,mlp=32] @m[-,tp]+dp {of="w"},
  data %x: f32[batch=8,embed=16] @m[dp,-],
  data %ids: i64[batch=8] @m[dp],
  param %table: f32[vocab=9%2,embed=16] @m[tp,-] {decay=0},
  scalar %lr: f64[] @m[]
) {
  %h: f32[8,32] @m[dp,tp] = matmul(%x, %w) {spec="b k, k n -> b n"} layer 0 at "m":1:2 because "x"
  %e: f32[8,16] @m[dp,-]+tp = lookup(%table, %ids) layer embedding
  %y: f32[8,16] @m[dp,-] = reshard(%e)
  %r: f32[4,2,16] @m[dp,-,-] = reshape(%y) {names="_ _ embed", sizes=[4,2,16]}
  %t: f32[2,4,16] @m[-,dp,-] = transpose(%r) {perm=[1,0,2]}
  %s: f32[8,8] @m[dp,-] = slice(%y) {begin=0, dim=1, end=8}
  %b: f32[8,3,8] @m[dp,-,-] = broadcast(%s) {dims=[1], names="_", sizes=[3]}
  %i: i64[4] @m[-] = iota() {name="seq", size=4}
  %w.grad: f32[16,32] @m[-,tp]+dp of %w = matmul(%x, %h) {spec="b k, b n -> k n"} backward
  %w/grad.next: f32[16,32] @m[-,tp]+dp = accumulate(%w/grad, %w.grad) backward
  %q: f64[] @m[]+tp = sum_squares(%w)
  assign %w/grad.next -> %w/grad
  report "q" = %lr
}
)";

// One change: bytes flipped, cut, doubled, moved from elsewhere, or a word that is hard to read.
void Mutate(std::mt19937* random, std::string* text) {
  static const char* const kWords[] = {"%",    "@",   "\"", "\\",     "-",   "9223372036854775807",
                                       "-1",   "0",   "{",  "}",      "(",   "[",
                                       "]",    ",",   "\n", "//",     "nan", "1e308",
                                       "%x",   "@m[", "->", "layer ", "add", "%w, %w",
                                       "*tp*", "/dp", "^",  "999999", "=",   "of %x"};
  if (text->empty()) *text = "x";
  const size_t at = Below(random, text->size());
  const size_t length = Below(random, std::min<size_t>(text->size() - at, 40)) + 1;
  switch (Below(random, 6)) {
    case 0:
      (*text)[at] = static_cast<char>((*random)());
      break;
    case 1:
      text->erase(at, length);
      break;
    case 2:
      text->insert(at, text->substr(at, length));
      break;
    case 3:
      text->insert(at, text->substr(Below(random, text->size()), length));
      break;
    case 4:
      text->replace(at, length, kWords[Below(random, std::size(kWords))]);
      break;
    default:
      text->insert(at, kWords[Below(random, std::size(kWords))]);
  }
}

std::string RandomBytes(std::mt19937* random) {
  std::string bytes(Below(random, 200), '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

// What every graph that was read must bear.
void Use(const Graph& graph) {
  FindViolations(graph);
  const std::string text = PrintGraph(graph);
  const absl::StatusOr<Graph> again = ParseGraph(text, "again");
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
  EXPECT_EQ(PrintGraph(*again), text);
  const absl::StatusOr<Graph> wired = DeserializeGraph(SerializeGraph(graph));
  ASSERT_TRUE(wired.ok()) << wired.status() << "\n" << text;
  EXPECT_EQ(PrintGraph(*wired), text);
}

TEST(TextFuzzTest, TheSeedIsSound) {
  const absl::StatusOr<Graph> graph = ParseGraph(kGraph, "g");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(CheckGraph(*graph).ok()) << CheckGraph(*graph);
}

TEST(TextFuzzTest, RandomBytes) {
  RunFuzzCases("random bytes", kCases, [](std::mt19937* random) {
    const std::string bytes = RandomBytes(random);
    EXPECT_FALSE(ParseGraph(bytes, bytes).ok());
    EXPECT_FALSE(ParseMesh(bytes, "f").ok());
    EXPECT_FALSE(ParseMachine(bytes, "f").ok());
    (void)DeserializeGraph(bytes).ok();
    (void)DeserializeMesh(bytes).ok();
    (void)DeserializeMachine(bytes).ok();
  });
}

TEST(TextFuzzTest, MutatedGraphTexts) {
  int read = 0;
  RunFuzzCases("mutated graph texts", kCases, [&read](std::mt19937* random) {
    std::string text = kGraph;
    for (size_t n = Below(random, 4) + 1; n > 0; --n) Mutate(random, &text);
    const absl::StatusOr<Graph> graph = ParseGraph(text, "f");
    if (!graph.ok()) return;
    ++read;
    SCOPED_TRACE(text);
    Use(*graph);
  });
  EXPECT_GT(read, 0);
}

// Uses of any op with any of the attributes that ops have, on values of many shapes.
TEST(TextFuzzTest, RandomNodes) {
  static const char* const kValues[] = {"%w", "%x", "%ids", "%table", "%lr",
                                        "%h", "%y", "%r",   "%q",     "%i"};
  static const char* const kNumbers[] = {
      "0", "1", "2", "3", "-1", "8", "16", "0.5", "1e300", "nan", "-0.0", "9223372036854775807"};
  RunFuzzCases("random nodes", kCases, [](std::mt19937* random) {
    const auto pick = [&](const auto& list) { return list[Below(random, std::size(list))]; };
    const OpDef& op = AllOps()[Below(random, AllOps().size())];
    std::string line = "%new";
    for (size_t r = 1; r < op.results.size(); ++r) absl::StrAppend(&line, ", %new", r);
    absl::StrAppend(&line, " = ", op.name, "(");
    for (size_t i = 0; i < op.operands.size(); ++i) {
      absl::StrAppend(&line, i == 0 ? "" : ", ", pick(kValues));
    }
    line += ") {";
    for (const AttrSpec& spec : op.attrs) {
      absl::StrAppend(&line, spec.name, "=");
      if (spec.kind == AttrKind::kText) {
        static const char* const kTexts[] = {"",    "b k, k n -> b n", "a a, -> (", "_ _", "k",
                                             "@m[", "b k, b k -> k b"};
        absl::StrAppend(&line, "\"", pick(kTexts), "\"");
      } else if (spec.kind == AttrKind::kInts) {
        line += "[";
        for (size_t n = Below(random, 4); n > 0; --n) {
          absl::StrAppend(&line, static_cast<int64_t>((*random)()) % 5 - 1, ",");
        }
        line += Below(random, 20) == 0 ? "1125899906842624]" : "]";
      } else {
        line += pick(kNumbers);
      }
      line += ", ";
    }
    std::string text = kGraph;
    text.insert(text.find("  assign"), line + "}\n");
    SCOPED_TRACE(line);
    const absl::StatusOr<Graph> graph = ParseGraph(text, "f");
    if (graph.ok()) Use(*graph);
  });
}

TEST(TextFuzzTest, MutatedMachineTexts) {
  RunFuzzCases("mutated machine texts", kCases, [](std::mt19937* random) {
    std::string text = PrintMachine(MachinePresets()[Below(random, MachinePresets().size())]);
    Mutate(random, &text);
    Mutate(random, &text);
    const absl::StatusOr<Machine> machine = ParseMachine(text, "f");
    if (!machine.ok()) return;
    const std::string printed = PrintMachine(*machine);
    const absl::StatusOr<Machine> again = ParseMachine(printed, "again");
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
    EXPECT_EQ(*again, *machine);
  });
}

TEST(TextFuzzTest, MutatedWireBytes) {
  const absl::StatusOr<Graph> parsed = ParseGraph(kGraph, "g");
  ASSERT_TRUE(parsed.ok());
  const std::string seeds[] = {SerializeGraph(*parsed), SerializeGraph(OddGraph())};
  RunFuzzCases("mutated wire bytes", kCases, [&](std::mt19937* random) {
    std::string bytes = seeds[Below(random, 2)];
    for (size_t n = Below(random, 3) + 1; n > 0; --n) {
      bytes[Below(random, bytes.size())] ^= static_cast<char>(1 << Below(random, 8));
    }
    const absl::StatusOr<Graph> graph = DeserializeGraph(bytes);
    if (graph.ok()) FindViolations(*graph);
  });
}

}  // namespace
}  // namespace mgc
