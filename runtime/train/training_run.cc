#include "runtime/train/training_run.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "graph/base/status.h"
#include "runtime/data/documents.h"
#include "runtime/run/trace.h"
#include "runtime/train/reports.h"

namespace mgc {
namespace {

absl::Status CheckEvalOnly(const Trainer& trainer, const TrainingRunOptions& options) {
  if (!trainer.can_evaluate()) {
    return absl::InvalidArgumentError(
        "there is nothing to evaluate on, or the plan has no evaluation");
  }
  const TokenDataset* const text = trainer.eval_text();
  if (options.by_document && (text == nullptr || !text->ends().has_value())) {
    return absl::InvalidArgumentError("no text is evaluated whose documents' ends are known");
  }
  return absl::OkStatus();
}

absl::Status CheckRunOptions(const Trainer& trainer, const TrainingRunOptions& options) {
  if (options.eval_only) return CheckEvalOnly(trainer, options);
  if (options.steps < 1) {
    return absl::InvalidArgumentError(absl::StrCat("cannot train for ", options.steps, " steps"));
  }
  if (options.steps > trainer.most_steps()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.steps, " steps of ", trainer.executor().plan().global_batch_size,
        " samples are more samples than can be counted; nearest legal: ", trainer.most_steps(),
        " steps"));
  }
  if (options.eval_interval < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot evaluate every ", options.eval_interval, " steps"));
  }
  if (options.eval_interval > 0 && !trainer.can_evaluate()) {
    return absl::InvalidArgumentError("evaluation needs data (of its own, or a held-back tail)");
  }
  return absl::OkStatus();
}

// A NaN's sign says nothing.
absl::Status CheckFinite(absl::string_view what, int64_t step, double value) {
  if (std::isfinite(value)) return absl::OkStatus();
  const char* name = std::isnan(value) ? "NaN" : value > 0 ? "infinite" : "minus infinity";
  return absl::OutOfRangeError(absl::StrCat(what, " step ", step, " is ", name));
}

absl::Status CheckFinite(const StepRecord& record) {
  absl::Status status = CheckFinite("the loss of", record.step, record.loss);
  if (record.left_out) return status;  // its scale falls
  status.Update(CheckFinite("the gradient norm of", record.step, record.grad_norm));
  return status;
}

// What processes tell each other after a step.
struct StepNews {
  bool stop = false;
  bool save = false;
  int64_t peak_bytes = 0;
  int64_t stall_ns = 0;  // Checkpoints::TakeStallNs
  bool finite = true;    // found alike by all
};

// Of all processes: whether one of them is to stop or to save, the highest peak, the longest stall.
absl::StatusOr<StepNews> ShareNews(Team& team, const StepNews& mine) {
  MGC_ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      team.Gather(absl::StrJoin(
          {int64_t{mine.stop}, int64_t{mine.save}, mine.peak_bytes, mine.stall_ns}, " ")));
  StepNews news;
  for (const std::string& text : all) {
    std::vector<int64_t> numbers;
    for (absl::string_view word : absl::StrSplit(text, ' ')) {
      if (!absl::SimpleAtoi(word, &numbers.emplace_back())) numbers.clear();
    }
    if (numbers.size() != 4) return absl::InternalError("a process says nothing of its step");
    news.stop = news.stop || numbers[0] != 0;
    news.save = news.save || numbers[1] != 0;
    news.peak_bytes = std::max(news.peak_bytes, numbers[2]);
    news.stall_ns = std::max(news.stall_ns, numbers[3]);
  }
  return news;
}

// What a run thinks of numbers that are not finite.
class FiniteJudge {
 public:
  FiniteJudge(bool stops, const Reports& reports) : stops_(stops), reports_(reports) {}

  // The error of a number that is not finite ends the run, or is noted the first time.
  absl::Status Judge(const absl::Status& finite) {
    if (finite.ok() || stops_) return finite;
    if (!noted_) reports_.Note(absl::StrCat(finite.message(), "; the run goes on"));
    noted_ = true;
    return absl::OkStatus();
  }

