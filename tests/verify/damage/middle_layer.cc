#include "tests/verify/damage/middle_layer.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/plan/proto/plan_wire.h"
#include "tests/verify/damage/mutation_sites.h"

namespace mgc {
namespace {

constexpr int kMiddle = 4;

bool IsInTheMiddle(const Call& call) { return call.layer >= 2 && call.layer <= 6; }

std::vector<std::vector<Call>*> ListsOf(Plan* plan) {
  std::vector<std::vector<Call>*> lists;
  for (PlanClass& c : plan->classes) {
    for (auto* chunks : {&c.chunks, &c.eval_chunks}) {
      for (Chunk& chunk : *chunks) {
        for (std::vector<Call>* list : mgc::ListsOf(&chunk)) lists.push_back(list);
      }
    }
    lists.insert(lists.end(), {&c.update, &c.eval_update});
  }
  return lists;
}

// The calls of the other layers.
std::string Others(const std::vector<Call>& calls) {
  std::string text;
  for (const Call& call : calls) {
    if (IsInTheMiddle(call)) continue;
    absl::StrAppend(&text, call.segment, " ", call.layer);
    for (const Binding& binding : call.bindings) {
      absl::StrAppend(&text, " ", static_cast<int>(binding.base), "+", binding.offset);
    }
    text += ";";
  }
  return text;
}

}  // namespace

MiddleLayer::MiddleLayer(const Plan& plan, bool apart) : plan_(plan) {
  std::map<int, int> copies;
  for (const CallPlace& place : AllCalls(&plan_)) {
    if (!apart || place.call().layer != kMiddle) continue;
    copies.emplace(place.call().segment, static_cast<int>(plan_.segments.size() + copies.size()));
    place.call().segment = copies[place.call().segment];
  }
  std::vector<int> originals(copies.size());
  for (const auto& [from, to] : copies) {
    originals[static_cast<size_t>(to) - plan_.segments.size()] = from;
    own_.insert(to);
  }
  for (int from : originals) {
    plan_.segments.push_back(plan_.segments[static_cast<size_t>(from)]);
    absl::StrAppend(&plan_.segments.back().name, ".middle");
  }
  bytes_ = SerializePlan(plan_);
}

bool MiddleLayer::IsAllThatDiffers(const Plan& mutant) const {
  Plan mended = mutant;
  Plan original = plan_;
  if (mended.segments.size() != original.segments.size() ||
      mended.classes.size() != original.classes.size()) {
    return false;
  }
  for (int segment : own_) {
    mended.segments[static_cast<size_t>(segment)] = original.segments[static_cast<size_t>(segment)];
  }
  const std::vector<std::vector<Call>*> lists = ListsOf(&mended);
  const std::vector<std::vector<Call>*> originals = ListsOf(&original);
  if (lists.size() != originals.size()) return false;
  for (size_t i = 0; i < lists.size(); ++i) {
    if (Others(*lists[i]) == Others(*originals[i])) *lists[i] = *originals[i];
  }
  return SerializePlan(mended) == bytes_ && SerializePlan(mutant) != bytes_;
}

}  // namespace mgc
