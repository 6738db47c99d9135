// The sharding rules hold for graphs nobody thought of: random graphs under random strategies
// compute, on eight ranks, what one device computes.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/eval/eval.h"
#include "graph/ir/check.h"
#include "graph/ir/op.h"
#include "graph/ir/step_gradients.h"
#include "graph/ir/step_names.h"
#include "graph/text/printer.h"
#include "gtest/gtest.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/shard/partition.h"
#include "passes/graph/shard/shard.h"
#include "passes/graph/shard/strategy.h"
#include "passes/graph/simplify.h"

namespace mgc {
namespace {

constexpr uint32_t kSeed = 17;
constexpr int kGraphs = 400;

class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool OneIn(int n) { return Below(n) == 0; }
  template <class T>
  const T& Of(const std::vector<T>& from) {
    return from[static_cast<size_t>(Below(static_cast<int>(from.size())))];
  }

 private:
  std::mt19937 random_;
};

// A forward graph of random ops over [batch, seq, embed] and what comes of it.
class RandomGraph {
 public:
  explicit RandomGraph(Dice* dice) : dice_(*dice), b_("random") {
    b_.set_num_layers(1);
    const ValueId x = b_.AddInput("x", Type({"batch", "seq", "embed"}), InputKind::kData);
    values_.push_back(Op("mul", {x, Param({"embed"})}));
  }

  Graph Build() {
    const int ops = 3 + dice_.Below(8);
    for (int i = 0; i < ops; ++i) {
      layer_ = std::min(1, -1 + 3 * i / ops);
      Grow();
    }
    layer_ = 1;
    const ValueId weights = b_.AddInput("weights", Type({"batch", "seq"}), InputKind::kData);
    AddLosses();
    b_.AddOutput({Op("total", {weights}), OutputKind::kReport, "count", kNone, 1.0});
    return std::move(b_).Finish();
  }

 private:
  // A loss term of every value that nothing reads, so that every parameter is trained.
  void AddLosses() {
    const std::vector<std::vector<NodeId>> users = b_.graph().Users();
    int terms = 0;
    for (ValueId value : values_) {
      if (!users[static_cast<size_t>(value)].empty()) continue;
      const ValueId loss = Op("total", {Op("gelu", {value})});
      b_.AddOutput({loss, OutputKind::kLoss, absl::StrCat("loss.", terms++), kNone, 1.0});
    }
  }

  static Dim Named(const std::string& name) {
    const std::map<std::string, int64_t> sizes = {{"batch", 4}, {"seq", 4},  {"embed", 8},
                                                  {"mlp", 8},   {"wide", 4}, {"", 4}};
    return {sizes.at(name), name};
  }
  static TensorType Type(const std::vector<std::string>& names) {
    TensorType type;
    for (const std::string& name : names) type.dims.push_back(Named(name));
    return type;
  }
  const TensorType& TypeOf(ValueId id) const { return b_.graph().type(id); }

  ValueId Param(const std::vector<std::string>& names) {
    const TensorType type = Type(names);
    std::vector<ValueId> known;  // now and then a parameter is used again
    for (const GraphInput& input : b_.graph().inputs()) {
      if (input.kind == InputKind::kParam && TypeOf(input.value) == type) {
        known.push_back(input.value);
      }
    }
    if (!known.empty() && dice_.OneIn(3)) return dice_.Of(known);
    return b_.AddInput(absl::StrCat("w", b_.graph().inputs().size()), type, InputKind::kParam);
  }

  ValueId Op(const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    Node like;
    like.layer = layer_;
    std::vector<std::string> names(3, op);
    absl::StatusOr<std::vector<ValueId>> made =
        b_.Append(op, std::move(inputs), std::move(attrs), like,
                  absl::MakeConstSpan(names).subspan(0, FindOp(op)->results.size()));
    EXPECT_TRUE(made.ok()) << made.status();
    return (*made)[0];
  }

