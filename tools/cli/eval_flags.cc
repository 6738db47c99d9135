#include "tools/cli/eval_flags.h"

#include "absl/strings/str_cat.h"
#include "tools/cli/data_flags.h"

namespace mgc {
namespace {

void CheckEvalOnly(const RunFlags& flags, bool data, bool tail, Diagnostics* violations) {
  if (!data && !tail && !SplitsOffEvaluation(flags.data)) {
    violations->Add({"E1", "--eval-only is given, and nothing to evaluate on",
                     "--eval-data FILE or --eval-inputs NAME=FILE"});
  }
  const auto trains = [&](const char* flag, bool given) {
    if (!given) return;
    violations->Add(
        {"E1", absl::StrCat("--eval-only trains nothing, and ", flag, " is given"), "one of both"});
  };
  trains("--steps", flags.steps.has_value());
  trains("--eval-interval", flags.eval_interval.has_value());
  trains("--save", flags.save.has_value());
  trains("--exit-interval", flags.exit_interval.has_value());
  trains("--exit-duration", flags.exit_seconds.has_value());
  trains("--dump-grads", flags.dump_grads.has_value());
  trains("--dump-params", flags.dump_params.has_value());
}

// Each document is evaluated whole.
void CheckByDocument(const RunFlags& flags, Diagnostics* violations) {
  const bool has_text = !flags.data.eval.empty() || SplitsOffEvaluation(flags.data) ||
                        (flags.eval_tail_samples && !flags.data.train.empty());
  if (!flags.eval_only || !flags.data.eod || !has_text) {
    violations->Add({"E1", "--by-document is of an evaluation of a text whose documents end",
                     "--eval-only, --eval-data FILE and --eod ID too"});
  }
  if (flags.eval_steps) {
    violations->Add({"E1", "--by-document and --eval-steps are both given", "one of both"});
  }
}

}  // namespace

void CheckEvaluation(const RunFlags& flags, Diagnostics* violations) {
  if (flags.by_document) CheckByDocument(flags, violations);
  const bool data = !flags.data.eval.empty() || !flags.eval_inputs.empty();
  const bool tail = flags.eval_tail_samples.has_value();
  if (data && tail) {
    violations->Add({"E1",
                     absl::StrCat(!flags.data.eval.empty() ? "--eval-data" : "--eval-inputs",
                                  " and --eval-tail-samples are both given"),
                     "one of both"});
  }
  if (tail && SplitsOffEvaluation(flags.data)) {
    violations->Add({"E1", "--split and --eval-tail-samples are both given", "one of both"});
  }
  if (flags.eval_only) return CheckEvalOnly(flags, data, tail, violations);
  if (!flags.eval_interval && (data || tail || flags.eval_steps)) {
    violations->Add(
        {"E1", "evaluation is described, but --eval-interval is not given", "--eval-interval N"});
  }
}

}  // namespace mgc
