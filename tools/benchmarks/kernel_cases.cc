#include "tools/benchmarks/kernel_cases.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontends/model_config.h"
#include "graph/base/status.h"
#include "graph/eval/op_case.h"
#include "passes/config/parallel_config.h"
#include "tools/benchmarks/training.h"

namespace mgc {
namespace {

constexpr int64_t kSequences = 4;
constexpr int64_t kExampleElements = 1 << 20;

// Grouped kv heads, RMSNorm, RoPE, SwiGLU: what a GPT-2 has not.
ModelConfig SmallLlama() {
  ModelConfig config;
  config.family = ModelFamily::kLlama;
  config.hidden = 1024;
  config.heads = 16;
  config.kv_heads = 4;
  config.head_dim = 64;
  config.ffn = 2816;
  config.vocab = 32000;
  config.max_positions = 1024;
  return config;
}

std::string NameOf(const Segment& segment, const Instr& instr) {
  const auto type = [&](std::string* out, int slot) {
    std::vector<int64_t> sizes = SizesOf(segment.slots[static_cast<size_t>(slot)].type);
    absl::StrAppend(out, NameOf(segment.slots[static_cast<size_t>(slot)].type.dtype), "[",
                    absl::StrJoin(sizes, ","), "]");
  };
  return absl::StrCat(instr.op->name, "/", absl::StrJoin(instr.inputs, ",", type));
}

// Types with as many times more samples (or whatever the first result's outermost dim counts) as
// make the first operand large; those of the case where its attributes do not allow that.
BoundCase Grown(const OpDef& op, const BoundCase& bound) {
  if (bound.rule.results[0].empty() || bound.rule.results[0][0].empty()) return bound;
  const int factor = bound.rule.results[0][0][0];
  const int64_t times =
      std::max<int64_t>(1, kExampleElements / std::max<int64_t>(1, bound.results[0].NumElements()));
  BoundCase grown = bound;
  for (size_t i = 0; i < grown.operands.size(); ++i) {
    std::vector<Dim>& dims = grown.operands[i].type.dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      for (int f : bound.rule.operands[i][d]) dims[d].size *= f == factor ? times : 1;
    }
  }
  absl::StatusOr<std::vector<TensorType>> results =
      InferTypes(op, bound.op_case->attrs, grown.OperandTypes());
  if (!results.ok()) return bound;
  grown.results = *std::move(results);
  return grown;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelCases>> KernelCases::Create(
    absl::Span<const KernelEntry> kernels, int64_t layers, int64_t seq) {
  std::unique_ptr<KernelCases> cases(new KernelCases);
  ParallelConfig parallel;
  parallel.micro_batch_size = parallel.global_batch_size = kSequences;
  parallel.seq_length = seq;
  MGC_ASSIGN_OR_RETURN(ModelConfig gpt2, LoadModelPreset("gpt2-124m"));
  for (auto& [name, config] : {std::pair("gpt2", gpt2), std::pair("llama", SmallLlama())}) {
    ModelConfig model = config;
    model.layers = layers;
    for (const auto& [suffix, type] :
         {std::pair("", DType::kF32), std::pair("_bf16", DType::kBF16)}) {
      parallel.compute_type = type;
      MGC_ASSIGN_OR_RETURN(Plan plan, CompileModel(model, parallel));
      cases->plans_.push_back(std::make_unique<Plan>(std::move(plan)));
      cases->AddStep(*cases->plans_.back(), absl::StrCat(name, suffix));
    }
  }
  for (const KernelEntry& entry : kernels) {
    if (FindOp(entry.op)->collective) continue;  // a rank's own part: a copy
    const bool in_step =
        std::any_of(cases->list_.begin(), cases->list_.end(),
                    [&](const KernelCase& c) { return c.instr->op->name == entry.op; });
    if (!in_step) MGC_RETURN_IF_ERROR(cases->AddExample(entry.op));
  }
  std::stable_sort(cases->list_.begin(), cases->list_.end(),
                   [](const KernelCase& a, const KernelCase& b) { return a.name < b.name; });
  return cases;
}

void KernelCases::AddStep(const Plan& plan, const std::string& model) {
  const auto add = [&](const std::vector<Call>& calls, int64_t times) {
    for (const Call& call : calls) {
      const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
      for (const Instr& instr : segment.instrs) {
        if (instr.kind != InstrKind::kCompute || instr.op->collective) continue;
        KernelCase fresh{absl::StrCat(NameOf(segment, instr), "/", model), &segment, &instr, times,
                         plan.seq_length};
        const auto known = std::find_if(list_.begin(), list_.end(), [&](const KernelCase& c) {
          return c.name == fresh.name && c.instr->attrs == instr.attrs;
        });
        if (known == list_.end()) {
          list_.push_back(std::move(fresh));
        } else {
          known->calls += times;
        }
      }
    }
  };
  for (const Chunk& chunk : plan.classes[0].chunks) {
    add(chunk.prepare, 1);
    add(chunk.forward, plan.num_micro_batches);
    add(chunk.backward, plan.num_micro_batches);
  }
  add(plan.classes[0].update, 1);
}

absl::Status KernelCases::AddExample(const std::string& op_name) {
  const OpDef* op = FindOp(op_name);
  if (op == nullptr || op->cases.empty()) {
    return absl::InternalError(absl::StrCat(op_name, " has no example to time"));
  }
  MGC_ASSIGN_OR_RETURN(const BoundCase example, BindCase(*op, 0));
  const BoundCase bound = Grown(*op, example);
  auto segment = std::make_unique<Segment>();
  Instr instr;
  instr.op = op;
  instr.attrs = bound.op_case->attrs;
  const auto add = [&](const TensorType& type, std::vector<int>* slots) {
    slots->push_back(static_cast<int>(segment->slots.size()));
    Slot slot;
    slot.type = type;
    slot.sharding = Sharding::Whole(type.ndim());
    slot.formal = slots->back();  // apart from all others
    segment->slots.push_back(std::move(slot));
  };
  for (const CaseOperand& operand : bound.operands) add(operand.type, &instr.inputs);
  for (const TensorType& type : bound.results) add(type, &instr.outputs);
  segment->instrs.push_back(std::move(instr));
  list_.push_back({NameOf(*segment, segment->instrs[0]), segment.get(), &segment->instrs[0]});
  examples_.push_back(std::move(segment));
  return absl::OkStatus();
}

}  // namespace mgc
