#include "graph/verify/meaning/bind_instr.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/status.h"
#include "graph/eval/eval.h"
#include "graph/ir/op.h"
#include "graph/verify/common/slot_lists.h"

namespace mgc {

const BoundInstr& BoundInstrs::Of(const InstrSite& site) {
  const auto found = bound_.find(site.instr);
  if (found != bound_.end()) return found->second;
  return bound_.emplace(site.instr, Bind(*site.segment, *site.instr)).first->second;
}

BoundInstr BoundInstrs::Bind(const Segment& segment, const Instr& instr) const {
  BoundInstr bound;
  const auto operands = TypesOf(segment, instr.inputs);
  const auto results = TypesOf(segment, instr.outputs);
  for (int index : instr.outputs) {
    const Slot& slot = segment.slots[static_cast<size_t>(index)];
    bound.shapes.push_back(LocalShape(slot.type, slot.sharding, plan_.mesh));
    bound.is_index.push_back(slot.type.dtype == DType::kI64);
  }
  absl::StatusOr<FactorRule> rule = RuleOf(*instr.op, OpUse{instr.attrs, operands, results});
  MGC_CHECK(rule.ok()) << rule.status().ToString();
  bound.rule = *std::move(rule);
  for (int64_t rank : ranks_) {
    bound.pieces.push_back(FactorPieces(bound.rule, ShardingsOf(segment, instr.inputs),
                                        ShardingsOf(segment, instr.outputs), plan_.mesh, rank));
  }
  for (size_t f = 0; f < bound.rule.factors.size(); ++f) {
    if (bound.rule.factors[f].dim_name == kSampleDim)
      bound.batch_factors.push_back(static_cast<int>(f));
  }
  for (const Attrs::Entry& entry : instr.attrs) {
    const std::string* text = std::get_if<std::string>(&entry.second);
    bound.names_layer |= text != nullptr && text->find('*') != std::string::npos;
  }
  return bound;
}

Attrs BoundInstrs::AttrsFor(const InstrSite& site) const {
  Attrs attrs = site.instr->attrs;
  for (const Attrs::Entry& entry : site.instr->attrs) {
    const std::string* text = std::get_if<std::string>(&entry.second);
    if (text != nullptr) attrs.Set(entry.first, NameForLayer(*text, site.call->layer));
  }
  return attrs;
}

}  // namespace mgc
