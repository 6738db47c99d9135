#include "passes/plan/time/cost.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/op.h"
#include "graph/plan/instr_collective.h"
#include "graph/types/machine.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

const std::vector<StagePlace> kNoStages;

// A machine of round numbers: 1 Gflop/s in f32 and half of it in f64, 1 GB/s of memory; machines of
// four ranks at 100 MB/s and 1 us, and a network at 10 MB/s and 10 us between them.
Machine RoundMachine() {
  Machine machine;
  machine.name = "round";
  machine.memory = 1;
  machine.memory_bandwidth = 1e9;
  machine.op_overhead = 2e-6;
  machine.compute = {{"f32", 1e9, 1.0}, {"f64", 5e8, 1.0}};
  machine.tiers = {{"inside", 4, 1e8, 1.0, 1e-6}, {"between", kAnyRanks, 1e7, 1.0, 1e-5}};
  return machine;
}

Mesh MeshOf(const std::vector<MeshAxis>& axes) { return *Mesh::Create(axes); }

// One instruction over whole tensors, operands first. Its dims may then be cut.
class OneInstr {
 public:
  OneInstr(const std::string& op, const Attrs& attrs, const std::vector<TensorType>& operands,
           const Mesh& mesh = Mesh())
      : mesh_(mesh) {
    Instr instr;
    instr.op = FindOp(op);
    instr.attrs = attrs;
    std::vector<const TensorType*> pointers;
    for (const TensorType& type : operands) {
      pointers.push_back(&type);
      instr.inputs.push_back(Add(type));
    }
    const auto results = InferTypes(*instr.op, attrs, pointers);
    EXPECT_TRUE(results.ok()) << results.status();
    for (const TensorType& type : *results) instr.outputs.push_back(Add(type));
    segment_.instrs.push_back(std::move(instr));
  }

  // Cuts dim `d` of slot `i` (operands first) over an axis.
  OneInstr& Cut(int i, int d, const std::string& axis) {
    Slot& slot = segment_.slots[static_cast<size_t>(i)];
    slot.sharding.dims[static_cast<size_t>(d)] = mesh_.Find(axis);
    slot.bytes = LocalElements(slot.type, slot.sharding, mesh_) * SizeOf(slot.type.dtype);
    return *this;
  }

  double Flops() const { return FlopsOf(mesh_, segment_, segment_.instrs[0]); }
  double Bytes() const { return BytesOf(mesh_, segment_, segment_.instrs[0]); }
  int64_t Ns(const Machine& machine = RoundMachine()) const {
    return ComputeNs({mesh_, machine, kNoStages}, segment_, segment_.instrs[0]);
  }

 private:
  int Add(const TensorType& type) {
    Slot slot;
    slot.type = type;
    slot.sharding = Sharding::Whole(type.ndim());
    slot.bytes = type.NumElements() * SizeOf(type.dtype);
    segment_.slots.push_back(std::move(slot));
    return static_cast<int>(segment_.slots.size()) - 1;
  }

  const Mesh mesh_;
  Segment segment_;
};

TensorType Type(DType dtype, const std::vector<int64_t>& sizes) {
  TensorType type{dtype, {}};
  for (int64_t size : sizes) type.dims.push_back({size, "", 1});
  return type;
}
TensorType F32(const std::vector<int64_t>& sizes) { return Type(DType::kF32, sizes); }
TensorType I64(const std::vector<int64_t>& sizes) { return Type(DType::kI64, sizes); }

// --- Attention

constexpr int64_t kBatch = 2, kHeads = 4, kKvHeads = 2, kDepth = 8;

Attrs AttentionAttrs(int64_t window) {
  Attrs attrs = {{"scale", 1.0}, {"p", 0.0}, {"key", ""}};
  if (window > 0) attrs.Set("window", window);
  return attrs;
}

