// Makes the graph of a random model: dims with names or without, parameters under several
// disguises, ops. tests/random_models/random_model.h says what a model is put together from.

#ifndef MGC_TESTS_RANDOM_MODELS_MODEL_MAKER_H_
#define MGC_TESTS_RANDOM_MODELS_MODEL_MAKER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"
#include "tests/fuzz/dice.h"
#include "tests/random_models/random_model.h"

namespace mgc {

// Dims are asked for by what they count, `embed`: of one size in all of a model, and under the
// name that the model gives it.
class ModelMaker {
 public:
  ModelMaker(const RandomModelOptions& options, DimNaming naming, Dice* dice);

  Dice& dice() { return dice_; }
  const Graph& graph() const { return builder_.graph(); }
  const TensorType& Type(ValueId id) const { return graph().type(id); }
  int NumDims(ValueId id) const { return Type(id).ndim(); }
  int64_t Size(const std::string& counts);
  std::string NameOf(const std::string& counts) const;
  TensorType TypeOf(const std::vector<std::string>& counts, DType dtype = DType::kF32);

  // Where the nodes and parameters made next belong.
  void set_layer(int layer) {
    layer_ = layer;
    spare_.clear();
  }
  void set_num_layers(int layers) { builder_.set_num_layers(layers); }

  ValueId Data(absl::string_view name, const TensorType& type);
  // A parameter as it is. `init`: `normal`, `ones`.
  ValueId Param(const TensorType& type, absl::string_view init = "normal");
  // A weight of this type: a parameter, now and then one that is used elsewhere too, is stored the
  // other way round, flat, in two parts, or packed with another.
  ValueId Weight(const std::vector<std::string>& counts);

  // The first result of an op.
  ValueId Op(absl::string_view op, std::vector<ValueId> operands, Attrs attrs = {});
  // Contracts the last `dims` dims of `x` with the first of `w`.
  ValueId Product(ValueId x, ValueId w, int dims = 1);
  ValueId Slice(ValueId x, int dim, int64_t begin, int64_t end);
  ValueId Concat(std::vector<ValueId> parts, int dim);
  ValueId Transpose(ValueId x, std::vector<int64_t> perm);
  ValueId Reshape(ValueId x, const TensorType& type);
  ValueId ReduceSum(ValueId x, std::vector<int64_t> dims);
  // One of the activations of an element.
  ValueId Activate(ValueId x);
  // A pin to what the mesh allows.
  ValueId Pin(ValueId x);
  std::string RandomKey();

  void Loss(ValueId x, double weight);
  void Report(absl::string_view name, ValueId x);
  Graph Finish() && { return std::move(builder_).Finish(); }

 private:
  std::string Path(absl::string_view name) const;
  ValueId Disguised(const TensorType& type);
  ValueId Packed(const TensorType& type);

  const RandomModelOptions options_;
  const DimNaming naming_;
  Dice& dice_;
  GraphBuilder builder_;
  int layer_ = kNoLayer;
  std::map<std::string, int64_t> sizes_;
  std::vector<ValueId> weights_;  // that may be used again
  std::vector<ValueId> spare_;    // second halves of packed ones, of this layer
  std::map<int, int> params_;     // by layer
  int keys_ = 0;
  int losses_ = 0;
};

}  // namespace mgc

#endif  // MGC_TESTS_RANDOM_MODELS_MODEL_MAKER_H_
