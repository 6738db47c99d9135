// Factor rules by brute force: on a 2x2 mesh, every assignment of axes to factors. Every rank is
// evaluated on its tiles; the results put together, owed sums added and owed maxima taken, must be
// the whole result: within rounding in doubles, exactly in residues.

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/op_suites/small_graph.h"
#include "tests/op_suites/suite.h"

namespace mgc {
namespace {

// Relative to the largest entry; sums are added in another order.
constexpr double kTolerance = 1e-12;
constexpr int kRanks = 4;

constexpr uint64_t kModelKey = 33;

// What the two models differ in.
struct Reals {
  using Model = DoubleModel;
  static DoubleModel Make() { return DoubleModel(); }
  static std::vector<RealTensor> Draw(const BoundCase& bound, std::mt19937_64& random) {
    return DrawOperands(bound, random);
  }
  static void ExpectEqual(const std::vector<double>& actual, const std::vector<double>& expected,
                          const std::string& what) {
    ExpectClose(actual, expected, kTolerance, what);
  }
};
struct Residues {
  using Model = ResidueModel;
  static ResidueModel Make() { return ResidueModel(kModelKey); }
  static std::vector<ResidueTensor> Draw(const BoundCase& bound, std::mt19937_64& random) {
    return DrawResidues(bound, random);
  }
  static void ExpectEqual(const std::vector<ResiduePair>& actual,
                          const std::vector<ResiduePair>& expected, const std::string& what) {
    EXPECT_TRUE(actual == expected) << what;
  }
};

// The elements of a tensor, indices too, as scalars.
template <class M>
std::vector<typename M::Scalar> Elements(const M& model,
                                         const HostTensor<typename M::Scalar>& tensor) {
  std::vector<typename M::Scalar> elements = tensor.real;
  for (int64_t x : tensor.index) elements.push_back(model.Size(x));
  return elements;
}

Mesh TestMesh() { return Mesh::Create({{"a", 2}, {"b", 2}}).value(); }

// Every way to give the axes 0 and 1 to factors, legal or not.
std::vector<FactorAxes> Assignments(size_t factors) {
  std::vector<FactorAxes> all;
  const int none = static_cast<int>(factors);
  for (int a = 0; a <= none; ++a) {
    for (int b = 0; b <= none; ++b) {
      FactorAxes axes(factors);
      if (a < none) axes[static_cast<size_t>(a)].push_back(0);
      if (b < none) axes[static_cast<size_t>(b)].push_back(1);
      all.push_back(axes);
      if (a < none && a == b) {
        axes[static_cast<size_t>(a)] = {1, 0};
        all.push_back(axes);
      }
    }
  }
  return all;
}

bool IsLegal(const FactorRule& rule, const FactorAxes& axes, const Mesh& mesh) {
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const Factor& factor = rule.factors[f];
    if (axes[f].empty()) continue;
    if (factor.whole) return false;
  }
  return Representable(rule, axes, mesh);
}

std::string Describe(const FactorRule& rule, const FactorAxes& axes, const Mesh& mesh) {
  std::string text;
  for (size_t f = 0; f < axes.size(); ++f) {
    for (AxisId axis : axes[f]) {
      absl::StrAppend(&text, " ", rule.factors[f].name, "/", mesh.name(axis));
    }
  }
  return text;
}

// One whole result put together from tiles, once for every set of ranks that holds all of it.
template <class M>
class Assembly {
 public:
  using S = typename M::Scalar;

  Assembly(const M& model, const TensorType& type, Sharding sharding, const Mesh& mesh)
      : model_(model), type_(type), sharding_(std::move(sharding)), mesh_(mesh) {
    const S neutral = sharding_.max.empty() ? model.Constant(0) : model.NegInf();
    copies_.assign(kRanks, std::vector<S>(static_cast<size_t>(type.NumElements()), neutral));
    seen_.assign(kRanks, false);
  }

  void Add(int64_t rank, const std::vector<DimPiece>& pieces, const HostTensor<S>& tile) {
    const std::vector<S> values = Elements(model_, tile);
    std::vector<S>& copy = copies_[Replica(rank)];
    seen_[Replica(rank)] = true;
    for (size_t i = 0; i < values.size(); ++i) {
      int64_t rest = static_cast<int64_t>(i);
      int64_t place = 0;
      int64_t stride = 1;
      bool valid = true;
      for (size_t d = pieces.size(); d-- > 0;) {
        const int64_t at = rest % pieces[d].room;
        rest /= pieces[d].room;
        valid &= at < pieces[d].valid;
        place += (pieces[d].begin + at) * stride;
        stride *= type_.dims[d].size;
      }
      if (!valid) {
        EXPECT_TRUE(values[i] == model_.Constant(0)) << "padding of rank " << rank;
        continue;
      }
      S& target = copy[static_cast<size_t>(place)];
      target =
          sharding_.max.empty() ? model_.Add(target, values[i]) : model_.Max(target, values[i]);
    }
  }

