#include "tools/cli/parallel_flags.h"

#include <algorithm>
#include <iostream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "graph/ir/optimizers.h"
#include "passes/config/layout_string.h"
#include "passes/config/nearest_legal.h"
#include "passes/config/place_layers.h"
#include "passes/config/rank_groups.h"
#include "tools/cli/output.h"

namespace mgc {
namespace {

constexpr char kTpPpDpOrder[] = "tp-cp-ep-pp-dp";
constexpr IntegerBounds kRankBounds = {1, kMaxWorldSize};
constexpr IntegerBounds kStageBounds = {1, kMaxPipelineSize};
constexpr IntegerBounds kAnySize = {};

// For a flag, the rules that read its value.
struct FlagRules {
  const char* flag;
  std::vector<absl::string_view> rules;
};

const std::vector<FlagRules>& RulesByFlag() {
  static const auto* rules = new std::vector<FlagRules>{
      {"--world-size", {"G1", "G2", "G5", "G6", "B2", "P13", "S2", "T1", "T3"}},
      {"--tp",
       {"G1", "G2", "G3", "G5", "G6", "G14", "M1", "M2", "M4", "M7", "B2", "P13", "S2", "T1",
        "T3"}},
      {"--cp", {"G1", "G3", "G5", "G6", "M6", "M7", "B2", "P13", "S2", "T1", "T3"}},
      {"--ep", {"G2", "G3", "G5", "G6", "G12"}},
      {"--etp", {"G2", "G5", "G6"}},
      {"--pp", {"G1", "G2", "G3", "G5", "G6",  "G10", "B2", "P0", "P2", "P3",
                "P5", "P6", "P7", "P8", "P13", "P18", "S1", "S2", "T1", "T3"}},
      {"--order", {"G3", "G5", "G6"}},
      {"--vp", {"G10", "P0", "P2", "P3", "P6", "P13", "P18", "S1", "S2"}},
      {"--schedule", {"S1", "S3", "P13"}},
      {"--group-size", {"S3", "P13"}},
      {"--micro-batches", {"P13", "S2"}},
      {"--micro-batch-size", {"B2", "P13", "S2", "T1", "T3"}},
      {"--global-batch-size", {"B2", "P13", "S2"}},
      {"--seq-length", {"M6", "M7", "M10", "T2", "T3"}},
      {"--pipeline-layout", {"G10", "P2", "P3", "P18", "S1", "S2"}},
      {"--cuts", {"P18"}},
      {"--zero", {"U3"}},
      {"--zero-group", {"U3"}},
      {"--decoder-first-pipeline-num-layers", {"P6", "P7", "P8", "P18"}},
      {"--decoder-last-pipeline-num-layers", {"P6", "P7", "P8", "P18"}},
  };
  return *rules;
}

void AddOptimizerFlags(Flags* flags, ParallelFlags* out) {
  std::vector<absl::string_view> names;
  for (const Optimizer& optimizer : Optimizers()) names.push_back(optimizer.name);
  flags->Choice("--optimizer", names,
                "what steps the parameters; its rates are mgc-run's flags (default: adamw)",
                &out->optimizer);
  flags->Texts("--param-group", "PATTERN:lr=F,decay=F",
               "multiplies rate and weight decay of parameters whose names match, * being any "
               "characters",
               &out->param_groups);
}

void AddLayoutFlags(Flags* flags, ParallelFlags* out) {
  flags->Section("Layers on stages (without these: as even as possible, the ends shortest)");
  flags->Text("--pipeline-layout,--pipeline-model-parallel-layout", "LAYOUT",
              "stages by hand: E embedding, t layer, L head, | ends a stage, as in Et*3|(tt|)*2tL",
              &out->layout);
  flags->Integer("--decoder-first-pipeline-num-layers", "layers of the first pipeline rank",
                 kAnySize, "P7", &out->first_layers);
  flags->Integer("--decoder-last-pipeline-num-layers", "layers of the last pipeline rank", kAnySize,
                 "P7", &out->last_layers);
  flags->Switch("--account-for-embedding-in-pipeline-split", "the embedding counts as a layer",
                &out->account_for_embedding);
  flags->Switch("--account-for-loss-in-pipeline-split", "head and loss count as a layer",
                &out->account_for_loss);
  flags->Text("--cuts", "VALUE,VALUE",
              "of a graph that names no layers: the values behind which stages end, one for each "
              "but the last (default: by cost; mgc-plan cuts lists the places)",
              &out->cuts);
}

}  // namespace

void AddMeshFlags(Flags* flags, ParallelFlags* out) {
  flags->Section("Ranks");
  flags->Integer("--world-size", "ranks in all (default: tp * pp * cp)", kRankBounds, "G0",
                 &out->world_size);
  flags->Integer("--tp,--tensor-model-parallel-size", "tensor parallelism (default 1)", kRankBounds,
                 "G0", &out->tp);
  flags->Integer("--cp,--context-parallel-size",
                 "context parallelism: the sequence cut over this many ranks (default 1)",
                 kRankBounds, "G0", &out->cp);
  flags->Integer("--ep,--expert-model-parallel-size", "expert parallelism (default 1)", kRankBounds,
                 "G0", &out->ep);
  flags->Integer("--etp,--expert-tensor-parallel-size",
                 "tensor parallelism inside experts (default: tp)", kRankBounds, "G0", &out->etp);
  flags->Text("--order", "ORDER",
              "axes from fastest to slowest varying rank (default tp-cp-ep-dp-pp)", &out->order);
  flags->Switch("--use-tp-pp-dp-mapping", "the order tp-cp-ep-pp-dp", &out->tp_pp_dp_order);
}

void AddScheduleFlags(Flags* flags, ParallelFlags* out) {
  flags->Section("Pipeline");
  flags->Integer("--pp,--pipeline-model-parallel-size", "pipeline parallelism (default 1)",
                 kStageBounds, "G0", &out->pp);
  flags->Integer(
      "--vp,--virtual-pipeline-model-parallel-size,"
      "--num-virtual-stages-per-pipeline-rank",
      "chunks per rank; more than 1 needs schedule interleaved (default 1)", kStageBounds, "P0",
      &out->vp);
  flags->Choice("--schedule", {"gpipe", "1f1b", "interleaved"},
                "order of micro-batches "
                "(default 1f1b)",
                &out->schedule);
  flags->Integer(
      "--group-size,--microbatch-group-size-per-virtual-pipeline-stage",
      "micro-batches that pass a chunk in a row, interleaved only (default: the smallest "
      "with an ideal bubble)",
      kAnySize, "S0", &out->group_size);
}

void AddTrainingFlags(Flags* flags, ParallelFlags* out) {
  flags->Section("Batch");
  flags->Integer("--micro-batch-size",
                 "samples per data-parallel rank at a time (default 1; of a graph in text "
                 "its own, shared by the ranks)",
                 kAnySize, "B1", &out->micro_batch_size);
  flags->Integer("--global-batch-size", "samples per step (default: micro-batch size * dp)",
                 kAnySize, "B1", &out->global_batch_size);
  flags->Switch("--decrease-batch-size-if-needed",
                "cut the global batch down to a multiple of micro-batch size * dp",
                &out->decrease_batch_size);
  flags->Integer("--seq-length", "tokens per sample (default: the model's)", kAnySize, "M0",
                 &out->seq_length);
  flags->Section("Layout and memory");
  flags->Text(
      "--strategy", "NAME",
      "which axes cut which dims: a preset (megatron, the default), a file, or, of mgc-compile, "
      "classes: the dims of least predicted time",
      &out->strategy);
  flags->Switch("--allow-replicated",
                "accept what comes to nothing: an axis that cuts no dim, recomputation of nothing",
                &out->allow_replicated);
  flags->Switch("--sequence-parallel", "cut the sequence over tp outside attention and MLP",
                &out->sequence_parallel);
  flags->Text("--recompute,--recompute-granularity", "KIND[*N],...",
              "what backward computes again instead of keeping it: none, selective, the core of "
              "attention, or full, whole layers; or a kind for every layer in turn: full*2,none*4, "
              "(full,none)*3 (default none)",
              &out->recompute);
  flags->Integer("--split-products",
                 "run a layer's forward products beside their own collectives, in up to this many "
                 "pieces of rows (default 1)",
                 {1, kMostPieces}, "U4", &out->split_products);
  flags->Choice("--zero", {"0", "1", "2", "3"},
                "ZeRO level: 1 cuts parameters between steps and the optimizer's state over dp, 2 "
                "sums of gradients too, 3 parameters also while a step runs (default 0)",
                &out->zero);
  flags->Integer("--zero-group",
                 "ranks along dp that share pieces, neighbours; groups hold copies (default: all)",
                 kAnySize, "U3", &out->zero_group);
  flags->Switch("--no-reshard-after-forward",
                "with ZeRO 3, keep what forward has gathered for backward; it is gathered once a "
                "step then, as with ZeRO 2",
                &out->no_reshard_after_forward);
  flags->Switch("--bf16",
                "compute products and what follows from them in bf16; parameters, sums, losses and "
                "the optimizer stay in f32",
                &out->bf16);
  flags->Switch("--fp16",
                "the same in f16, with a loss scale that follows overflows (mgc-run's flags)",
                &out->fp16);
  flags->Choice("--grad-reduce-dtype", {"f32", "bf16"},
                "in which gradients are summed over ranks that hold other data; before and behind "
                "that they are f32 (default f32)",
                &out->grad_reduce_dtype);
  AddOptimizerFlags(flags, out);
  flags->Switch("--use-distributed-optimizer", "the same as --zero 1", &out->distributed_optimizer);
  flags->Integer("--make-vocab-size-divisible-by",
                 "a rank's vocabulary rows are padded to a multiple of this (default 1)",
                 {1, int64_t{1} << 24}, "F3", &out->vocab_multiple);
  AddLayoutFlags(flags, out);
}

void CheckContradictions(const ParallelFlags& flags, ParsedFlags* parsed) {
  if (flags.order && *flags.order != kTpPpDpOrder && flags.tp_pp_dp_order) {
    parsed->errors.Add(
        {"F7",
         absl::StrCat("--order ", *flags.order, " contradicts --use-tp-pp-dp-mapping, the order ",
                      kTpPpDpOrder),
         "one of the two"});
    parsed->bad_flags.push_back("--order");
  }
  if (flags.bf16 && flags.fp16) {
    parsed->errors.Add(
        {"F7", "--bf16 contradicts --fp16: a step computes in one of them", "one of the two"});
  }
  if (flags.zero == "0" && flags.distributed_optimizer) {
    parsed->errors.Add({"F7",
                        "--zero 0 contradicts --use-distributed-optimizer, the same as --zero 1",
                        "one of the two"});
  }
  if (flags.no_reshard_after_forward && flags.zero != "3") {
    parsed->errors.Add({"F7",
                        "--no-reshard-after-forward is about parameters that are gathered for each "
                        "forward, those of --zero 3",
                        "--zero 3 as well, or neither"});
  }
}

void CheckWords(ParallelFlags* flags, ParsedFlags* parsed) {
  CheckContradictions(*flags, parsed);
  if (flags->order.has_value()) {
    if (absl::Status status = CheckAxisOrder(*flags->order); !status.ok()) {
      parsed->errors.Add(
          {"G0",
           absl::StrCat("--order is ", *flags->order,
                        ", must be names out of tp, cp, ep, dp, pp, each once, joined by -"),
           kDefaultAxisOrder});
      parsed->bad_flags.push_back("--order");
      flags->order.reset();
    }
  }
  if (flags->layout.has_value()) {
    if (const auto stages = ParseLayoutString(*flags->layout); !stages.ok()) {
      parsed->errors.Add({"P3", std::string(stages.status().message()), "E...L"});
      parsed->bad_flags.push_back("--pipeline-layout");
      flags->layout.reset();
    }
  }
  if (flags->recompute.has_value()) {
    if (const auto kinds = ParseRecomputation(*flags->recompute); !kinds.ok()) {
      parsed->errors.Add({"F4", absl::StrCat("--recompute: ", kinds.status().message()),
                          "none, selective, full, full*2,none*4"});
      parsed->bad_flags.push_back("--recompute");
      flags->recompute.reset();
    }
  }
  for (const std::string& group : flags->param_groups) {
    if (const auto read = ParseParamGroups(group); !read.ok()) {
      parsed->errors.Add(
          {"F4", absl::StrCat("--param-group ", EscapeBytes(group), ": ", read.status().message()),
           "'*.norm*:lr=0.5,decay=0'"});
      parsed->bad_flags.push_back("--param-group");
    }
  }
  if (flags->cuts.has_value()) {
    const std::vector<std::string> names = absl::StrSplit(*flags->cuts, ',');
    if (std::count(names.begin(), names.end(), "") > 0) {
      parsed->errors.Add({"F5", absl::StrCat("--cuts is ", *flags->cuts, ", with an empty name"),
                          "names of values, joined by ,"});
      parsed->bad_flags.push_back("--cuts");
      flags->cuts.reset();
    }
  }
}

ParallelConfig ConfigOf(const ParallelFlags& flags, int64_t seq_length) {
  ParallelConfig config;
  config.tp = flags.tp.value_or(1);
  config.pp = flags.pp.value_or(1);
  config.cp = flags.cp.value_or(1);
  config.ep = flags.ep.value_or(1);
  config.etp = flags.etp.value_or(0);
  config.vp = flags.vp.value_or(0);
  config.world_size = flags.world_size.value_or(
      SaturatingMultiply(config.tp, SaturatingMultiply(config.pp, config.cp)));
  config.order = flags.order.value_or(flags.tp_pp_dp_order ? kTpPpDpOrder : kDefaultAxisOrder);
  config.sequence_parallel = flags.sequence_parallel;
  config.micro_batch_size = flags.micro_batch_size.value_or(1);
  config.global_batch_size = flags.global_batch_size.value_or(
      SaturatingMultiply(config.micro_batch_size, std::max<int64_t>(DataParallelSize(config), 1)));
  const int64_t whole = SaturatingMultiply(config.micro_batch_size, DataParallelSize(config));
  if (flags.decrease_batch_size && whole > 0 && config.global_batch_size >= whole) {
    config.global_batch_size -= config.global_batch_size % whole;
  }
  config.seq_length = flags.seq_length.value_or(seq_length);
  config.schedule = *ParseScheduleKind(flags.schedule.value_or("1f1b"));
  config.recompute = *ParseRecomputation(flags.recompute.value_or("none"));
  config.zero = flags.zero.has_value() ? (*flags.zero)[0] - '0' : flags.distributed_optimizer;
  config.zero_group = flags.zero_group.value_or(0);
  config.reshard_after_forward = !flags.no_reshard_after_forward;
  config.group_size = flags.group_size.value_or(0);
  config.split_products = flags.split_products.value_or(1);
  config.allow_replicated = flags.allow_replicated;
  config.optimizer.name = flags.optimizer.value_or("");
  for (const std::string& text : flags.param_groups) {
    const auto groups = ParseParamGroups(text);
    if (!groups.ok()) continue;  // CheckWords says so
    config.optimizer.groups.insert(config.optimizer.groups.end(), groups->begin(), groups->end());
  }
  if (flags.bf16) config.compute_type = DType::kBF16;
  if (flags.fp16) config.compute_type = DType::kF16;
  ParseDType(flags.grad_reduce_dtype.value_or("f32"), &config.gradient_sums);
  if (flags.layout.has_value()) config.layout.layout = *flags.layout;
  if (flags.cuts.has_value()) config.layout.cuts = absl::StrSplit(*flags.cuts, ',');
  if (flags.first_layers.has_value()) config.layout.decoder_first_layers = *flags.first_layers;
  if (flags.last_layers.has_value()) config.layout.decoder_last_layers = *flags.last_layers;
  config.layout.account_for_embedding = flags.account_for_embedding;
  config.layout.account_for_loss = flags.account_for_loss;
  return config;
}

Diagnostics WithoutRulesOf(const std::vector<std::string>& bad_flags,
                           const Diagnostics& violations) {
  std::set<absl::string_view> rules;
  for (const FlagRules& entry : RulesByFlag()) {
    if (std::count(bad_flags.begin(), bad_flags.end(), entry.flag) == 0) continue;
    rules.insert(entry.rules.begin(), entry.rules.end());
  }
  Diagnostics others;
  for (const Diagnostic& violation : violations) {
    if (rules.count(violation.label) == 0) others.Add(violation);
  }
  others.LeaveOut(violations.left_out());
  return others;
}

int Refuse(const Diagnostics& usage, const Diagnostics& combination, absl::string_view command) {
  PrintErrors(usage);
  PrintErrors(combination);
  if (usage.empty()) return kExitInfeasible;
  std::cerr << "all flags: " << command << " --help\n";
  return kExitUsage;
}

}  // namespace mgc