OneInstr Attention(int64_t queries, int64_t keys, int64_t window, const Mesh& mesh = Mesh()) {
  const TensorType q = F32({kBatch, queries, kHeads, kDepth});
  const TensorType k = F32({kBatch, keys, kKvHeads, kDepth});
  return OneInstr("attention", AttentionAttrs(window), {q, k, k, I64({queries}), I64({keys})},
                  mesh);
}

OneInstr AttentionGrad(int64_t tokens, int64_t window) {
  const TensorType q = F32({kBatch, tokens, kHeads, kDepth});
  const TensorType k = F32({kBatch, tokens, kKvHeads, kDepth});
  const TensorType lse = F32({kBatch, kHeads, tokens});
  return OneInstr("attention_grad", AttentionAttrs(window),
                  {q, q, k, k, q, lse, I64({tokens}), I64({tokens})});
}

// Visible pairs, one by one; the queries are the last of the keys.
double Pairs(int64_t queries, int64_t keys, int64_t window) {
  double pairs = 0;
  for (int64_t s = 0; s < queries; ++s) {
    for (int64_t t = 0; t < keys; ++t) {
      const int64_t back = keys - queries + s - t;
      if (back >= 0 && (window == 0 || back < window)) ++pairs;
    }
  }
  return pairs;
}

// 4 flops for a pair and a place of its depth: the score, and the sum of values.
TEST(CostTest, AttentionIsChargedForWhatIsVisible) {
  EXPECT_EQ(Attention(3, 3, 0).Flops(), 4.0 * 6 * kBatch * kHeads * kDepth);
  for (int64_t queries : {1, 2, 5, 8}) {
    for (int64_t keys : {1, 4, 8}) {
      for (int64_t window : {0, 1, 3, 8, 20}) {
        EXPECT_EQ(Attention(queries, keys, window).Flops(),
                  4 * Pairs(queries, keys, window) * kBatch * kHeads * kDepth)
            << queries << " " << keys << " " << window;
      }
    }
  }
}

TEST(CostTest, AttentionOverAllKeysIsChargedForAllPairs) {
  const TensorType q = F32({kBatch, 3, kHeads, kDepth});
  const TensorType k = F32({kBatch, 5, kKvHeads, kDepth});
  Attrs attrs = AttentionAttrs(0);
  attrs.Set("causal", int64_t{0});
  const OneInstr all("attention", attrs, {q, k, k, I64({3}), I64({5})});
  EXPECT_EQ(all.Flops(), 4.0 * 3 * 5 * kBatch * kHeads * kDepth);
}

TEST(CostTest, ItsGradientIsChargedForFiveProducts) {
  for (int64_t window : {0, 3, 8}) {
    EXPECT_EQ(AttentionGrad(8, window).Flops(), 2.5 * Attention(8, 8, window).Flops()) << window;
  }
}

// Heads over tp share the work; of a sequence over cp the rank with its end does
// 5 + 6 + 7 + 8 of 36 pairs.
TEST(CostTest, TheRankWithTheEndOfASequenceSetsThePace) {
  const Mesh mesh = MeshOf({{"tp", 2}, {"cp", 2}});
  const double whole = Attention(8, 8, 0).Flops();
  OneInstr by_heads = Attention(8, 8, 0, mesh);
  for (int slot : {0, 1, 2, 5}) by_heads.Cut(slot, 2, "tp");
  EXPECT_EQ(by_heads.Cut(6, 1, "tp").Flops(), whole / 2);
  OneInstr by_tokens = Attention(8, 8, 0, mesh);
  by_tokens.Cut(0, 1, "cp").Cut(3, 0, "cp").Cut(5, 1, "cp").Cut(6, 2, "cp");
  EXPECT_EQ(by_tokens.Flops(), whole * 26 / 36);
}

// --- Bytes

// 6 of 1000 rows of 16: ids, rows, result.
TEST(CostTest, ALookupReadsItsRows) {
  const OneInstr lookup("lookup", {}, {F32({1000, 16}), I64({2, 3})});
  EXPECT_EQ(lookup.Bytes(), 6 * 8 + 2 * 6 * 16 * 4);
  EXPECT_EQ(lookup.Ns(), 2000 + 816);
  const Mesh mesh = MeshOf({{"tp", 4}});
  OneInstr cut("lookup", {}, {F32({1000, 16}), I64({2, 3})}, mesh);
  EXPECT_EQ(cut.Cut(0, 1, "tp").Cut(2, 2, "tp").Bytes(), 6 * 8 + 2 * 6 * 4 * 4);
}

