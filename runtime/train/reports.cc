#include "runtime/train/reports.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "runtime/run/trace.h"

namespace mgc {
namespace {

// A file that others scrape is not replaced more often.
constexpr int64_t kOpenMetricsPauseNs = 1'000'000'000;

// Waits of all steps that are noted at the end.
constexpr double kLeastWaitMs = 1000;
constexpr double kLeastWaitShare = 0.1;

}  // namespace

absl::Status Reports::Open(int64_t step) {
  if (!is_lead_) return absl::OkStatus();
  if (!options_.metrics_path.empty()) MGC_RETURN_IF_ERROR(OpenMetricsFile(step));
  if (!options_.tensorboard_dir.empty()) {
    MGC_ASSIGN_OR_RETURN(events_, EventFile::Create(options_.tensorboard_dir, step));
  }
  return absl::OkStatus();
}

absl::Status Reports::OpenMetricsFile(int64_t step) {
  const std::string& path = options_.metrics_path;
  MGC_ASSIGN_OR_RETURN(file_,
                       step > 0 ? MetricsFile::Continue(path, step) : MetricsFile::Create(path));
  if (!file_->earlier().empty()) {
    Note(absl::StrCat("the metrics of an earlier run are kept as ", EscapeBytes(file_->earlier())));
  }
  if (file_->dropped() > 0) {
    Note(absl::StrCat(EscapeBytes(path), " goes on behind step ", step, ": ", file_->dropped(),
                      " lines of later steps are dropped"));
  }
  return absl::OkStatus();
}

template <class Record>
absl::Status Reports::Write(const Record& record, const std::string& json) {
  if (file_.has_value()) MGC_RETURN_IF_ERROR(file_->Append(json));
  if (events_.has_value()) MGC_RETURN_IF_ERROR(events_->Add(record.step, ScalarsOf(record)));
  open_metrics_.Take(record);
  return WriteOpenMetrics(/*now=*/false);
}

absl::Status Reports::Take(const StepRecord& record) {
  ++steps_;
  if (record.left_out) ++left_out_;
  const bool finite = std::isfinite(record.loss) && std::isfinite(record.grad_norm);
  if (!finite && !record.left_out) ++not_finite_;
  ms_ += record.ms;
  data_wait_ms_ += record.data_wait_ms;
  checkpoint_stall_ms_ += record.checkpoint_stall_ms;
  if (!is_lead_) return absl::OkStatus();
  MGC_RETURN_IF_ERROR(Write(record, StepJson(record)));
  if (options_.on_step) options_.on_step(record);
  return absl::OkStatus();
}

absl::Status Reports::Take(const EvalRecord& record) {
  if (!is_lead_) return absl::OkStatus();
  MGC_RETURN_IF_ERROR(Write(record, EvalJson(record)));
  if (options_.on_eval) options_.on_eval(record);
  return absl::OkStatus();
}

void Reports::Note(const std::string& text) const {
  if (options_.on_note && is_lead_) options_.on_note(text);
}

absl::Status Reports::Close(const absl::Status& ended) {
  const std::string all = absl::StrCat(" of ", steps_, steps_ == 1 ? " step " : " steps ");
  if (left_out_ > 0) Note(absl::StrCat(left_out_, all, "left out: gradients overflowed"));
  if (not_finite_ > 0 && !absl::IsOutOfRange(ended)) {
    Note(absl::StrCat(not_finite_, all, "with a loss or gradient norm that is not finite"));
  }
  const auto note_wait = [this](absl::string_view what, double wait_ms) {
    if (wait_ms < kLeastWaitMs || wait_ms < kLeastWaitShare * ms_) return;
    Note(absl::StrFormat("training waited %.1f s for %s, its steps took %.1f s", wait_ms / 1e3,
                         what, ms_ / 1e3));
  };
  note_wait("data", data_wait_ms_);
  note_wait("checkpoints", checkpoint_stall_ms_);
  return is_lead_ ? WriteOpenMetrics(/*now=*/true) : absl::OkStatus();
}

absl::Status Reports::WriteOpenMetrics(bool now) {
  if (options_.open_metrics_path.empty()) return absl::OkStatus();
  const int64_t time = NowNs();
  if (!now && open_metrics_ns_ > 0 && time - open_metrics_ns_ < kOpenMetricsPauseNs) {
    return absl::OkStatus();
  }
  open_metrics_ns_ = time;
  return WriteFileAtomically(options_.open_metrics_path, open_metrics_.Text());
}

}  // namespace mgc
