// A graph under test on one device: built node by node with whole values beside it.

#ifndef MGC_TESTS_OP_SUITES_SMALL_GRAPH_H_
#define MGC_TESTS_OP_SUITES_SMALL_GRAPH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/eval/op_case.h"
#include "graph/ir/graph.h"

namespace mgc {

inline constexpr uint64_t kDropoutSeed = 7;

// The graph, whatever the model of its values.
class SmallGraphBuilder {
 public:
  virtual ~SmallGraphBuilder() = default;

  // A refusal aborts: what is emitted here comes from our own gradient rules and tables.
  std::vector<ValueId> EmitAll(absl::string_view op, std::vector<ValueId> inputs, Attrs attrs = {});
  ValueId Emit(absl::string_view op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return EmitAll(op, std::move(inputs), std::move(attrs))[0];
  }
  const TensorType& type(ValueId id) const { return builder_.graph().type(id); }

 protected:
  SmallGraphBuilder() : builder_("test") {}
  // Computes the results of the last node.
  virtual void Evaluate(const Node& node, const std::vector<TensorType>& results) = 0;

  GraphBuilder builder_;
};

// Every value is computed as soon as its node is made.
template <class M>
class SmallGraphOf : public SmallGraphBuilder {
 public:
  using Tensor = HostTensor<typename M::Scalar>;

  explicit SmallGraphOf(M model = M()) : model_(std::move(model)) {}

  ValueId AddInput(const TensorType& type, Tensor value);
  const Tensor& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  const M& model() const { return model_; }

 private:
  void Evaluate(const Node& node, const std::vector<TensorType>& results) override;

  const M model_;
  std::vector<Tensor> values_;
};

extern template class SmallGraphOf<DoubleModel>;
extern template class SmallGraphOf<ResidueModel>;

using SmallGraph = SmallGraphOf<DoubleModel>;

}  // namespace mgc

#endif  // MGC_TESTS_OP_SUITES_SMALL_GRAPH_H_