// The gradient starts from a table of zeros, the sum over micro-batches stays where it is.
TEST(CostTest, ItsGradientAddsItsRows) {
  const std::vector<TensorType> operands = {F32({1000, 16}), I64({2, 3}), F32({2, 3, 16})};
  const double rows = 6 * 8 + 3 * 6 * 16 * 4;
  EXPECT_EQ(OneInstr("lookup_grad", {}, operands).Bytes(), rows + 1000 * 16 * 4);
  EXPECT_EQ(OneInstr("lookup_grad_accumulate", {}, operands).Bytes(), rows);
}

TEST(CostTest, WhatIsNotReadCostsNothing) {
  const TensorType logits = F32({2, 3, 1000});
  EXPECT_EQ(OneInstr("pick", {}, {logits, I64({2, 3})}).Bytes(), 6 * (8 + 4 + 4));
  // Of the logits only the type counts.
  EXPECT_EQ(OneInstr("pick_grad", {}, {logits, I64({2, 3}), F32({2, 3})}).Bytes(),
            6 * (8 + 4) + 6 * 1000 * 4);
  const Attrs range = {{"dim", int64_t{0}}, {"begin", int64_t{4}}, {"end", int64_t{6}}};
  EXPECT_EQ(OneInstr("slice", range, {F32({1000, 16})}).Bytes(), 2 * 2 * 16 * 4);
}

// One pass over the logits where the small ops take three: two gradients and their sum.
TEST(CostTest, AFusedOpPassesOnce) {
  const TensorType logits = F32({2, 3, 1000});
  const TensorType row = F32({2, 3});
  EXPECT_EQ(OneInstr("cross_entropy_grad", {}, {logits, row, row, I64({2, 3}), row}).Bytes(),
            2 * 6 * 1000 * 4 + 6 * (3 * 4 + 8));
}

// --- Rates

TEST(CostTest, AProductTakesTheRateOfItsType) {
  const Attrs spec = {{"spec", "m k, k n -> m n"}};
  const auto product = [&](DType dtype) {
    return OneInstr("matmul", spec, {Type(dtype, {64, 64}), Type(dtype, {64, 64})}).Ns();
  };
  EXPECT_EQ(product(DType::kF32), 2000 + 2 * 64 * 64 * 64);
  EXPECT_EQ(product(DType::kF64), 2000 + 2 * 2 * 64 * 64 * 64);
}

TEST(CostTest, MeasuredRatesGoBySizeAndMeasuredOpsByTheirFactor) {
  Machine machine = RoundMachine();
  machine.compute[0].points = {{1000, 0.25}, {1e6, 0.5}};
  machine.ops = {{"add", "f32", 3}};
  const Attrs spec = {{"spec", "m k, k n -> m n"}};
  const auto product = [&](int64_t size) {
    return OneInstr("matmul", spec, {F32({size, size}), F32({size, size})}).Ns(machine);
  };
  EXPECT_EQ(product(5), 2000 + 4 * 2 * 5 * 5 * 5);  // 250 flops
  EXPECT_EQ(product(100), 2000 + 2 * 100 * 100 * 100);
  EXPECT_EQ(OneInstr("add", {}, {F32({100}), F32({100})}).Ns(machine), 2000 + 3 * 3 * 400);
}

// --- Networks

