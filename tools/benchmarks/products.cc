#include "tools/benchmarks/products.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

using cpu::DenseStrides;
using cpu::GemmShape;
using cpu::TransposedStrides;

// C[m, n] = A[m, k] · B[k, n], an operand stored as the transpose where its flag says so.
GemmShape Shape(int64_t batch, int64_t m, int64_t n, int64_t k, bool a_transposed,
                bool b_transposed) {
  GemmShape s;
  s.batch = batch;
  s.m = m;
  s.n = n;
  s.k = k;
  s.a = a_transposed ? TransposedStrides(m, k) : DenseStrides(m, k);
  s.b = b_transposed ? TransposedStrides(k, n) : DenseStrides(k, n);
  s.c = DenseStrides(m, n);
  return s;
}

// Y = X·W and its two gradients, `transposed` when W is stored as [out, in].
void AddProjection(const std::string& name, int64_t tokens, int64_t in, int64_t out, int64_t calls,
                   bool transposed, std::vector<StepProduct>* products) {
  products->push_back(
      {absl::StrCat(name, " forward"), Shape(1, tokens, out, in, false, transposed), calls});
  products->push_back({absl::StrCat(name, " input gradient"),
                       Shape(1, tokens, in, out, false, !transposed), calls});
  GemmShape weight =
      transposed ? Shape(1, out, in, tokens, true, false) : Shape(1, in, out, tokens, true, false);
  weight.accumulate = true;
  products->push_back({absl::StrCat(name, " weight gradient"), weight, calls});
}

// S = Q·Kᵀ and O = P·V forward; dV = Pᵀ·dO, dP = dO·Vᵀ, dQ = dS·K, dK = dSᵀ·Q backward.
void AddAttention(int64_t heads, int64_t seq, int64_t head_dim, int64_t calls,
                  std::vector<StepProduct>* products) {
  const GemmShape scores = Shape(heads, seq, seq, head_dim, false, true);
  const GemmShape values = Shape(heads, seq, head_dim, seq, false, false);
  const GemmShape transposed = Shape(heads, seq, head_dim, seq, true, false);
  products->push_back({"attention scores", scores, calls});
  products->push_back({"attention values", values, calls});
  products->push_back({"attention value gradient", transposed, calls});
  products->push_back({"attention probability gradient", scores, calls});
  products->push_back({"attention query gradient", values, calls});
  products->push_back({"attention key gradient", transposed, calls});
}

}  // namespace

std::vector<StepProduct> ProductsOfStep(const ModelConfig& config, int64_t batch, int64_t seq) {
  std::vector<StepProduct> products;
  const int64_t tokens = batch * seq;
  const int64_t query = config.heads * config.head_dim;
  const int64_t key = config.kv_heads * config.head_dim;
  AddProjection("query", tokens, config.hidden, query, config.layers, false, &products);
  AddProjection("key", tokens, config.hidden, key, config.layers, false, &products);
  AddProjection("value", tokens, config.hidden, key, config.layers, false, &products);
  AddProjection("out", tokens, query, config.hidden, config.layers, false, &products);
  AddProjection("up", tokens, config.hidden, config.ffn, config.layers, false, &products);
  AddProjection("down", tokens, config.ffn, config.hidden, config.layers, false, &products);
  AddProjection("head", tokens, config.hidden, config.vocab, 1, true, &products);
  AddAttention(batch * config.heads, seq, config.head_dim, config.layers, &products);
  return products;
}

double FlopsOf(const std::vector<StepProduct>& products) {
  double flops = 0;
  for (const StepProduct& p : products) {
    flops += 2.0 * static_cast<double>(p.calls) * static_cast<double>(p.shape.batch * p.shape.m) *
             static_cast<double>(p.shape.n * p.shape.k);
  }
  return flops;
}

absl::StatusOr<std::unique_ptr<ProductRunner>> ProductRunner::Create(
    std::vector<StepProduct> products) {
  std::unique_ptr<ProductRunner> runner(new ProductRunner);
  int64_t a = 0, b = 0, c = 0;
  for (const StepProduct& product : products) {
    const GemmShape& s = product.shape;
    MGC_ASSIGN_OR_RETURN(std::unique_ptr<cpu::OneDnnMatmul> kernel, cpu::OneDnnMatmul::Create(s));
    runner->kernels_.push_back(std::move(kernel));
    a = std::max(a, s.batch * s.m * s.k);
    b = std::max(b, s.batch * s.k * s.n);
    c = std::max(c, s.batch * s.m * s.n);
  }
  // Small values, so that accumulated sums stay finite.
  runner->a_.assign(static_cast<size_t>(a), 0.01f);
  runner->b_.assign(static_cast<size_t>(b), -0.02f);
  runner->c_.assign(static_cast<size_t>(c), 0.0f);
  runner->products_ = std::move(products);
  return runner;
}

double ProductRunner::Run() {
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < products_.size(); ++i) {
    for (int64_t call = 0; call < products_[i].calls; ++call) {
      kernels_[i]->Run(a_.data(), b_.data(), c_.data());
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace mgc
