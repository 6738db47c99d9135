#include "runtime/train/option_texts.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/json.h"

namespace mgc {
namespace {

const char* NameOf(LrDecayStyle style) {
  switch (style) {
    case LrDecayStyle::kConstant:
      return "constant";
    case LrDecayStyle::kLinear:
      return "linear";
    case LrDecayStyle::kCosine:
      return "cosine";
    case LrDecayStyle::kInverseSquareRoot:
      return "inverse-square-root";
    case LrDecayStyle::kWsd:
      return "WSD";
  }
  return "";
}

const char* NameOf(WsdDecayStyle style) {
  switch (style) {
    case WsdDecayStyle::kExponential:
      return "exponential";
    case WsdDecayStyle::kLinear:
      return "linear";
    case WsdDecayStyle::kCosine:
      return "cosine";
    case WsdDecayStyle::kMinusSquareRoot:
      return "minus_sqrt";
  }
  return "";
}

}  // namespace

NamedTexts OptionTexts(const TrainOptions& o, const Plan& plan) {
  NamedTexts texts = {
      {"seed", absl::StrCat(o.seed)},
      {"global-batch-size", absl::StrCat(plan.global_batch_size)},
      {"seq-length", absl::StrCat(plan.seq_length)},
      {"lr", JsonNumber(o.lr.max_lr)},
      {"min-lr", JsonNumber(o.lr.min_lr)},
      {"lr-warmup-init", JsonNumber(o.lr.init_lr)},
      {"lr-warmup-samples", absl::StrCat(o.lr.warmup_samples)},
      {"lr-decay-style", NameOf(o.lr.style)},
      {"lr-decay-samples", absl::StrCat(o.lr.decay_samples)},
      {"weight-decay", JsonNumber(o.weight_decay.end)},
  };
  for (const HyperParameter& parameter : HyperParameters()) {
    if (!TakesScalar(plan, parameter.scalar)) continue;
    texts.emplace_back(parameter.flag, JsonNumber(ValueOf(o.hyper, parameter)));
  }
  if (!o.steps.empty()) {
    texts.emplace_back("step-batch-sizes",
                       absl::StrJoin(o.steps, " ", [](std::string* out, const StepsFrom& steps) {
                         absl::StrAppend(out, steps.sample, ":", steps.plan->global_batch_size);
                       }));
  }
  texts.emplace_back("clip-grad", JsonNumber(o.clip_grad));
  for (const auto& [flag, value] : plan.options) {
    const bool told = flag == "--optimizer" || absl::StartsWith(flag, "--lora-");
    if (told) texts.emplace_back(absl::StripPrefix(flag, "--"), value);
  }
  if (o.lr.style == LrDecayStyle::kWsd) {
    texts.emplace_back("lr-wsd-decay-style", NameOf(o.lr.wsd_style));
    texts.emplace_back("lr-wsd-decay-samples", absl::StrCat(o.lr.wsd_decay_samples));
  }
  if (!ScalesLoss(plan)) return texts;
  if (o.loss_scale.fixed.has_value()) {
    texts.emplace_back("loss-scale", JsonNumber(*o.loss_scale.fixed));
    return texts;
  }
  texts.emplace_back("min-loss-scale", JsonNumber(o.loss_scale.min));
  texts.emplace_back("loss-scale-window", absl::StrCat(o.loss_scale.window));
  texts.emplace_back("hysteresis", absl::StrCat(o.loss_scale.hysteresis));
  return texts;
}

std::vector<std::string> Changes(const std::string& what, const NamedTexts& before,
                                 const NamedTexts& now) {
  constexpr char kNone[] = "not given";
  const std::map<std::string, std::string> old(before.begin(), before.end());
  const std::map<std::string, std::string> current(now.begin(), now.end());
  std::vector<std::string> changes;
  const auto add = [&](const std::string& name, const std::string& was, const std::string& is) {
    if (was != is) changes.push_back(absl::StrCat(what, " ", name, " was ", was, ", is ", is));
  };
  for (const auto& [name, value] : now) {
    const auto found = old.find(name);
    add(name, found == old.end() ? kNone : found->second, value);
  }
  for (const auto& [name, value] : before) {
    if (current.count(name) == 0) add(name, value, kNone);
  }
  return changes;
}

}  // namespace mgc