// Sends 4 KB along the groups of `axis` as one all-reduce.
int64_t AllReduceNs(const Mesh& mesh, const std::string& axis, int coordinate = 0) {
  const Machine machine = RoundMachine();
  Segment segment;
  for (bool owed : {true, false}) {
    Slot slot;
    slot.type = F32({1024});
    slot.sharding = Sharding::Whole(1);
    if (owed) slot.sharding.sum = mesh.Find(axis).AsSet();
    slot.bytes = 4096;
    segment.slots.push_back(std::move(slot));
  }
  Instr start;
  start.kind = InstrKind::kStart;
  start.op = FindOp("all_reduce");
  start.inputs = {0};
  start.outputs = {1};
  start.collective = 0;
  return CollectiveNs({mesh, machine, kNoStages}, segment, start, coordinate);
}

// 2 (n - 1) / n of 4 KB, rounded up: 4096 bytes for two ranks, 5462 for three.
TEST(CostTest, ACollectiveRunsOnTheTierThatItsGroupsSpan) {
  EXPECT_EQ(AllReduceNs(MeshOf({{"tp", 2}, {"dp", 2}}), "dp"), 1000 + 40960);
  EXPECT_EQ(AllReduceNs(MeshOf({{"tp", 4}, {"dp", 2}}), "dp"), 10000 + 409600);
}

// Ranks 0 to 2 are in one machine, 3 to 5 in two: all wait for the latter.
TEST(CostTest, TheGroupThatLeavesItsMachineSetsThePace) {
  const int64_t fast = AllReduceNs(MeshOf({{"tp", 3}}), "tp");
  const int64_t slow = AllReduceNs(MeshOf({{"tp", 3}, {"dp", 2}}), "tp");
  EXPECT_EQ(fast, 1000 + 54620);
  EXPECT_EQ(slow, 10000 + 546200);
  // On a pipeline each class by itself: 0 to 2, and 3 to 5.
  const Mesh pipeline = MeshOf({{"tp", 3}, {"pp", 2}});
  EXPECT_EQ(AllReduceNs(pipeline, "tp", 0), fast);
  EXPECT_EQ(AllReduceNs(pipeline, "tp", 1), slow);
}

// Copies of a weight: between the classes that hold them, not along the whole pipeline.
TEST(CostTest, ASumOfCopiesRunsBetweenItsHolders) {
  const Machine machine = RoundMachine();
  const Mesh mesh = MeshOf({{"tp", 2}, {"pp", 4}});
  const std::vector<StagePlace> stages = {{0, 0}, {1, 0}, {2, 0}, {3, 0}};
  Segment segment;
  segment.slots.push_back({"x", F32({1024}), Sharding::Whole(1), 0, 0, 4096});
  const auto ns = [&](const std::vector<int>& classes) {
    Instr start;
    start.kind = InstrKind::kStart;
    start.op = FindOp("all_reduce");
    start.inputs = start.outputs = {0};
    start.collective = 0;
    SetJoinedClasses(classes, stages, &start);
    return CollectiveNs({mesh, machine, stages}, segment, start, classes.front());
  };
  EXPECT_EQ(ns({0, 1}), 1000 + 40960);
  EXPECT_EQ(ns({2, 3}), 1000 + 40960);
  EXPECT_EQ(ns({1, 2}), 10000 + 409600);
  EXPECT_EQ(ns({0, 3}), 10000 + 409600);
  EXPECT_EQ(ns({0, 1, 3}), 10000 + 546200);
}

TEST(CostTest, ATransferTakesTheTierOfItsSlowestPair) {
  const Machine machine = RoundMachine();
  const Mesh two = MeshOf({{"tp", 2}, {"pp", 4}});
  EXPECT_EQ(TransferNs({two, machine, kNoStages}, 0, 1, 4096), 1000 + 40960);
  EXPECT_EQ(TransferNs({two, machine, kNoStages}, 1, 2, 4096), 10000 + 409600);
  // 0 to 3 stays inside, 1 to 4 does not.
  const Mesh three = MeshOf({{"tp", 3}, {"pp", 2}});
  EXPECT_EQ(TransferNs({three, machine, kNoStages}, 0, 1, 4096), 10000 + 409600);
  EXPECT_EQ(TransferNs({three, machine, kNoStages}, 1, 0, 4096), 10000 + 409600);
}

}  // namespace
}  // namespace mgc
