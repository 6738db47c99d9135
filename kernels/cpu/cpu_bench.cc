// Rates of the CPU kernels on the sizes of GPT-2 124M with 4 x 256 tokens, with as many threads as
// --threads of the machine allow (all cores), and oneDNN's rate over the same products for
// comparison. The counter `step_ms` is the kernel's share of one training step.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <dnnl.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/reduce.h"
#include "kernels/parallel.h"
#include "kernels/testing/call_threads.h"

namespace mgc::cpu {
namespace {

constexpr int64_t kTokens = 1024, kSequence = 256, kEmbed = 768, kHeads = 12, kMlp = 3072,
                  kVocab = 50257, kLayers = 12, kParameters = 124439808;

int Threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

std::vector<float> Values(int64_t n) {
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 101 - 0.5f;
  return x;
}

// Runs `kernel` and reports how much of `calls` calls a step make up. `work` is flops or bytes of
// one call.
void Measure(benchmark::State& state, double calls, const char* unit, double work,
             const std::function<void(Parallel&)>& kernel) {
  CallThreads parallel(Threads());
  for ([[maybe_unused]] auto _ : state) kernel(parallel);
  using benchmark::Counter;
  state.counters[unit] = Counter(work / 1e9, Counter::kIsIterationInvariantRate);
  state.counters["step_ms"] =
      Counter(1e-3 / calls, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

// One of a layer's (or the head's) three products.
struct ProductCase {
  std::string name;
  int64_t tokens, in, out;
  double calls;
};

enum class Pass { kForward, kInputGrad, kWeightGrad };

GemmShape ShapeOf(const ProductCase& c, Pass pass) {
  GemmShape s;
  s.m = pass == Pass::kWeightGrad ? c.in : c.tokens;
  s.n = pass == Pass::kInputGrad ? c.in : c.out;
  s.k = pass == Pass::kForward ? c.in : pass == Pass::kInputGrad ? c.out : c.tokens;
  s.a = pass == Pass::kWeightGrad ? TransposedStrides(s.m, s.k) : DenseStrides(s.m, s.k);
  s.b = pass == Pass::kInputGrad ? TransposedStrides(s.k, s.n) : DenseStrides(s.k, s.n);
  s.c = DenseStrides(s.m, s.n);
  s.accumulate = pass == Pass::kWeightGrad;
  return s;
}

void BenchProduct(benchmark::State& state, const ProductCase& c, Pass pass) {
  const GemmShape s = ShapeOf(c, pass);
  const std::vector<float> a = Values(s.m * s.k), b = Values(s.k * s.n);
  std::vector<float> result = Values(s.m * s.n);
  std::vector<float> workspace = Values(GemmWorkspaceFloats(s.m, s.n, s.k, Threads()));
  Measure(state, c.calls, "GFLOP/s", 2.0 * static_cast<double>(s.m * s.n * s.k),
          [&](Parallel& parallel) {
            Gemm(parallel, s, a.data(), b.data(), nullptr, result.data(), workspace.data());
          });
}

void BenchOneDnn(benchmark::State& state, const ProductCase& c, Pass pass) {
  using dnnl::memory;
  const GemmShape s = ShapeOf(c, pass);
  std::vector<float> a = Values(s.m * s.k), b = Values(s.k * s.n), result = Values(s.m * s.n);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto f32 = memory::data_type::f32;
  const memory::desc a_desc({s.m, s.k}, f32, memory::dims{s.a.row, s.a.col});
  const memory::desc b_desc({s.k, s.n}, f32, memory::dims{s.b.row, s.b.col});
  const memory::desc c_desc({s.m, s.n}, f32, memory::dims{s.c.row, s.c.col});
  dnnl::primitive_attr attributes;
  if (s.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul product({{a_desc, b_desc, c_desc}, attributes, engine});
  memory a_memory(a_desc, engine, a.data()), b_memory(b_desc, engine, b.data()),
      c_memory(c_desc, engine, result.data());
  Measure(state, c.calls, "GFLOP/s", 2.0 * static_cast<double>(s.m * s.n * s.k), [&](Parallel&) {
    product.execute(
        stream, {{DNNL_ARG_SRC, a_memory}, {DNNL_ARG_WEIGHTS, b_memory}, {DNNL_ARG_DST, c_memory}});
    stream.wait();
  });
}

void BenchAttention(benchmark::State& state, bool backward) {
  const AttentionShape s = {
      kTokens / kSequence, kSequence, kSequence, kHeads, kHeads, 64, 1 / 8.0f};
  const int64_t square = kSequence * kSequence;
  const AttentionDropout dropout = {0.1, {1, 2}, 0, kHeads * square, square, square, kSequence};
  std::vector<int64_t> at(kSequence);
  for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int64_t>(i);
  const AttentionPositions positions = {at.data(), at.data()};
  const int64_t n = kTokens * kEmbed;
  const std::vector<float> q = Values(n), k = Values(n), v = Values(n), d_o = Values(n);
  std::vector<float> o = Values(n), lse = Values(kTokens * kHeads), d_q = o, d_k = o, d_v = o;
  std::vector<float> workspace = Values(
      std::max(AttentionWorkspaceFloats(s, Threads()), AttentionGradWorkspaceFloats(s, Threads())));
  const auto forward = [&](Parallel& parallel) {
    Attention(parallel, s, dropout, positions, q.data(), k.data(), v.data(), o.data(), lse.data(),
              workspace.data());
  };
  SerialParallel serial;
  forward(serial);
  // Products over the visible half of the scores.
  const double flops = static_cast<double>(kTokens * kSequence * kEmbed) * (backward ? 5 : 2);
  Measure(state, kLayers, "GFLOP/s", flops, [&](Parallel& parallel) {
    if (!backward) return forward(parallel);
    AttentionGrad(parallel, s, dropout, positions, d_o.data(), q.data(), k.data(), v.data(),
                  o.data(), lse.data(), d_q.data(), d_k.data(), d_v.data(), workspace.data());
  });
}

// A kernel over arrays of n floats, `arrays` of them read or written.
using ArrayKernel = std::function<void(Parallel&, float* a, float* b, float* c)>;

void BenchArrays(benchmark::State& state, double calls, int64_t n, double arrays,
                 const ArrayKernel& kernel) {
  std::vector<float> a = Values(n), b = Values(n), c = Values(n);
  Measure(state, calls, "GB/s", 4.0 * static_cast<double>(n) * arrays,
          [&](Parallel& parallel) { kernel(parallel, a.data(), b.data(), c.data()); });
}

void RegisterTimed(const std::string& name, const std::function<void(benchmark::State&)>& bench) {
#ifndef __clang_analyzer__  // it takes what the library keeps for a leak
  benchmark::RegisterBenchmark(name.c_str(), bench)->UseRealTime()->Unit(benchmark::kMicrosecond);
#endif
}

void Register(const std::string& name, double calls, int64_t n, double arrays,
              const ArrayKernel& kernel) {
  RegisterTimed(name,
                [=](benchmark::State& state) { BenchArrays(state, calls, n, arrays, kernel); });
}

void RegisterProducts() {
  const std::vector<ProductCase> cases = {{"qkv", kTokens, kEmbed, 3 * kEmbed, kLayers},
                                          {"out", kTokens, kEmbed, kEmbed, kLayers},
                                          {"up", kTokens, kEmbed, kMlp, kLayers},
                                          {"down", kTokens, kMlp, kEmbed, kLayers},
                                          {"head", kTokens, kEmbed, kVocab, 1}};
  const std::pair<const char*, Pass> passes[] = {{"forward", Pass::kForward},
                                                 {"input_grad", Pass::kInputGrad},
                                                 {"weight_grad", Pass::kWeightGrad}};
  for (const ProductCase& c : cases) {
    for (const auto& [word, pass] : passes) {
      const Pass p = pass;
      const std::string name = c.name + "/" + word;
      RegisterTimed("product/" + name, [=](benchmark::State& state) { BenchProduct(state, c, p); });
      RegisterTimed("onednn/" + name, [=](benchmark::State& state) { BenchOneDnn(state, c, p); });
    }
  }
}

void RegisterLayerKernels() {
  for (bool backward : {false, true}) {
    RegisterTimed(backward ? "attention/grad" : "attention/forward",
                  [=](benchmark::State& state) { BenchAttention(state, backward); });
  }
  const int64_t n = kTokens * kEmbed;
  // The arrays' last rows stand for weights and statistics.
  Register("layer_norm/forward", 2 * kLayers + 1, n + 4096, 2,
           [](Parallel& p, float* a, float* b, float* c) {
             LayerNorm(p, kTokens, kEmbed, 1e-5f, a, b, b + kEmbed, c, b + 2048, b + 4096);
           });
  Register("layer_norm/grad", 2 * kLayers + 1, n + 4096, 3,
           [](Parallel& p, float* a, float* b, float* c) {
             LayerNormGrad(p, kTokens, kEmbed, a, b, a, a + 2048, a + 4096, c);
           });
  Register("layer_norm/param_grad", 2 * kLayers + 1, n + 4096, 2,
           [](Parallel& p, float* a, float* b, float* c) {
             LayerNormParamGrad(p, kTokens, kEmbed, a, b, a, a + 2048, true, c, c + kEmbed);
           });
  Register("bias_gelu/forward", kLayers, kTokens * kMlp, 2,
           [](Parallel& p, float* a, float* b, float* c) { BiasGelu(p, kTokens, kMlp, a, b, c); });
  Register("bias_gelu/grad", kLayers, kTokens * kMlp, 3,
           [](Parallel& p, float* a, float* b, float* c) {
             BiasGeluGrad(p, kTokens, kMlp, a, b, b, c);
           });
  Register(
      "bias_grad/mlp", kLayers, kTokens * kMlp, 1,
      [](Parallel& p, float* a, float*, float* c) { SumMiddle(p, 1, kTokens, kMlp, a, true, c); });
  Register("bias_grad/embed", 5 * kLayers, n, 1, [](Parallel& p, float* a, float*, float* c) {
    SumMiddle(p, 1, kTokens, kEmbed, a, true, c);
  });
  Register("dropout", 2 * kLayers + 2, n, 2, [](Parallel& p, float* a, float*, float* c) {
    Dropout(p, {1, 2}, IndexGrid::Run(0, kTokens * kEmbed), 0.1, a, c);
  });
  Register("bias_add", 3 * kLayers, n, 2, [](Parallel& p, float* a, float* b, float* c) {
    Add(p, kTokens * kEmbed, {{a, kTokens * kEmbed}, {b, kEmbed}}, c);
  });
  Register("gradient_add", 2 * kLayers, n, 3, [](Parallel& p, float* a, float* b, float* c) {
    Add(p, kTokens * kEmbed, {{a, kTokens * kEmbed}, {b, kTokens * kEmbed}}, c);
  });
}

void RegisterLossAndUpdate() {
  const LogitsShape logits = {kTokens, kVocab, kVocab, 0};
  const int64_t n = kTokens * kVocab;
  Register("loss/max", 1, n, 1, [=](Parallel& p, float* a, float*, float* c) {
    RowMax(p, kTokens, kVocab, kVocab, a, c);
  });
  Register("loss/exp_sum", 1, n, 1,
           [=](Parallel& p, float* a, float* b, float* c) { ExpSum(p, logits, a, b, c); });
  Register("loss/grad", 1, n, 2, [=](Parallel& p, float* a, float* b, float* c) {
    const std::vector<int64_t> ids(kTokens, 7);
    CrossEntropyGrad(p, logits, a, b, b, ids.data(), b, c);
  });
  Register("embedding/grad", 2, kVocab * kEmbed, 3.0 * kTokens / kVocab,
           [](Parallel& p, float* a, float*, float* c) {
             std::vector<int64_t> ids(kTokens);
             for (size_t i = 0; i < ids.size(); ++i)
               ids[i] = static_cast<int64_t>(i * 7919 % kVocab);
             LookupGrad(p, {kVocab, kEmbed, kVocab, 0}, kTokens, ids.data(), a, true, c);
           });
  const int64_t part = 1 << 24;  // of the parameters; larger than every cache
  const double parts = static_cast<double>(kParameters) / static_cast<double>(part);
  Register("adamw", parts, part, 7, [](Parallel& p, float* a, float* b, float* c) {
    const AdamwScalars scalars;
    const int64_t half = (1 << 24) / 2;
    Adamw(p, half, scalars, a, a + half, b, c, a, b, c);
    Adamw(p, half, scalars, a, a + half, b + half, c + half, a, b + half, c + half);
  });
  Register("sum_of_squares", parts, part, 1, [](Parallel& p, float* a, float*, float* c) {
    SumOfSquares(p, 1 << 24, a, reinterpret_cast<double*>(c));
  });
  Register("initial_normal", 0.001, part, 1, [](Parallel& p, float* a, float*, float*) {
    FillNormal(p, {1, 2}, IndexGrid::Run(0, 1 << 24), 0.02, a);
  });
}

}  // namespace
}  // namespace mgc::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  mgc::cpu::RegisterProducts();
  mgc::cpu::RegisterLayerKernels();
  mgc::cpu::RegisterLossAndUpdate();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
