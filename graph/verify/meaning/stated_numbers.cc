#include "graph/verify/meaning/stated_numbers.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/ir/vocabulary.h"
#include "graph/plan/data_input.h"
#include "graph/types/sharding.h"
#include "graph/verify/meaning/gradient_sums.h"

namespace mgc {
namespace {

class StatedCheck {
 public:
  StatedCheck(const Plan& plan, Diagnostics* findings) : plan_(plan), findings_(*findings) {}

  void Run() {
    const std::set<std::string> summed = ParamsOf(GradientSums(plan_));
    for (const PlanClass& c : plan_.classes) {
      for (const HeldBlock& held : c.blocks) {
        for (const ParamEntry& entry : plan_.blocks[static_cast<size_t>(held.block)].entries) {
          CheckParameter(NameForLayer(entry.name, held.layer), entry, summed);
        }
      }
    }
    CheckData();
    for (const Segment& segment : plan_.segments) CheckRows(segment);
    const int64_t vocabulary = VocabularyOf(plan_.model);
    Require(vocabulary == 0 || plan_.vocab == vocabulary, "plan",
            absl::StrCat("states a vocabulary of ", plan_.vocab,
                         "; the model looks its data up in ", vocabulary, " entries"));
    CheckOptions();
  }

 private:
  void Require(bool holds, absl::string_view place, absl::string_view text) {
    if (!holds) findings_.Add("meaning_v9", place, text);
  }

  // It starts as the model says, and a run can start the sum of its gradients at random.
  void CheckParameter(const std::string& name, const ParamEntry& entry,
                      const std::set<std::string>& summed) {
    const std::string place = absl::StrCat("parameter `", EscapeBytes(name), "`");
    const ValueId value = plan_.model.FindValue(name);
    const GraphInput* input = value == kNone ? nullptr : plan_.model.FindInput(value);
    if (input == nullptr) return;  // reported by who owns what
    CheckStart(place, input->attrs, entry.init);
    Require(entry.gradient_base.region != Region::kGrads || summed.count(name) > 0, place,
            absl::StrCat("no backward adds to a sum of gradients named `", EscapeBytes(name),
                         "/grad`"));
  }

  void CheckStart(const std::string& place, const Attrs& model, const Attrs& plan) {
    std::set<std::string> names;
    for (const Attrs* attrs : {&model, &plan}) {
      for (const Attrs::Entry& entry : *attrs) names.insert(entry.first);
    }
    for (const std::string& name : names) {
      const AttrValue* expected = model.Find(name);
      const AttrValue* stated = plan.Find(name);
      const bool equal = expected != nullptr && stated != nullptr && *expected == *stated;
      Require(equal, place,
              absl::StrCat("its `", EscapeBytes(name), "` is ", TextOf(stated), "; the model has ",
                           TextOf(expected)));
    }
  }

  static std::string TextOf(const AttrValue* value) {
    if (value == nullptr) return "not given";
    if (const auto* number = std::get_if<int64_t>(value)) return absl::StrCat(*number);
    if (const auto* number = std::get_if<double>(value)) return JsonNumber(*number);
    if (const auto* text = std::get_if<std::string>(value)) return EscapeBytes(*text);
    return absl::StrJoin(std::get<std::vector<int64_t>>(*value), ",");
  }

  // Data begins with samples, and a text is cut into as many tokens: it is read so.
  void CheckData() {
    for (const GraphInput& input : plan_.model.inputs()) {
      if (input.kind != InputKind::kData) continue;
      const Value& value = plan_.model.value(input.value);
      const std::vector<Dim>& dims = value.type.dims;
      Require(!dims.empty() && dims[0].name == kSampleDim,
              absl::StrCat("data `", EscapeBytes(value.name), "`"),
              absl::StrCat("is ", value.type.ToString(),
                           "; samples are counted along a first dim `batch`"));
      if (dims.empty()) continue;
      Require(
          plan_.global_batch_size % plan_.num_micro_batches == 0 &&
              dims[0].size == plan_.global_batch_size / plan_.num_micro_batches,
          "plan",
          absl::StrCat("states ", plan_.global_batch_size, " samples a step; ",
                       plan_.num_micro_batches, " micro-batches of ", dims[0].size, " are run"));
    }
    const int64_t tokens = TokensPerSample(plan_.model);
    Require(tokens == 0 || tokens == plan_.seq_length, "plan",
            absl::StrCat("states ", plan_.seq_length, " tokens a sample; the model has ", tokens));
  }

  // Every rank loads as many samples of a micro-batch as the plan states.
  void CheckRows(const Segment& segment) {
    for (const Instr& instr : segment.instrs) {
      if (instr.kind != InstrKind::kLoad) continue;
      const Slot& slot = segment.slots[static_cast<size_t>(instr.outputs[0])];
      if (slot.type.dims.empty()) continue;
      const int64_t rows = LocalSize(slot.type.dims[0], slot.sharding.dims[0], plan_.mesh);
      Require(rows == plan_.micro_batch_size, absl::StrCat("segment ", segment.name),
              absl::StrCat("loads ", rows, " samples of `", slot.name, "`; the plan states ",
                           plan_.micro_batch_size));
    }
  }

  // The flags that say what else the plan says.
  void CheckOptions() {
    // An axis may be split: tp, where ranks share kv heads.
    const auto axis = [this](absl::string_view name) {
      return plan_.mesh.Size(plan_.mesh.Find(name));
    };
    const int64_t chunks =
        plan_.classes.empty() ? 1 : static_cast<int64_t>(plan_.classes[0].chunks.size());
    const std::vector<std::pair<absl::string_view, int64_t>> known = {
        {"--world-size", plan_.mesh.world_size()},
        {"--tp", axis("tp")},
        {"--pp", axis("pp")},
        {"--vp", chunks},
        {"--micro-batch-size", plan_.micro_batch_size},
        {"--global-batch-size", plan_.global_batch_size},
        {"--seq-length", plan_.seq_length}};
    for (const auto& [flag, text] : plan_.options) {
      for (const auto& [name, value] : known) {
        Require(flag != name || text == absl::StrCat(value), "plan",
                absl::StrCat("states option ", name, " ", EscapeBytes(text), "; it has ", value));
      }
    }
  }

  const Plan& plan_;
  Diagnostics& findings_;
};

}  // namespace

void CheckStated(const Plan& plan, Diagnostics* findings) { StatedCheck(plan, findings).Run(); }

}  // namespace mgc
