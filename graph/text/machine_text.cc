#include "graph/text/machine_text.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "graph/base/suggest.h"
#include "graph/ir/op.h"
#include "graph/text/lexer.h"

namespace mgc {
namespace {

constexpr int64_t kMostInt = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostCores = 1 << 20;

std::string EfficiencyText(double efficiency, absl::Span<const EfficiencyPoint> points = {}) {
  std::string text;
  if (efficiency != 1.0) absl::StrAppend(&text, " efficiency ", RealText(efficiency));
  for (const EfficiencyPoint& point : points) {
    absl::StrAppend(&text, " at ", RealText(point.size), " efficiency ",
                    RealText(point.efficiency));
  }
  return text;
}

bool ReadEfficiency(TokenReader* reader, double* out) {
  return !reader->Accept("efficiency") || reader->ExpectReal("the efficiency", out);
}

// `size`: of what a point is, as errors call it.
bool ReadPoints(TokenReader* reader, const char* size, std::vector<EfficiencyPoint>* out) {
  while (reader->Accept("at")) {
    EfficiencyPoint& point = out->emplace_back();
    if (!reader->ExpectReal(size, &point.size) || !reader->Expect("efficiency") ||
        !reader->ExpectReal("the efficiency", &point.efficiency)) {
      return false;
    }
  }
  return true;
}

bool ReadMemory(TokenReader* reader, Machine* out) {
  return reader->ExpectInt("the memory in bytes", 1, kMostInt, &out->memory) &&
         reader->Expect("bandwidth") &&
         reader->ExpectReal("bytes per second", &out->memory_bandwidth) &&
         ReadEfficiency(reader, &out->memory_efficiency);
}

bool ReadCompute(TokenReader* reader, Machine* out) {
  ComputeRate rate;
  if (!reader->ExpectName("an element type", &rate.dtype) ||
      !reader->ExpectReal("flops per second", &rate.flops) ||
      !ReadEfficiency(reader, &rate.efficiency) ||
      !ReadPoints(reader, "the flops of a product", &rate.points)) {
    return false;
  }
  out->compute.push_back(std::move(rate));
  return true;
}

bool ReadOp(TokenReader* reader, Machine* out) {
  OpFactor of;
  if (!reader->ExpectName("an op", &of.op)) return false;
  if (FindOp(of.op) == nullptr) {
    std::vector<absl::string_view> names;
    for (const OpDef& op : AllOps()) names.push_back(op.name);
    return reader->Fail(absl::StrCat("no op is called `", of.op, "`", DidYouMean(of.op, names)));
  }
  if (!reader->ExpectName("an element type", &of.dtype) || !reader->Expect("times") ||
      !reader->ExpectReal("a factor", &of.factor)) {
    return false;
  }
  out->ops.push_back(std::move(of));
  return true;
}

bool ReadTier(TokenReader* reader, Machine* out) {
  NetworkTier tier;
  if (!reader->ExpectName("the name of a network", &tier.name) || !reader->Expect("ranks")) {
    return false;
  }
  if (!reader->Accept("any") &&
      !reader->ExpectInt("`any` or the ranks in a domain", 1, kMostInt, &tier.ranks)) {
    return false;
  }
  if (!reader->Expect("bandwidth") || !reader->ExpectReal("bytes per second", &tier.bandwidth) ||
      !ReadEfficiency(reader, &tier.efficiency) ||
      !ReadPoints(reader, "the bytes of a message", &tier.points) || !reader->Expect("latency") ||
      !reader->ExpectReal("seconds", &tier.latency)) {
    return false;
  }
  if (reader->Accept("hop") && !reader->ExpectReal("seconds", &tier.hop)) return false;
  out->tiers.push_back(std::move(tier));
  return true;
}

bool ReadLine(TokenReader* reader, Machine* out) {
  if (reader->Accept("memory")) return ReadMemory(reader, out);
  if (reader->Accept("overhead")) return reader->ExpectReal("seconds", &out->op_overhead);
  if (reader->Accept("cores")) {
    return reader->ExpectInt("a number of cores", 1, kMostCores, &out->cores);
  }
  if (reader->Accept("gpu")) {
    out->host = KernelHost::kGpu;
    return true;
  }
  if (reader->Accept("compute")) return ReadCompute(reader, out);
  if (reader->Accept("op")) return ReadOp(reader, out);
  if (reader->Accept("tier")) return ReadTier(reader, out);
  return reader->FailExpecting(
      "`memory`, `overhead`, `cores`, `gpu`, `compute`, `op`, `tier` or `}`");
}

}  // namespace

std::string PrintMachine(const Machine& machine) {
  std::string text = absl::StrCat("machine ", SymbolText(machine.name), " {\n  memory ",
                                  machine.memory, " bandwidth ", RealText(machine.memory_bandwidth),
                                  EfficiencyText(machine.memory_efficiency), "\n  overhead ",
                                  RealText(machine.op_overhead), "\n");
  if (machine.cores > 0) absl::StrAppend(&text, "  cores ", machine.cores, "\n");
  if (machine.host == KernelHost::kGpu) absl::StrAppend(&text, "  gpu\n");
  for (const ComputeRate& rate : machine.compute) {
    absl::StrAppend(&text, "  compute ", NameText(rate.dtype), " ", RealText(rate.flops),
                    EfficiencyText(rate.efficiency, rate.points), "\n");
  }
  for (const OpFactor& of : machine.ops) {
    absl::StrAppend(&text, "  op ", NameText(of.op), " ", NameText(of.dtype), " times ",
                    RealText(of.factor), "\n");
  }
  for (const NetworkTier& tier : machine.tiers) {
    const std::string ranks = tier.ranks == kAnyRanks ? "any" : absl::StrCat(tier.ranks);
    absl::StrAppend(&text, "  tier ", NameText(tier.name), " ranks ", ranks, " bandwidth ",
                    RealText(tier.bandwidth), EfficiencyText(tier.efficiency, tier.points));
    absl::StrAppend(&text, " latency ", RealText(tier.latency));
    if (tier.hop != 0) absl::StrAppend(&text, " hop ", RealText(tier.hop));
    absl::StrAppend(&text, "\n");
  }
  return text + "}\n";
}

bool ReadMachine(TokenReader* reader, Machine* out) {
  const TextPlace place = reader->place();
  if (!reader->Accept("machine")) return reader->FailExpecting("`machine`");
  if (!reader->ExpectSymbol("the name of the machine, `@name`", &out->name)) return false;
  if (!reader->Expect("{")) return false;
  bool complete = true;
  while (!reader->At("}") && !reader->AtEnd()) {
    const size_t begin = reader->position();
    if (ReadLine(reader, out)) continue;
    complete = false;
    reader->SkipLine(begin);
  }
  if (!reader->Expect("}") || !complete) return false;
  const absl::Status status = CheckMachine(*out);
  if (status.ok()) return true;
  for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    reader->diagnostics().Add(place, "", line);
  }
  return false;
}

absl::StatusOr<Machine> ParseMachine(absl::string_view text, absl::string_view filename) {
  FileDiagnostics diagnostics(filename);
  TokenReader reader(text, &diagnostics);
  Machine machine;
  if (ReadMachine(&reader, &machine) && !reader.AtEnd()) {
    reader.FailExpecting("the end of the text");
  }
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  return machine;
}

}  // namespace mgc
