#include "passes/graph/expansion.h"

#include <utility>

#include "graph/base/status.h"

namespace mgc {
namespace {

class Recorder : public EmitContext {
 public:
  Recorder(const Attrs& attrs, Pattern* pattern) : attrs_(attrs), pattern_(pattern) {}

  const Attrs& attrs() const override { return attrs_; }
  int num_inputs() const override { return pattern_->num_operands(); }
  ValueId input(int i) const override { return i; }
  std::vector<ValueId> EmitAll(absl::string_view op, std::vector<ValueId> inputs,
                               Attrs attrs) override {
    const OpDef* def = FindOp(op);
    MGC_CHECK(def != nullptr && def->results.size() == 1) << pattern_->fused->name << ": " << op;
    pattern_->nodes.push_back({def, std::move(attrs), std::move(inputs)});
    return {pattern_->num_operands() + static_cast<ValueId>(pattern_->nodes.size()) - 1};
  }

 private:
  const Attrs& attrs_;
  Pattern* pattern_;
};

}  // namespace

Pattern PatternOf(const OpDef& fused, const Attrs& attrs) {
  Pattern pattern;
  pattern.fused = &fused;
  Recorder recorder(attrs, &pattern);
  const std::vector<ValueId> results = fused.expand(recorder);
  MGC_CHECK(results.size() == 1 &&
            pattern.MakerOf(results[0]) + 1 == static_cast<int>(pattern.nodes.size()))
      << fused.name << ": its last small op makes no result, or there are several";
  return pattern;
}

std::vector<Pattern> PatternsToReplace() {
  std::vector<Pattern> patterns;
  for (const OpDef& op : AllOps()) {
    if (op.replaces_expansion) patterns.push_back(PatternOf(op, Attrs()));
  }
  return patterns;
}

}  // namespace mgc
