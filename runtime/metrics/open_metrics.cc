#include "runtime/metrics/open_metrics.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "graph/base/file.h"
#include "graph/base/json.h"

namespace mgc {
namespace {

constexpr double kMsPerSecond = 1e3;

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return JsonNumber(value);
}

// Writes families, each in one piece.
class Families {
 public:
  // `unit`: empty, or what the name ends with.
  Families& Begin(absl::string_view name, absl::string_view type, absl::string_view unit,
                  absl::string_view help) {
    name_ = absl::StrCat("mgc_", name);
    absl::StrAppend(&text_, "# TYPE ", name_, " ", type, "\n");
    if (!unit.empty()) absl::StrAppend(&text_, "# UNIT ", name_, " ", unit, "\n");
    absl::StrAppend(&text_, "# HELP ", name_, " ", help, "\n");
    return *this;
  }
  void Sample(absl::string_view behind_name, double value) {
    absl::StrAppend(&text_, name_, behind_name, " ", NumberText(value), "\n");
  }
  void Gauge(absl::string_view name, absl::string_view unit, absl::string_view help, double value) {
    Begin(name, "gauge", unit, help).Sample("", value);
  }
  void Counter(absl::string_view name, absl::string_view unit, absl::string_view help,
               double value) {
    Begin(name, "counter", unit, help).Sample("_total", value);
  }
  std::string End() && { return absl::StrCat(text_, "# EOF\n"); }

 private:
  std::string text_;
  std::string name_;
};

void AddLosses(const StepRecord& r, Families* families) {
  families->Gauge("loss", "", "Mean loss of the last step, before its update.", r.loss);
  if (r.other_losses.empty()) return;
  families->Begin("other_loss", "gauge", "", "Loss terms behind the first.");
  for (const auto& [name, loss] : r.other_losses) {
    const std::string term =
        absl::StrReplaceAll(EscapeBytes(name), {{"\\", "\\\\"}, {"\"", "\\\""}});
    families->Sample(absl::StrCat("{term=\"", term, "\"}"), loss);
  }
}

void AddRates(const StepRecord& r, Families* families) {
  families->Gauge("step_seconds", "seconds", "Wall time of the last step.", r.ms / kMsPerSecond);
  if (r.predicted_ms.has_value()) {
    families->Gauge("predicted_step_seconds", "seconds", "What the plan predicts for a step.",
                    *r.predicted_ms / kMsPerSecond);
  }
  families->Gauge("tokens_per_second", "", "What the model counts, of all ranks.",
                  r.tokens_per_second);
  if (r.flops_per_second.has_value()) {
    families->Gauge("flops_per_second", "", "Floating-point operations of all ranks.",
                    *r.flops_per_second);
  }
  if (r.peak_share.has_value()) {
    families->Gauge("peak_ratio", "ratio", "Share of what the devices reach at most.",
                    *r.peak_share);
  }
  families->Gauge("peak_memory_bytes", "bytes", "Of the rank that uses most.",
                  static_cast<double>(r.peak_bytes));
}

}  // namespace

void OpenMetrics::Take(const StepRecord& record) {
  step_ = record;
  tokens_ += record.tokens;
  data_wait_seconds_ += record.data_wait_ms / kMsPerSecond;
  checkpoint_stall_seconds_ += record.checkpoint_stall_ms / kMsPerSecond;
  if (record.left_out) ++left_out_;
}

std::string OpenMetrics::Text() const {
  Families families;
  if (step_.has_value()) {
    const StepRecord& r = *step_;
    families.Counter("steps", "", "Steps done, those before a resume included.",
                     static_cast<double>(r.step));
    families.Counter("steps_left_out", "", "Steps whose gradients overflowed.",
                     static_cast<double>(left_out_));
    families.Counter("tokens", "", "What the model counts, trained on by this process.", tokens_);
    families.Counter("data_wait_seconds", "seconds", "Waits for data.", data_wait_seconds_);
    families.Counter("checkpoint_stall_seconds", "seconds", "Waits for checkpoints.",
                     checkpoint_stall_seconds_);
    AddLosses(r, &families);
    families.Gauge("gradient_norm", "", "Of the whole gradient, before clipping.", r.grad_norm);
    families.Gauge("learning_rate", "", "Of the last step.", r.lr);
    if (r.loss_scale.has_value()) {
      families.Gauge("loss_scale", "", "Of the next step.", *r.loss_scale);
    }
    AddRates(r, &families);
  }
  if (eval_.has_value()) {
    families.Gauge("eval_loss", "", "Mean loss of the last evaluation.", eval_->loss);
  }
  return std::move(families).End();
}

}  // namespace mgc