  // Of what could not be saved: the same where it is not finite.
  absl::Status JudgeSaved(const absl::Status& saved) {
    return absl::IsOutOfRange(saved) ? Judge(saved) : saved;
  }

 private:
  const bool stops_;
  const Reports& reports_;
  bool noted_ = false;
};

// What the steps of a run work with.
struct RunParts {
  Trainer& trainer;
  const TrainingRunOptions& options;
  Reports& reports;
  FiniteJudge& judge;
  Checkpoints& checkpoints;
  int64_t begun_ns;
};

// Whether this process wants the run to stop behind the step that it has done.
bool WantsToStop(const RunParts& run) {
  const TrainingRunOptions& options = run.options;
  if (options.stop_asked && options.stop_asked()) return true;
  if (options.exit_interval > 0 && run.trainer.steps_done() % options.exit_interval == 0) {
    return true;
  }
  const double seconds = static_cast<double>(NowNs() - run.begun_ns) / 1e9;
  return options.exit_seconds > 0 && seconds >= options.exit_seconds;
}

// A step with what all processes say of it, reported.
absl::StatusOr<StepNews> TakeStep(const RunParts& run, bool first) {
  MGC_ASSIGN_OR_RETURN(StepRecord record, run.trainer.Step());
  MGC_RETURN_IF_ERROR(run.judge.JudgeSaved(run.checkpoints.SettleWritten()));
  MGC_ASSIGN_OR_RETURN(
      StepNews news,
      ShareNews(run.trainer.executor().team(), {WantsToStop(run), run.checkpoints.IsDue(),
                                                record.peak_bytes, run.checkpoints.TakeStallNs()}));
  record.peak_bytes = news.peak_bytes;
  record.checkpoint_stall_ms = static_cast<double>(news.stall_ns) / 1e6;
  MGC_RETURN_IF_ERROR(run.reports.Take(record));
  if (first && !run.options.gradients_path.empty()) {
    MGC_RETURN_IF_ERROR(run.trainer.WriteGradients(run.options.gradients_path));
  }
  const absl::Status finite = CheckFinite(record);
  MGC_RETURN_IF_ERROR(run.judge.Judge(finite));
  news.finite = finite.ok();
  return news;
}

// A state that is not finite is not kept: the checkpoint before it is worth more. `last`: no step
// follows in which it could be written.
absl::Status SaveIfFinite(const RunParts& run, bool finite, bool last) {
  if (!run.checkpoints.saves()) return absl::OkStatus();
  if (finite) return run.judge.JudgeSaved(run.checkpoints.Save(/*in_background=*/!last));
  run.reports.Note(absl::StrCat("step ", run.trainer.steps_done(),
                                " is not saved: its loss or gradient is not finite"));
  return last ? run.judge.JudgeSaved(run.checkpoints.Settle()) : absl::OkStatus();
}

void AddPerplexity(const RunParts& run, EvalRecord* record) {
  if (run.options.perplexity) record->perplexity = std::exp(record->loss);
}

absl::Status Evaluate(const RunParts& run) {
  MGC_ASSIGN_OR_RETURN(EvalRecord result, run.trainer.Evaluate());
  if (run.options.eval_only) AddPerplexity(run, &result);
  MGC_RETURN_IF_ERROR(run.reports.Take(result));
  return run.judge.Judge(CheckFinite("the loss of the evaluation after", result.step, result.loss));
}

