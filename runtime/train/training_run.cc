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
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "runtime/train/metrics_file.h"

namespace mgc {
namespace {

absl::Status CheckRunOptions(const Trainer& trainer, const TrainingRunOptions& options) {
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

// Takes what a run reports to the file and the callbacks, in the process that speaks for all.
class Reports {
 public:
  Reports(const TrainingRunOptions& options, bool is_lead) : options_(options), is_lead_(is_lead) {}

  absl::Status Open() {
    if (options_.metrics_path.empty() || !is_lead_) return absl::OkStatus();
    MGC_ASSIGN_OR_RETURN(file_, MetricsFile::Create(options_.metrics_path));
    if (!file_->earlier().empty()) {
      Note(absl::StrCat("the metrics of an earlier run are kept as ",
                        EscapeBytes(file_->earlier())));
    }
    return absl::OkStatus();
  }

  absl::Status Take(const StepRecord& record) {
    if (file_.has_value()) MGC_RETURN_IF_ERROR(file_->Append(StepJson(record)));
    if (options_.on_step && is_lead_) options_.on_step(record);
    return absl::OkStatus();
  }

  absl::Status Take(const EvalRecord& record) {
    if (file_.has_value()) MGC_RETURN_IF_ERROR(file_->Append(EvalJson(record)));
    if (options_.on_eval && is_lead_) options_.on_eval(record);
    return absl::OkStatus();
  }

  // The error of a number that is not finite ends the run, or is noted the first time.
  absl::Status Judge(const absl::Status& finite) {
    if (finite.ok() || options_.stop_on_nonfinite) return finite;
    if (!noted_nonfinite_) Note(absl::StrCat(finite.message(), "; the run goes on"));
    noted_nonfinite_ = true;
    return absl::OkStatus();
  }

  // Of what could not be saved: the same where it is not finite.
  absl::Status JudgeSaved(const absl::Status& saved) {
    return absl::IsOutOfRange(saved) ? Judge(saved) : saved;
  }

  void Note(const std::string& text) const {
    if (options_.on_note && is_lead_) options_.on_note(text);
  }

 private:
  const TrainingRunOptions& options_;
  const bool is_lead_;
  absl::optional<MetricsFile> file_;
  bool noted_nonfinite_ = false;
};

// A step with what all processes say of it, reported.
absl::StatusOr<StepNews> TakeStep(Trainer& trainer, const TrainingRunOptions& options, bool first,
                                  Reports& reports, Checkpoints& checkpoints) {
  MGC_ASSIGN_OR_RETURN(StepRecord record, trainer.Step());
  MGC_RETURN_IF_ERROR(reports.JudgeSaved(checkpoints.Settle()));
  const bool asked = options.stop_asked && options.stop_asked();
  MGC_ASSIGN_OR_RETURN(StepNews news, ShareNews(trainer.executor().team(),
                                                {asked, checkpoints.IsDue(), record.peak_bytes,
                                                 checkpoints.TakeStallNs()}));
  record.peak_bytes = news.peak_bytes;
  record.checkpoint_stall_ms = static_cast<double>(news.stall_ns) / 1e6;
  MGC_RETURN_IF_ERROR(reports.Take(record));
  if (first && !options.gradients_path.empty()) {
    MGC_RETURN_IF_ERROR(trainer.WriteGradients(options.gradients_path));
  }
  const absl::Status finite = CheckFinite(record);
  MGC_RETURN_IF_ERROR(reports.Judge(finite));
  news.finite = finite.ok();
  return news;
}

// A state that is not finite is not kept: the checkpoint before it is worth more. `last`: no step
// follows in which it could be written.
absl::Status SaveIfFinite(bool finite, bool last, int64_t step, Reports& reports,
                          Checkpoints& checkpoints) {
  if (!checkpoints.saves()) return absl::OkStatus();
  if (finite) {
    return reports.JudgeSaved(checkpoints.Save(/*in_background=*/!last));
  }
  reports.Note(absl::StrCat("step ", step, " is not saved: its loss or gradient is not finite"));
  return absl::OkStatus();
}

absl::Status Evaluate(Trainer& trainer, Reports& reports) {
  MGC_ASSIGN_OR_RETURN(const EvalRecord result, trainer.Evaluate());
  MGC_RETURN_IF_ERROR(reports.Take(result));
  return reports.Judge(CheckFinite("the loss of the evaluation after", result.step, result.loss));
}

absl::Status Steps(Trainer& trainer, const TrainingRunOptions& options, Reports& reports,
                   Checkpoints& checkpoints) {
  for (bool first = true; trainer.steps_done() < options.steps; first = false) {
    MGC_ASSIGN_OR_RETURN(const StepNews news,
                         TakeStep(trainer, options, first, reports, checkpoints));
    const int64_t step = trainer.steps_done();
    const bool stops = news.stop && step < options.steps;
    const bool last = stops || step == options.steps;
    if (last || news.save) {
      MGC_RETURN_IF_ERROR(SaveIfFinite(news.finite, last, step, reports, checkpoints));
    }
    if (stops) {
      return absl::CancelledError(
          absl::StrCat("stopped after step ", step, checkpoints.saves() ? "" : ", nothing saved"));
    }
    if (options.eval_interval > 0 && step % options.eval_interval == 0) {
      MGC_RETURN_IF_ERROR(Evaluate(trainer, reports));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTraining(Trainer& trainer, const TrainingRunOptions& options) {
  MGC_RETURN_IF_ERROR(CheckRunOptions(trainer, options));
  Reports reports(options, trainer.executor().team().is_lead());
  Checkpoints checkpoints(options.checkpoints, trainer,
                          [&reports](const std::string& line) { reports.Note(line); });
  MGC_RETURN_IF_ERROR(checkpoints.Open());
  MGC_RETURN_IF_ERROR(reports.Open());
  if (trainer.steps_done() >= options.steps) {
    reports.Note(absl::StrCat("all ", options.steps, " steps were done before"));
  }
  const absl::Status ended = Steps(trainer, options, reports, checkpoints);
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