  // Another value of this type, or the value itself.
  ValueId Like(ValueId id) {
    std::vector<ValueId> alike;
    for (ValueId other : values_) {
      if (TypeOf(other) == TypeOf(id)) alike.push_back(other);
    }
    return alike.empty() ? id : dice_.Of(alike);
  }

  void Grow() {
    // Mostly what was made last, so that it counts.
    const ValueId v = dice_.OneIn(4) ? dice_.Of(values_) : values_.back();
    const TensorType type = TypeOf(v);
    switch (dice_.Below(10)) {
      case 0:
      case 1:
      case 2:
        return values_.push_back(Product(v));
      case 3:
      case 4: {
        std::vector<ValueId> terms = {v, Like(v)};
        if (dice_.OneIn(2)) terms.push_back(Param({type.dims.back().name}));
        return values_.push_back(Op("add", terms));
      }
      case 5:
        return values_.push_back(Op("mul", {v, Like(v)}));
      case 6:
        return values_.push_back(Op("gelu", {v}));
      case 7:
        return values_.push_back(
            Op("rms_norm", {v, Param({type.dims.back().name})}, {{"eps", 0.1}}));
      case 8: {
        std::vector<int64_t> perm(type.dims.size());
        std::iota(perm.begin(), perm.end(), 0);
        std::swap(perm[dice_.Below(type.ndim())], perm[dice_.Below(type.ndim())]);
        return values_.push_back(Op("transpose", {v}, {{"perm", perm}}));
      }
      default:
        if (type.ndim() < 3) return;
        return values_.push_back(
            Op("reduce_sum", {v}, {{"dims", std::vector<int64_t>{dice_.Below(type.ndim())}}}));
    }
  }

  // Contracts a random dim with a weight, or two values of one type to [..., i, j].
  ValueId Product(ValueId v) {
    const TensorType type = TypeOf(v);
    std::vector<std::string> letters;
    letters.reserve(type.dims.size());
    for (int d = 0; d < type.ndim(); ++d) letters.push_back(absl::StrCat("d", d));
    if (type.ndim() == 3 && dice_.OneIn(4)) {
      return Op("matmul", {v, Like(v)}, {{"spec", "a i k, a j k -> a i j"}});
    }
    const int contracted = dice_.Below(type.ndim());
    const std::string made = dice_.Of<std::string>({"embed", "mlp", "wide", ""});
    const ValueId weight = Param({type.dims[contracted].name, made});
    const std::string in = absl::StrJoin(letters, " ");
    const std::string k = letters[contracted];
    letters.erase(letters.begin() + contracted);
    const std::string out = absl::StrJoin(letters, " ");
    return Op("matmul", {v, weight}, {{"spec", absl::StrCat(in, ", ", k, " n -> ", out, " n")}});
  }