// Every document of the evaluation's text, and the mean over all that they count.
absl::Status EvaluateDocuments(const RunParts& run) {
  DocumentReader documents(*run.trainer.eval_text());
  EvalRecord all;
  all.step = run.trainer.steps_done();
  for (;;) {
    MGC_ASSIGN_OR_RETURN(const absl::optional<Document> document, documents.Next());
    if (!document.has_value()) break;
    MGC_ASSIGN_OR_RETURN(EvalRecord result, run.trainer.EvaluateText(document->text));
    result.document = document->number;
    AddPerplexity(run, &result);
    MGC_RETURN_IF_ERROR(run.reports.Take(result));
    all.loss += result.loss * static_cast<double>(result.tokens);
    all.samples += result.samples;
    all.tokens += result.tokens;
    const bool stops = run.options.stop_asked && run.options.stop_asked();
    MGC_ASSIGN_OR_RETURN(const StepNews news, ShareNews(run.trainer.executor().team(), {stops}));
    if (news.stop) {
      return absl::CancelledError(absl::StrCat("stopped after document ", document->number));
    }
  }
  if (all.tokens == 0) {
    return absl::InvalidArgumentError("the text to evaluate on has no document of two tokens");
  }
  all.loss /= static_cast<double>(all.tokens);
  AddPerplexity(run, &all);
  MGC_RETURN_IF_ERROR(run.reports.Take(all));
  return run.judge.Judge(CheckFinite("the loss of the evaluation after", all.step, all.loss));
}

absl::Status Steps(const RunParts& run) {
  if (run.options.eval_only) {
    return run.options.by_document ? EvaluateDocuments(run) : Evaluate(run);
  }
  const TrainingRunOptions& options = run.options;
  int64_t batch = run.trainer.executor().plan().global_batch_size;
  for (bool first = true; run.trainer.steps_done() < options.steps; first = false) {
    if (const int64_t next = run.trainer.next_batch(); next != batch) {
      run.reports.Note(absl::StrCat("from step ", run.trainer.steps_done() + 1, " on ", next,
                                    " samples a step"));
      batch = next;
    }
    MGC_ASSIGN_OR_RETURN(const StepNews news, TakeStep(run, first));
    const int64_t step = run.trainer.steps_done();
    const bool stops = news.stop && step < options.steps;
    const bool last = stops || step == options.steps;
    if (last || news.save) MGC_RETURN_IF_ERROR(SaveIfFinite(run, news.finite, last));
    if (stops) {
      return absl::CancelledError(absl::StrCat("stopped after step ", step,
                                               run.checkpoints.saves() ? "" : ", nothing saved"));
    }
    if (options.eval_interval > 0 && step % options.eval_interval == 0) {
      MGC_RETURN_IF_ERROR(Evaluate(run));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTraining(Trainer& trainer, const TrainingRunOptions& options) {
  const int64_t begun_ns = NowNs();
  MGC_RETURN_IF_ERROR(CheckRunOptions(trainer, options));
  Reports reports(options.reports, trainer.executor().team().is_lead());
  FiniteJudge judge(options.stop_on_nonfinite, reports);
  Checkpoints checkpoints(options.checkpoints, trainer,
                          [&reports](const std::string& line) { reports.Note(line); });
  MGC_RETURN_IF_ERROR(checkpoints.Open());
  MGC_RETURN_IF_ERROR(reports.Open(trainer.steps_done()));
  if (!options.eval_only && trainer.steps_done() >= options.steps) {
    reports.Note(absl::StrCat("all ", options.steps, " steps were done before"));
  }
  absl::Status ended = Steps({trainer, options, reports, judge, checkpoints, begun_ns});
  ended.Update(reports.Close(ended));
  // Numbers that are not finite are found by all processes alike; after other errors they may not
  // all come here.
  if (!ended.ok() && (absl::IsOutOfRange(ended) || trainer.executor().team().size() == 1)) {
    const absl::Status saved = checkpoints.Settle();
    if (!saved.ok()) reports.Note(std::string(saved.message()));
  }
  MGC_RETURN_IF_ERROR(ended);
  if (options.parameters_path.empty()) return absl::OkStatus();
  return trainer.WriteParameters(options.parameters_path);
}

}  // namespace mgc
