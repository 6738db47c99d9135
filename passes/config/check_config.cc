#include "passes/config/check_config.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ir/assemble.h"
#include "passes/config/nearest_legal.h"
#include "passes/config/rank_groups.h"
#include "passes/config/schedule_spec.h"

namespace mgc {
namespace {

// The largest tp or kv heads that a hint proposes; keeps the search short for absurd models.
constexpr int64_t kMaxHint = 1 << 14;

struct NamedSize {
  const char* rule;
  const char* name;
  int64_t value;
  int64_t least = 1;
  int64_t most = std::numeric_limits<int64_t>::max();
};

// G0, B1, M0, U2: values that no combination makes legal; other checks divide by them. The layer
// placement checks pp, vp and the number of layers.
Diagnostics CheckValues(const ParallelConfig& config, const ModelDims& model) {
  Diagnostics violations;
  const std::array<NamedSize, 13> sizes = {
      {{"G0", "world size", config.world_size},
       {"U3", "ZeRO group", config.zero_group, 0},
       {"U4", "pieces of products", config.split_products, 1, kMostPieces},
       {"G0", "tp", config.tp},
       {"G0", "cp", config.cp},
       {"G0", "ep", config.ep},
       {"B1", "micro-batch size", config.micro_batch_size},
       {"B1", "global batch size", config.global_batch_size},
       {"M0", "sequence length", config.seq_length},
       {"M0", "heads", model.heads, 0},
       {"M0", "kv heads", model.kv_heads, 0},
       {"M0", "ffn size", model.ffn, 0},
       {"M0", "hidden size", model.hidden, 0}}};
  for (const NamedSize& size : sizes) {
    if (size.value >= size.least && size.value <= size.most) continue;
    const int64_t nearest = size.value > size.most ? size.most : 1;
    violations.Add({size.rule, absl::StrCat(size.name, " is ", size.value), absl::StrCat(nearest)});
  }
  if (config.zero < 0 || config.zero > 3) {
    violations.Add(
        {"U2", absl::StrCat("ZeRO level ", config.zero, " does not exist"), "zero 0, 1, 2, 3"});
  }
  return violations;
}

// Which tp the model's dims allow: M1, M2, M4, M7 together, so that a hint breaks no other rule. A
// dim of size 0 allows any.
bool TpFits(const ParallelConfig& config, const ModelDims& model, int64_t tp) {
  return model.heads % tp == 0 && (model.kv_heads % tp == 0 || tp % model.kv_heads == 0) &&
         model.ffn % tp == 0 && (!config.sequence_parallel || config.seq_length % tp == 0);
}

void CheckTensorParallel(const ParallelConfig& config, const ModelDims& model,
                         Diagnostics* violations) {
  const int64_t tp = config.tp;
  const auto refuse = [&](const char* rule, std::string message) {
    const int64_t most = model.heads > 0 ? std::min(model.heads, kMaxHint) : kMaxHint;
    const std::string legal =
        NearestLegal(tp, most, [&](int64_t other) { return TpFits(config, model, other); });
    violations->Add({rule, std::move(message), absl::StrCat("tp ", legal)});
  };
  if (model.heads % tp != 0) {
    refuse("M1", absl::StrCat(model.heads, " heads are not divisible by tp ", tp));
  }
  if (model.kv_heads % tp != 0 && tp % model.kv_heads != 0) {
    refuse("M2", absl::StrCat("neither are ", model.kv_heads, " kv heads divisible by tp ", tp,
                              " nor tp by them"));
  }
  if (model.ffn % tp != 0) {
    refuse("M4", absl::StrCat("ffn size ", model.ffn, " is not divisible by tp ", tp));
  }
  if (config.sequence_parallel && tp == 1) {
    violations->Add({"G14", "sequence parallelism needs tp > 1, but tp is 1",
                     "no --sequence-parallel, or tp 2"});
  }
}

void CheckHeads(const ModelDims& model, Diagnostics* violations) {
  if (model.kv_heads > 0 && model.heads % model.kv_heads != 0) {
    violations->Add(
        {"M2",
         absl::StrCat(model.heads, " heads are not divisible by ", model.kv_heads, " kv heads"),
         absl::StrCat("kv heads ",
                      NearestLegal(model.kv_heads, std::min(model.heads, kMaxHint),
                                   [&](int64_t kv) { return model.heads % kv == 0; }))});
  }
  if (model.head_dim == 0 && model.heads > 0 && model.hidden % model.heads != 0) {
    violations->Add({"M3",
                     absl::StrCat("hidden size ", model.hidden, " is not divisible by ",
                                  model.heads, " heads and no head size is given"),
                     absl::StrCat("hidden size ", NearestMultiples(model.hidden, model.heads))});
  }
}

// M6, M7, M10 of a model whose samples are sequences of positions.
void CheckSequence(const ParallelConfig& config, const ModelDims& model, Diagnostics* violations) {
  const int64_t seq = config.seq_length;
  if (model.max_positions == 0) return;
  if (seq > model.max_positions) {
    violations->Add({"M10",
                     absl::StrCat("sequence length ", seq, " is above the model's ",
                                  model.max_positions, " positions"),
                     absl::StrCat("sequence length ", model.max_positions)});
  }
  if (seq % config.cp != 0) {
    violations->Add({"M6",
                     absl::StrCat("sequence length ", seq, " is not divisible by cp ", config.cp),
                     absl::StrCat("sequence length ", NearestMultiples(seq, config.cp))});
  }
  const int64_t shards = SaturatingMultiply(config.tp, config.cp);
  if (config.sequence_parallel && seq % shards != 0) {
    violations->Add(
        {"M7",
         absl::StrCat("sequence length ", seq, " is not divisible by ",
                      config.cp > 1 ? "tp * cp = " : "tp ", shards, " under sequence parallelism"),
         absl::StrCat("sequence length ", NearestMultiples(seq, shards))});
  }
}

void CheckGroups(const ParallelConfig& config, Diagnostics* violations) {
  violations->Append(CheckRankGroups(config));
  if (config.ep > 1) {
    violations->Add(
        {"G12", absl::StrCat("ep is ", config.ep, ", but the model has no experts"), "ep 1"});
  }
}

// U3, of the ranks along dp.
void CheckZeroGroup(const ParallelConfig& config, int64_t dp, Diagnostics* violations) {
  if (config.zero_group == 0 || dp == 0) return;
  const auto fits = [dp](int64_t ranks) { return dp % ranks == 0 && (ranks > 1 || dp == 1); };
  if (config.zero == 0) {
    violations->Add({"U3", absl::StrCat("a ZeRO group of ", config.zero_group, " and ZeRO level 0"),
                     "zero 1, 2, 3, or no ZeRO group"});
  } else if (!fits(config.zero_group)) {
    violations->Add({"U3",
                     absl::StrCat("ZeRO groups of ", config.zero_group, " do not share out dp ", dp,
                                  ": they divide it, and one rank has all pieces"),
                     absl::StrCat("ZeRO group ", NearestLegal(config.zero_group, dp, fits))});
  }
}

void CheckBatch(const ParallelConfig& config, const CheckedConfig& checked,
                Diagnostics* violations) {
  if (checked.dp == 0 || checked.micro_batches > 0) return;
  const int64_t samples = SaturatingMultiply(config.micro_batch_size, checked.dp);
  violations->Add(
      {"B2",
       absl::StrCat("global batch size ", config.global_batch_size,
                    " is not divisible by micro-batch size ", config.micro_batch_size, " * dp ",
                    checked.dp, " = ", samples),
       absl::StrCat("global batch size ", NearestMultiples(config.global_batch_size, samples))});
}

// The most samples that a micro-batch of these sequences may have on a data-parallel rank, such
// that its largest activation stays a legal value.
int64_t MaxMicroBatchSize(const ParallelConfig& config, const ModelDims& model, int64_t dp,
                          int64_t seq) {
  const int64_t cut = std::max({model.ffn, model.vocab, SaturatingMultiply(model.heads, seq),
                                SaturatingMultiply(model.heads, model.head_dim)});
  const int64_t least = std::max<int64_t>(model.hidden, 1);
  const int64_t whole = SaturatingMultiply(seq, std::max(least, cut));
  const int64_t tile = SaturatingMultiply(seq, std::max(least, cut / config.tp));
  return std::min(kMaxElements / SaturatingMultiply(whole, dp), kMaxTileElements / tile);
}

// T3; a sequence above the model's positions is refused by M10 and counts as the longest legal one.
void CheckActivations(const ParallelConfig& config, const ModelDims& model, int64_t dp,
                      Diagnostics* violations) {
  if (dp == 0 || model.max_positions == 0) return;
  const int64_t seq = std::min(config.seq_length, model.max_positions);
  const int64_t most = MaxMicroBatchSize(config, model, dp, seq);
  if (config.micro_batch_size <= most) return;
  std::string legal = absl::StrCat("micro-batch size ", most);
  if (most == 0) {
    int64_t fits = 0;
    for (int64_t step = int64_t{1} << 40; step > 0; step /= 2) {
      if (MaxMicroBatchSize(config, model, dp, fits + step) >= 1) fits += step;
    }
    legal = absl::StrCat("micro-batch size 1 and sequence length ", fits);
  }
  violations->Add({"T3",
                   absl::StrCat("micro-batch size ", config.micro_batch_size,
                                " with sequence length ", seq, " on dp ", dp,
                                " makes a value of more than 2^50 elements, or of 2^42 on a rank"),
                   std::move(legal)});
}

// The schedule's own rules; a group size can only be judged when the micro-batches are known.
void CheckPipeline(const ParallelConfig& config, CheckedConfig* checked) {
  if (config.group_size > 0 && config.schedule != ScheduleKind::kInterleaved) {
    checked->violations.Add(
        {"S3",
         absl::StrCat("group size ", config.group_size, " needs schedule interleaved, not ",
                      ToString(config.schedule)),
         "schedule interleaved, or no group size"});
  }
  ScheduleSpec spec{config.schedule, config.pp, checked->vp, 1, 0};
  if (checked->micro_batches > 0) {
    spec.micro_batches = checked->micro_batches;
    spec.group_size = config.group_size;
  }
  checked->violations.Append(CheckSchedule(spec));
  checked->group_size = config.group_size > 0 ? config.group_size
                                              : ChooseGroupSize(config.pp, checked->micro_batches);
}

// P19.
void CheckRecomputation(const ParallelConfig& config, const ModelDims& model,
                        Diagnostics* violations) {
  const auto layers = static_cast<int64_t>(config.recompute.by_layer().size());
  if (layers == 0 || layers == model.layers) return;
  violations->Add({"P19",
                   absl::StrCat("recompute ", ToString(config.recompute), " is of ", layers,
                                " layers, the model has ", model.layers),
                   absl::StrCat("kinds of ", model.layers, " layers, or one of all")});
}

}  // namespace

CheckedConfig CheckConfig(const ParallelConfig& config, const ModelDims& model) {
  CheckedConfig checked;
  checked.violations = CheckValues(config, model);
  LayerPlacementResult placed = PlaceLayers(
      {model.layers, /*mtp_layers=*/0, config.pp, config.vp, config.layout, model.places});
  const bool values_ok = checked.violations.empty() && config.pp >= 1;
  if (values_ok) {
    checked.dp = DataParallelSize(config);
    checked.micro_batches = MicroBatchesPerStep(config);
    CheckGroups(config, &checked.violations);
    CheckZeroGroup(config, checked.dp, &checked.violations);
    CheckHeads(model, &checked.violations);
    CheckTensorParallel(config, model, &checked.violations);
    CheckSequence(config, model, &checked.violations);
    CheckActivations(config, model, checked.dp, &checked.violations);
    CheckBatch(config, checked, &checked.violations);
    CheckRecomputation(config, model, &checked.violations);
  }
  checked.placement = std::move(placed.placement);
  checked.vp = config.vp > 0 ? config.vp : std::max<int64_t>(checked.placement.vp, 1);
  checked.violations.Append(placed.violations);
  if (values_ok) CheckPipeline(config, &checked);
  return checked;
}

}  // namespace mgc
