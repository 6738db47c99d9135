#include "tools/benchmarks/products.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/types/bfloat16.h"
#include "kernels/cpu/matmul/onednn_matmul.h"
#include "runtime/run/workers.h"

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

using Call = std::function<void()>;

// What all calls share: each product uses the first elements. Values are small, so that accumulated
// sums stay finite.
struct Memory {
  Memory(const std::vector<StepProduct>& products, DType type, int width)
      : workers(std::make_unique<Workers>(width, width)) {
    size_t most_a = 0, most_b = 0, most_c = 0, most_scratch = 0;
    for (const StepProduct& product : products) {
      const GemmShape& s = product.shape;
      most_a = std::max(most_a, static_cast<size_t>(s.batch * s.m * s.k));
      most_b = std::max(most_b, static_cast<size_t>(s.batch * s.k * s.n));
      most_c = std::max(most_c, static_cast<size_t>(s.batch * s.m * s.n));
      most_scratch = std::max(
          most_scratch, static_cast<size_t>(cpu::NarrowGemmWorkspaceFloats(s.m, s.n, s.k, width)));
    }
    if (type == DType::kBF16) {
      narrow_a.assign(most_a, ToBfloat16(0.01f));
      narrow_b.assign(most_b, ToBfloat16(-0.02f));
      narrow_c.assign(most_c, Bfloat16{});
    } else {
      a.assign(most_a, 0.01f);
      b.assign(most_b, -0.02f);
    }
    c.assign(most_c, 0.0f);
    scratch.assign(most_scratch, 0.0f);
  }

  std::unique_ptr<Workers> workers;
  std::vector<float> a, b;
  std::vector<Bfloat16> narrow_a, narrow_b;
  mutable std::vector<Bfloat16> narrow_c;
  mutable std::vector<float> c, scratch;
};
using SharedMemory = std::shared_ptr<const Memory>;

absl::StatusOr<Call> OwnCall(const GemmShape& s, DType type, const SharedMemory& x) {
  if (type != DType::kBF16) {
    return [s, x] {
      cpu::Gemm(*x->workers, s, x->a.data(), x->b.data(), nullptr, x->c.data(), x->scratch.data());
    };
  }
  if (s.accumulate) {
    return [s, x] {
      cpu::Gemm(*x->workers, s, x->narrow_a.data(), x->narrow_b.data(), nullptr, x->c.data(),
                x->scratch.data());
    };
  }
  return [s, x] {
    cpu::Gemm(*x->workers, s, x->narrow_a.data(), x->narrow_b.data(), nullptr, x->narrow_c.data(),
              x->scratch.data());
  };
}

absl::StatusOr<Call> OneDnnCall(const GemmShape& s, const SharedMemory& x) {
  MGC_ASSIGN_OR_RETURN(std::shared_ptr<const cpu::OneDnnMatmul> kernel,
                       cpu::OneDnnMatmul::Create(s));
  return [kernel, x] { kernel->Run(x->a.data(), x->b.data(), x->c.data()); };
}

absl::StatusOr<Call> OneDnnNarrowCall(const GemmShape& s, const SharedMemory& x) {
  MGC_ASSIGN_OR_RETURN(std::shared_ptr<const cpu::OneDnnPackedMatmul> kernel,
                       cpu::OneDnnPackedMatmul::Create(s, x->narrow_a.data(), x->narrow_b.data()));
  void* c = s.accumulate ? static_cast<void*>(x->c.data()) : x->narrow_c.data();
  return [kernel, c, x] { kernel->Run(c); };  // x: C is in it
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

absl::StatusOr<std::unique_ptr<BenchSide>> ProductRunner::Create(std::vector<StepProduct> products,
                                                                 ProductsBy by, DType type,
                                                                 int workers) {
  const auto memory = std::make_shared<const Memory>(products, type, workers);
  std::unique_ptr<ProductRunner> runner(new ProductRunner);
  for (const StepProduct& product : products) {
    MGC_ASSIGN_OR_RETURN(std::function<void()> call,
                         by == ProductsBy::kOwn ? OwnCall(product.shape, type, memory)
                         : type == DType::kBF16 ? OneDnnNarrowCall(product.shape, memory)
                                                : OneDnnCall(product.shape, memory));
    runner->calls_.push_back([call = std::move(call), calls = product.calls] {
      for (int64_t i = 0; i < calls; ++i) call();
    });
  }
  return runner;
}

absl::StatusOr<StepTime> ProductRunner::Step() {
  const Stopwatch watch;
  for (const std::function<void()>& call : calls_) call();
  return watch.Read();
}

}  // namespace mgc
