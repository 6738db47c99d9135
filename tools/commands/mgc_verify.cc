// mgc-verify: proves a plan, or says why it cannot.

#include <utility>

#include "absl/strings/str_format.h"
#include "graph/base/json_writer.h"
#include "graph/verify/verify.h"
#include "tools/cli/command.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/cli/plan_file.h"
#include "tools/cli/proof.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-verify";

CommandText About() {
  return {kCommand,
          "PLAN",
          "prove that a plan does not hang, overwrites nothing it needs, and computes its model",
          {"mgc-verify tiny.plan", "mgc-verify tiny.plan --json",
           "mgc-verify tiny.plan --dot circle.dot"},
          "Needs nothing but the plan; - is stdin. Exits with 0 when the plan is proved and with 5 "
          "when it\nis not: then every finding is printed with its label, see docs/verify.md."};
}

std::string ProvedText(const Plan& plan, const VerifyReport& report) {
  return absl::StrFormat(
      "%s: proved for %d ranks\n"
      "placement, order, memory: at the plan's own sizes\n"
      "meaning: %d runs of a step at small sizes; a wrong plan passes them with a probability "
      "below %.0e\n"
      "         (N = %d calls of random functions, degree D = %d between them)\n",
      plan.name, plan.mesh.world_size(), report.runs, report.miss_probability, report.calls,
      report.degree);
}

std::string ProofJson(const VerifyReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Key("proved").Bool(report.ok());
  json.Integer("verifier", kVerifierVersion);
  json.Integer("runs", report.runs).Integer("calls", report.calls);
  json.Integer("degree", report.degree);
  json.Key("miss_probability").Number(report.miss_probability);
  json.Key("findings").BeginArray();
  for (const Diagnostic& finding : report.findings) {
    json.BeginObject().String("label", finding.label).String("place", finding.place);
    json.String("text", finding.text).String("detail", finding.detail).EndObject();
  }
  json.EndArray();
  json.Integer("left_out", static_cast<int64_t>(report.findings.left_out())).EndObject();
  return std::move(json).Finish();
}

// The first drawing among the findings; an empty graph when there is none.
std::string DrawingOf(const Diagnostics& findings) {
  for (const Diagnostic& finding : findings) {
    if (!finding.drawing.empty()) return finding.drawing;
  }
  return "digraph circle {\n}\n";
}

int Main(const Words& arguments) {
  Flags flags(About());
  Words plans;
  absl::optional<std::string> dot;
  bool json = false;
  flags.Arguments(1, 1, &plans);
  flags.Switch("--json", "one JSON object", &json);
  flags.Text("--dot", "FILE", "where the drawing of a circle of waits goes, if there is one", &dot);
  if (const auto code = ParseStrictly(&flags, arguments, kCommand)) return *code;
  std::vector<NamedPath> results = {{"the proof", "-"}};
  if (dot.has_value()) results.push_back({"--dot", *dot});
  const auto errors = CheckPaths({{"PLAN", plans[0]}}, results);
  if (!errors.empty()) return Refuse(errors, {}, kCommand);
  const absl::StatusOr<Plan> plan = ReadPlan(plans[0]);
  if (!plan.ok()) return Fail(plan.status(), kExitBadModel);
  const VerifyReport report = VerifyPlan(*plan);
  std::vector<OutputFile> outputs;
  if (json || report.ok()) {
    outputs.push_back({"-", json ? ProofJson(report) : ProvedText(*plan, report)});
  }
  if (dot.has_value()) outputs.push_back({*dot, DrawingOf(report.findings)});
  const absl::Status written = WriteAll(outputs);
  if (!written.ok()) return Fail(written, kExitFailed);
  if (report.ok()) return kExitOk;
  if (!json) PrintErrors(report.findings);
  return kExitMismatch;
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
