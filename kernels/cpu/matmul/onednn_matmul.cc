#include "kernels/cpu/matmul/onednn_matmul.h"

#include <dnnl.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mgc::cpu {
namespace {

using dnnl::memory;

// Without a batch oneDNN has more kernels to choose from.
memory::desc Describe(int64_t batch, int64_t rows, int64_t cols, const GemmStrides& strides) {
  if (batch == 1) {
    return memory::desc({rows, cols}, memory::data_type::f32,
                        memory::dims{strides.row, strides.col});
  }
  return memory::desc({batch, rows, cols}, memory::data_type::f32,
                      memory::dims{strides.batch, strides.row, strides.col});
}

}  // namespace

struct OneDnnMatmul::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  memory::desc a, b, c;
  dnnl::matmul product;
};

OneDnnMatmul::OneDnnMatmul(std::unique_ptr<State> state) : state_(std::move(state)) {}
OneDnnMatmul::~OneDnnMatmul() = default;

absl::StatusOr<std::unique_ptr<OneDnnMatmul>> OneDnnMatmul::Create(const GemmShape& s) {
  auto state = std::make_unique<State>();
  try {
    state->a = Describe(s.batch, s.m, s.k, s.a);
    state->b = Describe(s.batch, s.k, s.n, s.b);
    state->c = Describe(s.batch, s.m, s.n, s.c);
    dnnl::primitive_attr attributes;
    if (s.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    state->product = dnnl::matmul({{state->a, state->b, state->c}, attributes, state->engine});
  } catch (const dnnl::error& error) {
    return absl::UnimplementedError(absl::StrCat("oneDNN refuses the product: ", error.what()));
  }
  return std::unique_ptr<OneDnnMatmul>(new OneDnnMatmul(std::move(state)));
}

void OneDnnMatmul::Run(const float* a, const float* b, float* c) const {
  dnnl::stream stream(state_->engine);
  memory a_memory(state_->a, state_->engine, const_cast<float*>(a));
  memory b_memory(state_->b, state_->engine, const_cast<float*>(b));
  memory c_memory(state_->c, state_->engine, c);
  state_->product.execute(
      stream, {{DNNL_ARG_SRC, a_memory}, {DNNL_ARG_WEIGHTS, b_memory}, {DNNL_ARG_DST, c_memory}});
  stream.wait();
}

}  // namespace mgc::cpu
