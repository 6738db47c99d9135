#include "runtime/metrics/metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"

namespace mgc {
namespace {

// Waits that are as long, and that large a part of a step, are worth a reader's time.
constexpr double kLeastWaitMs = 100;
constexpr double kLeastWaitShare = 0.1;

// Three to four digits before a unit: "950", "95.0 k", "1.2 M".
std::string FormatRate(double rate) {
  if (rate >= 1e12) return absl::StrFormat("%.1f T", rate / 1e12);
  if (rate >= 1e9) return absl::StrFormat("%.1f G", rate / 1e9);
  if (rate >= 1e6) return absl::StrFormat("%.1f M", rate / 1e6);
  if (rate >= 1e4) return absl::StrFormat("%.1f k", rate / 1e3);
  return absl::StrFormat("%.0f", rate);
}

void AppendWait(absl::string_view what, double wait_ms, double step_ms, std::string* line) {
  if (wait_ms < std::max(kLeastWaitMs, kLeastWaitShare * step_ms)) return;
  absl::StrAppendFormat(line, " | %s %.1f ms", what, wait_ms);
}

void AppendTime(const StepRecord& r, std::string* line) {
  absl::StrAppendFormat(line, " | %.1f ms%s", r.ms, r.warm_up ? " warm-up" : "");
  if (r.predicted_ms.has_value() && *r.predicted_ms > 0) {
    absl::StrAppendFormat(line, " (plan %.1f, %+.1f%%)", *r.predicted_ms,
                          (r.ms / *r.predicted_ms - 1) * 100);
  }
}

}  // namespace

std::string StepLine(const StepRecord& r, absl::string_view counted) {
  std::string line = absl::StrFormat("step %d | loss %.4f", r.step, r.loss);
  for (const auto& [name, loss] : r.other_losses) {
    absl::StrAppendFormat(&line, " | %s %.4f", EscapeBytes(name), loss);
  }
  absl::StrAppendFormat(&line, " | grad norm %.3f", std::fabs(r.grad_norm));  // NaN has no sign
  if (r.loss_scale.has_value()) absl::StrAppend(&line, " | loss scale ", JsonNumber(*r.loss_scale));
  if (r.left_out) absl::StrAppend(&line, " | left out");
  absl::StrAppendFormat(&line, " | lr %.2e", r.lr);
  AppendTime(r, &line);
  absl::StrAppend(&line, " | ", FormatRate(r.tokens_per_second), " ", counted, "/s");
  if (r.flops_per_second.has_value()) {
    absl::StrAppend(&line, " | ", FormatRate(*r.flops_per_second), " FLOP/s");
  }
  if (r.peak_share.has_value()) {
    absl::StrAppendFormat(&line, " (%.1f%% of peak)", *r.peak_share * 100);
  }
  absl::StrAppend(&line, " | ", BytesText(r.peak_bytes));
  AppendWait("data wait", r.data_wait_ms, r.ms, &line);
  AppendWait("checkpoint stall", r.checkpoint_stall_ms, r.ms, &line);
  return line;
}

std::string StepJson(const StepRecord& r) {
  JsonWriter json(JsonStyle::kCompact);
  json.BeginObject().Integer("step", r.step).Number("loss", r.loss);
  if (!r.other_losses.empty()) {
    json.Key("other_losses").BeginObject();
    for (const auto& [name, loss] : r.other_losses) json.Number(name, loss);
    json.EndObject();
  }
  json.Number("grad_norm", r.grad_norm);
  if (r.loss_scale.has_value()) {
    json.Number("loss_scale", *r.loss_scale).Bool("left_out", r.left_out);
  }
  json.Number("lr", r.lr).Number("ms", r.ms);
  json.Number("tokens_per_second", r.tokens_per_second);
  if (r.predicted_ms.has_value()) json.Number("predicted_ms", *r.predicted_ms);
  if (r.flops_per_second.has_value()) json.Number("flops_per_second", *r.flops_per_second);
  if (r.peak_share.has_value()) json.Number("peak_share", *r.peak_share);
  json.Integer("peak_bytes", r.peak_bytes);
  if (r.warm_up) json.Bool("warm_up", true);
  if (r.data_wait_ms > 0) json.Number("data_wait_ms", r.data_wait_ms);
  if (r.checkpoint_stall_ms > 0) json.Number("checkpoint_stall_ms", r.checkpoint_stall_ms);
  json.EndObject();
  return std::move(json).Text();
}

std::string EvalLine(const EvalRecord& r) {
  const std::string perplexity =
      r.perplexity ? absl::StrFormat(" | perplexity %.2f", *r.perplexity) : "";
  if (r.document) {
    return absl::StrFormat("document %d | loss %.4f%s | %d tokens", *r.document, r.loss, perplexity,
                           r.tokens);
  }
  return absl::StrFormat("evaluation after step %d | loss %.4f%s | %d samples", r.step, r.loss,
                         perplexity, r.samples);
}

std::string EvalJson(const EvalRecord& r) {
  JsonWriter json(JsonStyle::kCompact);
  json.BeginObject().Integer("step", r.step).Number("eval_loss", r.loss);
  if (r.document) json.Integer("document", *r.document);
  if (r.perplexity) json.Number("eval_perplexity", *r.perplexity);
  json.Integer("eval_samples", r.samples).Integer("eval_tokens", r.tokens).EndObject();
  return std::move(json).Text();
}

}  // namespace mgc
