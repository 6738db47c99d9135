// Attention of GPUs against the CPU's in f32, at sizes of several tiles and with tails: on the
// emulator, and on a GPU as it is.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/eval/op_case.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "gtest/gtest.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cuda/adapt.h"
#include "kernels/cuda/api.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_group_shape.h"
#include "kernels/cuda/attention/attention_tensor_shape.h"
#include "kernels/parallel.h"
#include "kernels/spec.h"
#include "kernels/testing/kernel_case.h"

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/group_products.h"
#endif

namespace mgc::cuda {
namespace {

#ifdef MGC_CUDA_EMULATED
void SetOrder(uint64_t order) { emulator::SetSeed(order); }
std::string Fault() { return emulator::TakeFault(); }
void SetGroups(bool has) { emulator::SetGroups(has); }
#else
void SetGroups(bool /*has*/) {}  // a GPU has them or not
void SetOrder(uint64_t /*order*/) {}
std::string Fault() { return ""; }
#endif

void Check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& from) : size_(from.size()) {
    Check(cudaMalloc(&at_, size_ * sizeof(T)));
    Check(cudaMemcpy(at_, from.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(at_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* at() const { return static_cast<T*>(at_); }
  std::vector<T> Take() const {
    std::vector<T> to(size_);
    Check(cudaMemcpy(to.data(), at_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return to;
  }

 private:
  size_t size_;
  void* at_ = nullptr;
};

float ToFloat(float x) { return x; }
using mgc::ToFloat;
void Put(float x, float* to) { *to = x; }
void Put(float x, Bfloat16* to) { *to = ToBfloat16(x); }
void Put(float x, Float16* to) { *to = ToFloat16(x); }

template <class T>
std::vector<float> Widened(const std::vector<T>& x) {
  std::vector<float> wide(x.size());
  for (size_t i = 0; i < x.size(); ++i) wide[i] = ToFloat(x[i]);
  return wide;
}

template <class T>
struct Case {
  AttentionShape shape;
  double p = 0;
  uint64_t gap = 1;  // of logical indices, from head to head
  std::vector<int64_t> query_positions, key_positions;
  std::vector<int64_t> query_segments, key_segments;  // empty: none
  std::vector<T> q, k, v, d_o;

  size_t q_size() const {
    return static_cast<size_t>(shape.batch * shape.queries * shape.heads * shape.dim);
  }
  size_t kv_size() const {
    return static_cast<size_t>(shape.batch * shape.keys * shape.kv_heads * shape.dim);
  }
  size_t rows() const { return static_cast<size_t>(shape.batch * shape.queries * shape.heads); }

  AttentionDropout dropout() const {
    AttentionDropout d;
    d.p = p;
    d.stream = {11, 22};
    d.base = 5 * gap;
    d.query = static_cast<uint64_t>(shape.keys);
    d.head = d.query * static_cast<uint64_t>(shape.queries) + gap;
    d.kv_head = d.head * static_cast<uint64_t>(shape.heads / shape.kv_heads) + 70 * gap;
    d.batch = d.kv_head * static_cast<uint64_t>(shape.kv_heads) + 3 * gap;
    return d;
  }
};

template <class T>
std::vector<T> Uniform(size_t n, uint32_t seed, float bound) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-bound, bound);
  std::vector<T> x(n);
  for (T& to : x) Put(distribution(generator), &to);
  return x;
}

struct Sizes {
  int64_t batch, queries, keys, heads, kv_heads, dim;
};

// Causal, the last query at the last key.
template <class T>
Case<T> Make(const Sizes& n) {
  Case<T> c;
  c.shape = {n.batch, n.queries, n.keys, n.heads, n.kv_heads, n.dim};
  c.shape.scale = 1.5f / std::sqrt(static_cast<float>(n.dim));
  for (int64_t i = 0; i < n.queries; ++i) c.query_positions.push_back(n.keys - n.queries + i);
  for (int64_t j = 0; j < n.keys; ++j) c.key_positions.push_back(j);
  c.q = Uniform<T>(c.q_size(), 1, 2);
  c.k = Uniform<T>(c.kv_size(), 2, 2);
  c.v = Uniform<T>(c.kv_size(), 3, 1);
  c.d_o = Uniform<T>(c.q_size(), 4, 1);
  return c;
}

struct Results {
  std::vector<float> o, lse, d_q, d_k, d_v;
};

template <class T>
Results OfCpu(const Case<T>& c) {
  AttentionPositions positions = {c.query_positions.data(), c.key_positions.data()};
  if (!c.query_segments.empty()) {
    positions.query_segments = c.query_segments.data();
    positions.key_segments = c.key_segments.data();
  }
  const std::vector<float> q = Widened(c.q), k = Widened(c.k), v = Widened(c.v),
                           d_o = Widened(c.d_o);
  Results r;
  r.o.resize(c.q_size());
  r.lse.resize(c.rows());
  r.d_q.resize(c.q_size());
  r.d_k.resize(c.kv_size());
  r.d_v.resize(c.kv_size());
  SerialParallel serial;
  std::vector<float> work(static_cast<size_t>(cpu::AttentionWorkspaceFloats(c.shape, 1)));
  cpu::Attention(serial, c.shape, c.dropout(), positions, q.data(), k.data(), v.data(), r.o.data(),
                 r.lse.data(), work.data());
  work.resize(static_cast<size_t>(cpu::AttentionGradWorkspaceFloats(c.shape, 1)));
  cpu::AttentionGrad(serial, c.shape, c.dropout(), positions, d_o.data(), q.data(), k.data(),
                     v.data(), r.o.data(), r.lse.data(), r.d_q.data(), r.d_k.data(), r.d_v.data(),
                     work.data());
  return r;
}

AttentionUse UseOf(const AttentionShape& shape, const AttentionDropout& dropout) {
  AttentionUse use;
  use.shape = shape;
  use.dropout = dropout;
  use.rule = MakeDropoutRule(dropout.p, dropout.stream);
  return use;
}

// The gradients with room for so many parts of sums.
template <class T>
Results OfDevice(const Case<T>& c, int parts) {
  T mark;
  Put(77, &mark);
  const DeviceArray<int64_t> query_positions(c.query_positions), key_positions(c.key_positions),
      query_segments(c.query_segments), key_segments(c.key_segments);
  AttentionUse use = UseOf(c.shape, c.dropout());
  use.positions = {query_positions.at(), key_positions.at()};
  if (!c.query_segments.empty()) {
    use.positions.query_segments = query_segments.at();
    use.positions.key_segments = key_segments.at();
  }
  const DeviceArray<T> q(c.q), k(c.k), v(c.v), d_o(c.d_o);
  const DeviceArray<T> o(std::vector<T>(c.q_size(), mark)), d_q(std::vector<T>(c.q_size(), mark));
  const DeviceArray<T> d_k(std::vector<T>(c.kv_size(), mark)),
      d_v(std::vector<T>(c.kv_size(), mark));
  const DeviceArray<float> lse(std::vector<float>(c.rows(), 77));
  const AttentionOperands<T> in = {q.at(), k.at(), v.at()};
  cudaStream_t stream;
  Check(cudaStreamCreate(&stream));
  EXPECT_EQ(Attention(stream, use, in, o.at(), lse.at()), 0);
  const AttentionResults<T> results = {d_o.at(), o.at(), lse.at()};
  const AttentionGradients<T> out = {d_q.at(), d_k.at(), d_v.at()};
  const auto room = static_cast<size_t>(parts * c.shape.batch * c.shape.heads *
                                        QuerySumsOfHead(c.shape.queries, TensorDim(c.shape.dim)));
  const DeviceArray<float> sums(std::vector<float>(room + 1, 77));
  EXPECT_EQ(AttentionGrad(stream, use, in, results, out, {sums.at(), parts}), 0);
  Check(cudaStreamSynchronize(stream));
  Check(cudaStreamDestroy(stream));
  EXPECT_EQ(Fault(), "");
  return {Widened(o.Take()), lse.Take(), Widened(d_q.Take()), Widened(d_k.Take()),
          Widened(d_v.Take())};
}

// Within `tolerance` of the largest.
void ExpectClose(const std::vector<float>& actual, const std::vector<float>& expected,
                 double tolerance, const char* what) {
  double largest = 1e-30, worst = 0;
  size_t at = 0;
  for (const float x : expected) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(double{x}));
  }
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const double off = actual[i] == expected[i] ? 0 : std::abs(double{actual[i]} - expected[i]);
    if (!(off <= worst)) worst = off, at = i;
  }
  EXPECT_LE(worst, tolerance * largest) << what << "[" << at << "]: " << actual[at] << " and not "
                                        << expected[at] << ", the largest being " << largest;
}

template <class T>
double UnitOf() {
  return sizeof(T) == 4 ? 4e-6 : std::is_same_v<T, Bfloat16> ? 0x1p-7 : 0x1p-10;
}

template <class T>
void ExpectNear(const Results& actual, const Results& expected) {
  ExpectClose(actual.o, expected.o, UnitOf<T>(), "o");
  ExpectClose(actual.lse, expected.lse, 4e-6, "lse");
  ExpectClose(actual.d_q, expected.d_q, 2 * UnitOf<T>(), "d_q");
  ExpectClose(actual.d_k, expected.d_k, 2 * UnitOf<T>(), "d_k");
  ExpectClose(actual.d_v, expected.d_v, 2 * UnitOf<T>(), "d_v");
}

// By warpgroups where they take it; without room also without them.
template <class T>
void ExpectAgrees(const Case<T>& c, int parts = 0) {
  SetOrder(1);
  const Results actual = OfDevice(c, parts);
  const Results expected = OfCpu(c);
  ExpectNear<T>(actual, expected);
  SetOrder(2);
  const Results again = OfDevice(c, parts);
  EXPECT_EQ(actual.o, again.o);
  EXPECT_EQ(actual.lse, again.lse);
  EXPECT_EQ(actual.d_q, again.d_q);
  EXPECT_EQ(actual.d_k, again.d_k);
  EXPECT_EQ(actual.d_v, again.d_v);
  if (parts > 0 || sizeof(T) == sizeof(float)) return;
  SetGroups(false);
  ExpectNear<T>(OfDevice(c, parts), expected);
  SetGroups(true);
}

template <class T>
Case<T> OverAll(Case<T> c) {
  c.shape.causal = false;
  return c;
}

template <class T>
Case<T> Windowed(Case<T> c, int64_t window) {
  c.shape.window = window;
  return c;
}

// Segments of uneven lengths, another cut in each sample; the last one is in keys only.
template <class T>
Case<T> Segmented(Case<T> c) {
  const auto segment = [](int64_t b, int64_t i) { return (i + 20 * b) / 37; };
  for (int64_t b = 0; b < c.shape.batch; ++b) {
    for (int64_t i = 0; i < c.shape.queries; ++i) c.query_segments.push_back(segment(b, i) % 3);
    for (int64_t j = 0; j < c.shape.keys; ++j) c.key_segments.push_back(segment(b, j) % 4);
  }
  return c;
}

// Positions of a sequence cut and put together in another order, as context parallelism's zigzag
// does.
template <class T>
Case<T> Shuffled(Case<T> c) {
  const int64_t n = c.shape.keys;
  for (int64_t j = 0; j < n; ++j) {
    c.key_positions[static_cast<size_t>(j)] = j < n / 2 ? 2 * j + 1 : 2 * (n - j) - 2;
  }
  for (int64_t i = 0; i < c.shape.queries; ++i) {
    c.query_positions[static_cast<size_t>(i)] = i * 77 % (n + 1) - 1;
  }
  return c;
}

TEST(AttentionOfGpus, GeneralKernels) {
  ExpectAgrees(Make<float>({1, 70, 70, 2, 1, 40}));
  ExpectAgrees(Segmented(Shuffled(Make<float>({2, 33, 75, 1, 1, 68}))));
  Case<Bfloat16> c = Windowed(Make<Bfloat16>({1, 67, 100, 2, 2, 17}), 30);
  c.p = 0.1;
  c.shape.cap = 3;
  ExpectAgrees(c);
}

TEST(AttentionOfGpus, TensorCoresOfBf16) {
  ExpectAgrees(Make<Bfloat16>({1, 70, 140, 2, 1, 64}));
  ExpectAgrees(OverAll(Make<Bfloat16>({1, 20, 70, 1, 1, 128})));
  ExpectAgrees(Make<Bfloat16>({1, 130, 130, 1, 1, 64}));
  ExpectAgrees(Windowed(Make<Bfloat16>({1, 130, 130, 1, 1, 64}), 50));
}

TEST(AttentionOfGpus, TensorCoresOfF16) {
  ExpectAgrees(Segmented(Shuffled(Make<Float16>({2, 50, 75, 1, 1, 72}))));
  Case<Float16> c = Make<Float16>({1, 129, 65, 1, 1, 40});
  c.p = 0.1;
  c.shape.cap = 3;
  ExpectAgrees(c);
}

// Queries and keys whose indices are whole blocks of the generator.
TEST(AttentionOfGpus, TensorCoresDropWholeBlocks) {
  Case<Bfloat16> c = Make<Bfloat16>({2, 37, 68, 2, 1, 40});
  c.p = 0.3;
  c.gap = 4;
  ExpectAgrees(c);
}

// Keys of several blocks, more parts than blocks, heads that share keys, samples, tails; tiles that
// nobody sees or that a warp does not.
TEST(AttentionOfGpus, TensorCoresAddAllGradientsInOnePass) {
  ExpectAgrees(Make<Bfloat16>({1, 270, 270, 1, 1, 64}), 2);
  ExpectAgrees(Windowed(Make<Bfloat16>({1, 40, 270, 1, 1, 128}), 50), 4);
  ExpectAgrees(Segmented(Shuffled(Make<Float16>({2, 50, 75, 2, 1, 72}))), 1);
  ExpectAgrees(OverAll(Make<Float16>({1, 33, 140, 1, 1, 40})), 1);
  Case<Bfloat16> c = Make<Bfloat16>({2, 37, 132, 2, 1, 40});
  c.p = 0.3;
  c.gap = 4;
  c.shape.cap = 3;
  ExpectAgrees(c, 2);
}

// The op says how much room there is, and the kernel takes it all.
TEST(AttentionOfGpus, OnePassHasTheRoomThatPlansMake) {
  const auto bytes_of = [](const std::string& type, int64_t batch, int64_t keys) {
    const auto of = [&](int64_t rows, int64_t heads) {
      return absl::StrCat(type, "[", batch, ",", rows, ",", heads, ",64]");
    };
    const OpCase use = {
        absl::StrCat(of(40, 16), ", ", of(40, 16), ", ", of(keys, 8), ", ", of(keys, 8), ", ",
                     of(40, 16), ", f32[", batch, ",16,40]", ", i64[40]<40, i64[", keys, "]<40"),
        FindOp("attention_grad")->cases[0].attrs};
    const absl::StatusOr<BoundCase> bound =
        BindCase(*FindOp("attention_grad"), use, "attention_grad");
    EXPECT_TRUE(bound.ok()) << bound.status();
    const KernelSpec spec = SpecOf(*bound, Place{});
    for (const KernelEntry& entry : AttentionKernels()) {
      if (entry.op != std::string("attention_grad")) continue;
      const absl::StatusOr<std::unique_ptr<Kernel>> kernel = entry.make(spec);
      EXPECT_TRUE(kernel.ok()) << kernel.status();
      EXPECT_EQ((*kernel)->workspace_bytes(1), WorkspaceBoundOf(spec, KernelHost::kGpu));
      return (*kernel)->workspace_bytes(1);
    }
    ADD_FAILURE() << "no kernel";
    return int64_t{-1};
  };
  const int64_t sums = int64_t{8} * 64 * 16 * 64 * 4;  // a part's, of 8 samples, in a tile
  EXPECT_EQ(bytes_of("bf16", 8, 1000), 4 * sums);      // of 64 heads of keys
  EXPECT_EQ(bytes_of("bf16", 8, 300), 3 * sums);       // in three blocks
  EXPECT_EQ(bytes_of("bf16", 16, 1000), int64_t{4} * sums);
  EXPECT_EQ(bytes_of("bf16", 1, 1000), 0);  // too few
  EXPECT_EQ(bytes_of("f32", 8, 1000), 0);
}

}  // namespace
}  // namespace mgc::cuda