  // One copy for each replica.
  std::vector<std::vector<S>> Copies() const {
    std::vector<std::vector<S>> held;
    for (size_t replica = 0; replica < copies_.size(); ++replica) {
      if (seen_[replica]) held.push_back(copies_[replica]);
    }
    return held;
  }

 private:
  // Number of the rank's coordinates on the axes over which the result is neither split nor owed.
  size_t Replica(int64_t rank) const {
    int64_t number = 0;
    for (AxisId axis : mesh_.AllAxes() - sharding_.UsedAxes()) {
      number = number * mesh_.size(axis) + mesh_.Coordinate(rank, axis);
    }
    return static_cast<size_t>(number);
  }

  const M& model_;
  const TensorType& type_;
  const Sharding sharding_;
  const Mesh& mesh_;
  std::vector<std::vector<S>> copies_;
  std::vector<bool> seen_;
};

template <class Kind>
class ShardingSuite : public testing::TestWithParam<BoundCase> {
 protected:
  using M = typename Kind::Model;
  using S = typename M::Scalar;
  using Tensor = HostTensor<S>;

  void SetUp() override {
    std::mt19937_64 random(kDrawSeed);
    operands_ = Kind::Draw(bound(), random);
    whole_ = Whole(bound().rule, bound().results);
  }

  const BoundCase& bound() const { return GetParam(); }

  std::vector<Tensor> Whole(const FactorRule& rule, const std::vector<TensorType>& results) const {
    std::vector<const Tensor*> pointers;
    for (const Tensor& operand : operands_) pointers.push_back(&operand);
    return EvaluateWhole(model_, *bound().op, bound().op_case->attrs, rule, results, pointers,
                         kDropoutSeed);
  }

  std::vector<DimPiece> FactorPieces(const FactorAxes& axes, int64_t rank) const {
    std::vector<DimPiece> pieces;
    for (size_t f = 0; f < axes.size(); ++f) {
      const Factor& factor = bound().rule.factors[f];
      pieces.push_back(
          PieceOf({factor.size, factor.dim_name, factor.multiple}, axes[f], mesh_, rank));
    }
    return pieces;
  }

  std::vector<DimPiece> Pieces(const TensorType& type, const Sharding& sharding,
                               int64_t rank) const {
    std::vector<DimPiece> pieces;
    for (size_t d = 0; d < type.dims.size(); ++d) {
      pieces.push_back(PieceOf(type.dims[d], sharding.dims[d], mesh_, rank));
    }
    return pieces;
  }

  // An operand of a jointly linear op that lacks a contracted factor is lifted over its axes: rank
  // 0 of them holds it, the others hold zero (Linearity).
  bool Holds(size_t operand, const FactorAxes& axes, int64_t rank) const {
    const OpDef& op = *bound().op;
    const std::vector<int>& linear = op.linear_operands;
    const bool takes_part =
        linear.empty() || std::count(linear.begin(), linear.end(), static_cast<int>(operand)) > 0;
    if (op.linearity != Linearity::kJoint || !takes_part) return true;
    const AxisSet owed = ResultSharding(bound().rule, axes, 0).sum;
    const AxisSet own = ShardingOf(bound().rule.operands[operand], axes).SplitAxes();
    for (AxisId axis : owed - own) {
      if (mesh_.Coordinate(rank, axis) != 0) return false;
    }
    return true;
  }

  // The results of one rank; `pieces` may lie about where the factors begin.
  std::vector<Tensor> RunRank(const FactorAxes& axes, int64_t rank,
                              const std::vector<DimPiece>& pieces) const {
    EvalContext<M> c{model_, bound().op_case->attrs, bound().rule, pieces, kDropoutSeed, {}, {}};
    std::vector<Tensor> tiles;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Sharding sharding = ShardingOf(bound().rule.operands[i], axes);
      tiles.push_back(TileOf(operands_[i], Pieces(bound().operands[i].type, sharding, rank)));
      if (!Holds(i, axes, rank)) tiles.back() = Tensor::Make(tiles.back().shape, false);
    }
    std::vector<Tensor> results;
    for (size_t r = 0; r < bound().results.size(); ++r) {
      const TensorType& type = bound().results[r];
      const Sharding sharding = ResultSharding(bound().rule, axes, static_cast<int>(r));
      results.push_back(Tensor::Make(LocalShape(type, sharding, mesh_), type.dtype == DType::kI64));
    }
    for (const Tensor& tile : tiles) c.inputs.push_back(&tile);
    for (Tensor& result : results) c.outputs.push_back(&result);
    bound().op->eval(c);
    return results;
  }