  Dice& dice_;
  GraphBuilder b_;
  std::vector<ValueId> values_;
  int layer_ = kEmbeddingLayer;
};

Strategy RandomStrategy(const Mesh& mesh, Dice* dice) {
  Strategy strategy;
  const std::vector<std::string> axes = {"", "tp", "tp.0", "tp.1", "dp"};
  for (const char* name : {"mlp", "wide", "embed", "seq"}) {
    const std::string axis = dice->OneIn(2) ? "" : dice->Of(axes);
    if (!axis.empty()) strategy.rows.push_back({{}, {{name, mesh.Find(axis)}}});
  }
  if (!dice->OneIn(4)) {
    strategy.rows.insert(strategy.rows.begin(), {{}, {{"batch", mesh.Find("dp")}}});
  }
  strategy.rows.push_back({{"batch", "seq", "embed"}, {}, /*home=*/true});
  if (dice->OneIn(3)) strategy.rows.back().rules = {{"seq", mesh.Find("tp")}};
  const AxisSet pieces = mesh.Find("dp").AsSet();
  if (dice->OneIn(2)) strategy.storage = {{StoredKind::kStates, pieces}};
  for (const StoredKind kind : {StoredKind::kGradients, StoredKind::kParameters}) {
    if (!strategy.storage.empty() && dice->OneIn(2)) strategy.storage.push_back({kind, pieces});
  }
  return strategy;
}

HostTensor<double> RandomTensor(const TensorType& type, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int64_t> shape;
  for (const Dim& dim : type.dims) shape.push_back(dim.size);
  HostTensor<double> tensor = HostTensor<double>::Make(shape, false);
  for (double& entry : tensor.real) entry = random() / 4294967296.0 - 0.4;
  return tensor;
}

using Values = std::map<std::string, HostTensor<double>>;

// Loss, gradient norm and gradients of one step.
Values RunOnce(const Graph& local) {
  GraphEvaluator<DoubleModel> eval(local, DoubleModel(), 0);
  uint32_t seed = 0;
  for (const GraphInput& input : local.inputs()) {
    const bool drawn = input.kind == InputKind::kData || input.kind == InputKind::kParam;
    if (drawn) eval.Set(input.value, RandomTensor(local.type(input.value), ++seed));
    if (input.kind == InputKind::kScalar) {
      eval.Set(input.value, RandomTensor(local.type(input.value), 1));
    } else if (!drawn) {
      eval.SetZero(input.value);
    }
  }
  const Phase prepare[] = {Phase::kPrepare};
  const Phase passes[] = {Phase::kForward, Phase::kBackward};
  const Phase update[] = {Phase::kUpdate};
  eval.Run(prepare, 0);
  eval.Run(passes, 0);
  eval.Assign(passes);
  eval.Run(update, 0);
  Values values;
  for (const GraphOutput& output : local.outputs()) {
    if (output.kind == OutputKind::kReport) values[output.name] = eval.Whole(output.value);
  }
  for (const auto& [param, gradient] : GradientsOf(local)) {
    values[GradName(local.value(param).name)] = eval.Whole(gradient);
  }
  return values;
}

TEST(RandomGraphsTest, EightRanksComputeWhatOneDoes) {
  const Mesh mesh = *Mesh::Create({{"tp.1", 2}, {"tp.0", 2}, {"dp", 2}});
  Dice dice(kSeed);
  int collectives = 0;
  for (int g = 0; g < kGraphs; ++g) {
    const Graph logical = Simplify(RandomGraph(&dice).Build());
    const Strategy strategy = RandomStrategy(mesh, &dice);
    SCOPED_TRACE(absl::StrCat("seed ", kSeed, ", graph ", g));
    ASSERT_TRUE(CheckGraph(logical).ok()) << CheckGraph(logical);
    const absl::StatusOr<Graph> training = Differentiate(logical);
    ASSERT_TRUE(training.ok()) << training.status();
    const Graph simple = Simplify(*training);
    const absl::StatusOr<Sharded> one = Shard(simple, Mesh(), Strategy());
    const absl::StatusOr<Sharded> many = Shard(simple, mesh, strategy);
    ASSERT_TRUE(one.ok()) << one.status();
    ASSERT_TRUE(many.ok()) << many.status();
    ASSERT_TRUE(CheckGraph(many->graph).ok()) << CheckGraph(many->graph) << PrintGraph(many->graph);
    const Graph local = Partition(many->graph);
    ASSERT_TRUE(CheckGraph(local).ok()) << CheckGraph(local);
    for (const Node& node : local.nodes()) collectives += node.op->collective ? 1 : 0;
    const Values expected = RunOnce(Partition(one->graph));
    const Values got = RunOnce(local);
    ASSERT_EQ(expected.size(), got.size());
    const double norm = std::fabs(expected.at("grad_norm").real[0]);
    for (const auto& [name, value] : expected) {
      const HostTensor<double>& other = got.at(name);
      double scale = 1e-6 * norm;
      double worst = 0;
      for (size_t i = 0; i < value.real.size(); ++i) {
        scale = std::max(scale, std::fabs(value.real[i]));
        worst = std::max(worst, std::fabs(value.real[i] - other.real[i]));
      }
      ASSERT_LE(worst, 1e-9 * scale) << name << "\n" << PrintGraph(many->graph);
    }
  }
  EXPECT_GT(collectives, 10 * kGraphs);
}

}  // namespace
}  // namespace mgc
