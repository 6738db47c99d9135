#include "tests/random_models/random_model.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/check.h"
#include "tests/random_models/model_maker.h"
#include "tests/random_models/random_blocks.h"

namespace mgc {
namespace {

class RandomModelMaker {
 public:
  RandomModelMaker(const RandomModelOptions& options, DimNaming naming, Dice* dice)
      : options_(options), dice_(*dice), m_(options, naming, dice) {
    m_.set_num_layers(options.layers);
    tokens_ = options.attention || options.tokens || !dice_.OneIn(5);
    alike_ = dice_.Flip();
    layer_seed_ = dice_.Next();
  }

  Graph Make() && {
    const bool embedding = !dice_.OneIn(3);
    Enter(embedding ? kEmbeddingLayer : 0);
    x_ = Embedding();
    const int layers = std::max(options_.layers, 1);
    for (int layer = 0; layer < layers; ++layer) {
      Enter(layer);
      Layer(layer);
    }
    Enter(dice_.OneIn(3) ? layers - 1 : layers);
    Head();
    return std::move(m_).Finish();
  }

 private:
  void Enter(int layer) { m_.set_layer(options_.layers == 0 ? kNoLayer : layer); }

  std::vector<std::string> Stream(const char* last) const {
    if (tokens_) return {"batch", "seq", last};
    return {"batch", last};
  }
  TensorType PerToken(DType dtype) {
    return tokens_ ? m_.TypeOf({"batch", "seq"}, dtype) : m_.TypeOf({"batch"}, dtype);
  }

  // Tokens, features, or both; positions or segments beside them.
  ValueId Embedding() {
    std::vector<ValueId> terms;
    const bool features = dice_.OneIn(3);
    if (!features || dice_.OneIn(3)) {
      table_ = m_.Param(m_.TypeOf({"vocab", "embed"}));
      terms.push_back(m_.Op("lookup", {table_, m_.Data("tokens", PerToken(DType::kI64))}));
    }
    if (features) {
      const ValueId data = m_.Data("features", m_.TypeOf(Stream("in")));
      terms.push_back(m_.Product(data, m_.Weight({"in", "embed"})));
    }
    if (dice_.OneIn(4)) {
      const ValueId table = m_.Param(m_.TypeOf({"segments", "embed"}));
      terms.push_back(m_.Op("lookup", {table, m_.Data("segments", PerToken(DType::kI64))}));
    }
    if (tokens_ && dice_.OneIn(3)) terms.push_back(m_.Param(m_.TypeOf({"seq", "embed"})));
    return terms.size() == 1 ? terms[0] : m_.Op("add", terms);
  }

  void Layer(int layer) {
    Dice outer = dice_;
    if (alike_) dice_ = Dice(layer_seed_);
    const size_t blocks = 1 + dice_.Below(2);
    for (size_t i = 0; i < blocks; ++i) Block();
    if (options_.attention) x_ = m_.Op("add", {x_, FusedAttention(m_, x_)});
    if (alike_) dice_ = outer;
    if (options_.skips && layer > 0 && dice_.OneIn(8))
      x_ = m_.Op("add", {x_, dice_.Of(streams_)});  // a skip
    if (dice_.OneIn(10)) m_.Loss(m_.Op("weighted_sum", {x_, x_}), 0.125);
    streams_.push_back(x_);
  }

  void Block() {
    std::vector<const RandomBlock*> fitting;
    for (const RandomBlock& block : RandomBlocks()) {
      if (tokens_ || !block.needs_sequence) fitting.push_back(&block);
    }
    const RandomBlock& block = *dice_.Of(fitting);
    const ValueId in = dice_.OneIn(3) ? Norm(m_, x_) : x_;
    const ValueId y = block.make(m_, in);
    x_ = dice_.OneIn(6) ? y : m_.Op("add", {x_, y});
  }

  void Head() {
    if (dice_.OneIn(3)) x_ = Norm(m_, x_);
    if (tokens_ && dice_.OneIn(4)) {  // one label a sample
      x_ = m_.ReduceSum(x_, {1});
      tokens_ = false;
    }
    const ValueId weights = m_.Data("weights", PerToken(DType::kF32));
    if (dice_.Flip()) {
      CrossEntropy(weights);
    } else {
      SquaredError();
    }
    if (dice_.OneIn(5)) SquaredError();
    m_.Report("count", m_.Op("total", {weights}));
  }

  void CrossEntropy(ValueId weights) {
    const bool tied = table_ != kNone && dice_.Flip();
    const ValueId back = tied ? m_.Transpose(table_, {1, 0}) : m_.Weight({"embed", "vocab"});
    const ValueId logits = m_.Product(x_, back);
    const std::vector<int64_t> last = {m_.NumDims(logits) - 1};
    const ValueId top = m_.Op("reduce_max", {logits}, {{"dims", last}});
    const ValueId shift = m_.Op("stop_gradient", {top});
    const ValueId sum = m_.Op("exp_sum", {logits, shift});
    const ValueId lse = m_.Op("log_shift", {sum, shift});
    const ValueId picked = m_.Op("pick", {logits, m_.Data("targets", PerToken(DType::kI64))});
    m_.Loss(m_.Op("weighted_sum", {m_.Op("sub", {lse, picked}), weights}), 1.0);
  }

  void SquaredError() {
    const ValueId y = m_.Product(x_, m_.Weight({"embed", "out"}));
    const ValueId labels = m_.Data("labels", m_.TypeOf(Stream("out")));
    const ValueId d = m_.Op("sub", {y, labels});
    if (dice_.Flip()) return m_.Loss(m_.Op("weighted_sum", {d, d}), 0.5);
    const ValueId square = m_.Op("mul", {d, d});
    if (dice_.Flip()) return m_.Loss(m_.Op("total", {square}), 0.5);
    std::vector<int64_t> dims;
    for (int i = 0; i < m_.NumDims(square); ++i) dims.push_back(i);
    m_.Loss(m_.ReduceSum(square, dims), 0.5);
  }

  const RandomModelOptions& options_;
  Dice& dice_;
  ModelMaker m_;
  bool tokens_ = true;  // the stream has a sequence
  bool alike_ = true;   // all layers make the same choices
  uint64_t layer_seed_ = 0;
  ValueId x_ = kNone;
  ValueId table_ = kNone;
  std::vector<ValueId> streams_;  // what layers leave
};

}  // namespace

Graph RandomModel(const RandomModelOptions& options, DimNaming naming, Dice* dice) {
  Graph model = RandomModelMaker(options, naming, dice).Make();
  MGC_CHECK(CheckGraph(model).ok()) << CheckGraph(model).ToString();
  return model;
}

std::vector<std::string> StreamDims(DimNaming naming) {
  if (naming == DimNaming::kNone) return {};
  if (naming == DimNaming::kMegatron) return {"batch", "seq", "embed"};
  return {"batch", "my_seq", "my_embed"};
}

}  // namespace mgc
