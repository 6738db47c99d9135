#include "graph/plan/data_input.h"

#include <map>
#include <utility>
#include <variant>

#include "graph/ir/step_names.h"
#include "graph/ir/vocabulary.h"

namespace mgc {
namespace {

bool IsOfTokens(const TensorType& type) {
  return type.dtype == DType::kI64 && type.dims.size() == 2;
}

}  // namespace

std::vector<DataInput> DataInputsOf(const Plan& plan) {
  std::map<std::string, TensorType> types;
  for (const Segment& segment : plan.segments) {
    for (const Instr& instr : segment.instrs) {
      const AttrValue* name = instr.attrs.Find("name");
      if (instr.kind != InstrKind::kLoad || instr.outputs.size() != 1 || name == nullptr) continue;
      const size_t slot = static_cast<size_t>(instr.outputs[0]);
      if (slot >= segment.slots.size() || !std::holds_alternative<std::string>(*name)) continue;
      types.emplace(std::get<std::string>(*name), segment.slots[slot].type);
    }
  }
  std::vector<DataInput> inputs;
  inputs.reserve(types.size());
  for (auto& [name, type] : types) inputs.push_back({name, std::move(type), 0});
  return inputs;
}

std::vector<DataInput> DataInputsWithEntries(const Plan& plan) {
  std::vector<DataInput> inputs = DataInputsOf(plan);
  for (DataInput& input : inputs) input.entries = VocabularyOf(plan.model, input.name);
  return inputs;
}

DataFeed FeedOf(absl::string_view name, const TensorType& type, int64_t tokens_per_sample) {
  if (name == kWeightsInput && type.dtype == DType::kF32) return DataFeed::kOnes;
  if (!IsOfTokens(type) || type.dims[1].size != tokens_per_sample) return DataFeed::kNone;
  if (name == kTokensInput) return DataFeed::kTokens;
  if (name == kTargetsInput) return DataFeed::kTargets;
  if (name == kDocumentsInput) return DataFeed::kDocuments;
  return name == kPositionsInput ? DataFeed::kPositions : DataFeed::kNone;
}

bool IsOfText(DataFeed feed) { return feed != DataFeed::kNone && feed != DataFeed::kOnes; }

bool NeedsDocuments(DataFeed feed) {
  return feed == DataFeed::kDocuments || feed == DataFeed::kPositions;
}

int64_t TokensPerSample(const Graph& model) {
  for (const char* name : {kTokensInput, kTargetsInput}) {
    const ValueId value = model.FindValue(name);
    const GraphInput* input = value == kNone ? nullptr : model.FindInput(value);
    if (input == nullptr || input->kind != InputKind::kData) continue;
    if (IsOfTokens(model.type(value))) return model.type(value).dims[1].size;
  }
  return 0;
}

}  // namespace mgc
