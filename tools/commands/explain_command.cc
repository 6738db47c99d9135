// `mgc-plan explain`: why a value lies where it does.

#include <string>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli/output.h"
#include "tools/cli/plan_file.h"
#include "tools/views/explain.h"

namespace mgc {

int ExplainCommand(const Words& arguments) {
  constexpr char kCommand[] = "mgc-plan explain";
  Flags flags(
      {kCommand,
       "PLAN NAME",
       "why values lie where they do, and what is communicated for it",
       {"mgc-plan explain tiny.plan layers.*.mlp.up",
        "mgc-plan explain tiny.plan embedding.word --json"},
       "NAME is a parameter or any other value of a training step; * stands for any text."});
  Words words;
  bool json = false;
  flags.Arguments(2, 2, &words);
  flags.Switch("--json", "one JSON object instead of text", &json);
  if (const auto code = ParseStrictly(&flags, arguments, kCommand)) return *code;
  const absl::StatusOr<Plan> plan = ReadPlan(words[0]);
  if (!plan.ok()) return Fail(plan.status(), kExitBadModel);
  const absl::StatusOr<std::vector<Explanation>> explained = ExplainValues(*plan, words[1]);
  if (!explained.ok()) return Fail(explained.status(), kExitFailed);
  return Finish(json ? ExplainJson(*explained) : ExplainText(*explained));
}

}  // namespace mgc