  void ExpectEveryAssignmentToGiveTheWholeResult() const {
    for (const FactorAxes& axes : Assignments(bound().rule.factors.size())) {
      if (!IsLegal(bound().rule, axes, mesh_)) continue;
      ExpectWholeResults(axes);
      if (HasFatalFailure()) return;
    }
  }

  void ExpectWholeResults(const FactorAxes& axes) const {
    std::vector<Assembly<M>> assemblies;
    for (size_t r = 0; r < bound().results.size(); ++r) {
      assemblies.emplace_back(model_, bound().results[r],
                              ResultSharding(bound().rule, axes, static_cast<int>(r)), mesh_);
    }
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      const std::vector<Tensor> results = RunRank(axes, rank, FactorPieces(axes, rank));
      for (size_t r = 0; r < results.size(); ++r) {
        const Sharding sharding = ResultSharding(bound().rule, axes, static_cast<int>(r));
        assemblies[r].Add(rank, Pieces(bound().results[r], sharding, rank), results[r]);
      }
    }
    for (size_t r = 0; r < assemblies.size(); ++r) {
      for (const std::vector<S>& copy : assemblies[r].Copies()) {
        Kind::ExpectEqual(
            copy, Elements(model_, whole_[r]),
            absl::StrCat(bound().op->results[r], Describe(bound().rule, axes, mesh_)));
      }
    }
  }

  // Whatever factors an op does not list may begin anywhere.
  void ExpectOnlyListedFactorsToHaveAPlace() const {
    const FactorAxes axes(bound().rule.factors.size());
    for (size_t f = 0; f < bound().rule.factors.size(); ++f) {
      const std::string& name = bound().rule.factors[f].name;
      const std::string listed = absl::StartsWith(name, ".") ? "..." : name;
      const std::vector<std::string>& offsets = bound().op->offset_factors;
      if (std::find(offsets.begin(), offsets.end(), listed) != offsets.end()) continue;
      std::vector<DimPiece> pieces = FactorPieces(axes, 0);
      const std::vector<Tensor> here = RunRank(axes, 0, pieces);
      pieces[f].begin += 1000;
      const std::vector<Tensor> elsewhere = RunRank(axes, 0, pieces);
      for (size_t r = 0; r < here.size(); ++r) {
        EXPECT_TRUE(Elements(model_, here[r]) == Elements(model_, elsewhere[r]))
            << "factor " << name;
      }
    }
  }

  // Room that is rounded up changes no result.
  void ExpectPaddingNotToCount() const {
    FactorRule rule = bound().rule;
    for (Factor& factor : rule.factors) factor.multiple = 1;
    std::vector<TensorType> results = bound().results;
    for (TensorType& type : results) {
      for (Dim& dim : type.dims) dim.multiple = 1;
    }
    const std::vector<Tensor> unpadded = Whole(rule, results);
    for (size_t r = 0; r < results.size(); ++r) {
      Kind::ExpectEqual(Elements(model_, whole_[r]), Elements(model_, unpadded[r]),
                        bound().op->results[r]);
    }
  }

  const M model_ = Kind::Make();
  const Mesh mesh_ = TestMesh();
  std::vector<Tensor> operands_;
  std::vector<Tensor> whole_;
};

using RealShardingSuite = ShardingSuite<Reals>;
using ResidueShardingSuite = ShardingSuite<Residues>;

TEST_P(RealShardingSuite, EveryAssignmentGivesTheWholeResult) {
  ExpectEveryAssignmentToGiveTheWholeResult();
}
TEST_P(ResidueShardingSuite, EveryAssignmentGivesTheWholeResult) {
  ExpectEveryAssignmentToGiveTheWholeResult();
}
TEST_P(RealShardingSuite, OnlyListedFactorsHaveAPlace) { ExpectOnlyListedFactorsToHaveAPlace(); }
TEST_P(ResidueShardingSuite, OnlyListedFactorsHaveAPlace) { ExpectOnlyListedFactorsToHaveAPlace(); }
TEST_P(RealShardingSuite, PaddingDoesNotCount) { ExpectPaddingNotToCount(); }
TEST_P(ResidueShardingSuite, PaddingDoesNotCount) { ExpectPaddingNotToCount(); }

INSTANTIATE_TEST_SUITE_P(Ops, RealShardingSuite, testing::ValuesIn(AllCases()), CaseName);
INSTANTIATE_TEST_SUITE_P(Ops, ResidueShardingSuite, testing::ValuesIn(AllCases()), CaseName);

}  // namespace
}  // namespace mgc
