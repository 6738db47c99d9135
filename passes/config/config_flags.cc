#include "passes/config/config_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mgc {

std::vector<std::pair<std::string, std::string>> FlagsOf(const ParallelConfig& config,
                                                         const CheckedConfig& checked) {
  std::vector<std::pair<std::string, std::string>> flags = {
      {"--world-size", absl::StrCat(config.world_size)},
      {"--tp", absl::StrCat(config.tp)},
      {"--pp", absl::StrCat(config.pp)},
      {"--vp", absl::StrCat(checked.vp)},
      {"--order", config.order},
      {"--micro-batch-size", absl::StrCat(config.micro_batch_size)},
      {"--global-batch-size", absl::StrCat(config.global_batch_size)},
      {"--seq-length", absl::StrCat(config.seq_length)},
      {"--schedule", std::string(ToString(config.schedule))},
      {"--recompute", ToString(config.recompute)},
      {"--zero", absl::StrCat(config.zero)}};
  if (config.cp > 1) flags.push_back({"--cp", absl::StrCat(config.cp)});
  if (config.schedule == ScheduleKind::kInterleaved) {
    flags.push_back({"--group-size", absl::StrCat(checked.group_size)});
  }
  if (config.zero_group > 0) {
    flags.push_back({"--zero-group", absl::StrCat(config.zero_group)});
  }
  if (config.split_products > 1) {
    flags.push_back({"--split-products", absl::StrCat(config.split_products)});
  }
  if (!config.reshard_after_forward) flags.push_back({"--no-reshard-after-forward", ""});
  if (config.sequence_parallel) flags.push_back({"--sequence-parallel", ""});
  if (config.compute_type == DType::kBF16) flags.push_back({"--bf16", ""});
  if (config.compute_type == DType::kF16) flags.push_back({"--fp16", ""});
  if (config.gradient_sums != DType::kF32) {
    flags.push_back({"--grad-reduce-dtype", std::string(NameOf(config.gradient_sums))});
  }
  if (!config.optimizer.name.empty()) flags.push_back({"--optimizer", config.optimizer.name});
  if (!config.optimizer.groups.empty()) {
    flags.push_back({"--param-group", ToString(config.optimizer.groups)});
  }
  if (config.layout.layout) flags.push_back({"--pipeline-layout", *config.layout.layout});
  const auto& [layout, first, last, embedding, loss, cuts] = config.layout;
  if (first) flags.push_back({"--decoder-first-pipeline-num-layers", absl::StrCat(*first)});
  if (last) flags.push_back({"--decoder-last-pipeline-num-layers", absl::StrCat(*last)});
  if (embedding) flags.push_back({"--account-for-embedding-in-pipeline-split", ""});
  if (loss) flags.push_back({"--account-for-loss-in-pipeline-split", ""});
  if (!cuts.empty()) flags.push_back({"--cuts", absl::StrJoin(cuts, ",")});
  return flags;
}

std::string FlagsText(const ParallelConfig& config) {
  std::vector<std::string> words;
  const auto add = [&words](const char* flag, int64_t value, int64_t usual) {
    if (value != usual) words.push_back(absl::StrCat(flag, " ", value));
  };
  add("--tp", config.tp, 1);
  add("--cp", config.cp, 1);
  add("--pp", config.pp, 1);
  if (config.schedule != ScheduleKind::kOneFOneB) {
    words.push_back(absl::StrCat("--schedule ", ToString(config.schedule)));
  }
  add("--vp", config.vp, config.vp == 0 ? 0 : 1);
  add("--group-size", config.group_size, 0);
  add("--micro-batch-size", config.micro_batch_size, 0);
  if (config.sequence_parallel) words.push_back("--sequence-parallel");
  add("--zero", config.zero, 0);
  add("--zero-group", config.zero_group, 0);
  if (config.recompute != RecomputeKind::kNone) {
    words.push_back(absl::StrCat("--recompute ", ToString(config.recompute)));
  }
  if (config.layout.layout)
    words.push_back(absl::StrCat("--pipeline-layout ", *config.layout.layout));
  if (config.order != kDefaultAxisOrder) words.push_back(absl::StrCat("--order ", config.order));
  if (config.compute_type == DType::kBF16) words.push_back("--bf16");
  if (config.compute_type == DType::kF16) words.push_back("--fp16");
  return absl::StrJoin(words, " ");
}

}  // namespace mgc
