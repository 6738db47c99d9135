#include "kernels/cpu/matmul/onednn_matmul.h"

#include <dnnl.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mgc::cpu {
namespace {

using dnnl::memory;

// Without a batch oneDNN has more kernels to choose from.
memory::dims Dims(int64_t batch, int64_t rows, int64_t cols) {
  return batch == 1 ? memory::dims{rows, cols} : memory::dims{batch, rows, cols};
}

memory::desc Describe(int64_t batch, int64_t rows, int64_t cols, const GemmStrides& strides,
                      memory::data_type type = memory::data_type::f32) {
  const memory::dims steps = batch == 1 ? memory::dims{strides.row, strides.col}
                                        : memory::dims{strides.batch, strides.row, strides.col};
  return memory::desc(Dims(batch, rows, cols), type, steps);
}

dnnl::primitive_attr Attributes(const GemmShape& s) {
  dnnl::primitive_attr attributes;
  if (s.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  return attributes;
}

absl::Status Refused(const dnnl::error& error) {
  return absl::UnimplementedError(absl::StrCat("oneDNN refuses the product: ", error.what()));
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
    state->product = dnnl::matmul({{state->a, state->b, state->c}, Attributes(s), state->engine});
  } catch (const dnnl::error& error) {
    return Refused(error);
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

struct OneDnnPackedMatmul::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::matmul::primitive_desc product_desc;
  dnnl::matmul product;
  memory a, b;

  // A copy of plain bf16 in the layout `to`.
  memory Packed(const memory::desc& from, const Bfloat16* values, const memory::desc& to) {
    memory plain(from, engine, const_cast<Bfloat16*>(values));
    memory packed(to, engine);
    dnnl::stream stream(engine);
    dnnl::reorder(plain, packed).execute(stream, plain, packed);
    stream.wait();
    return packed;
  }
};

OneDnnPackedMatmul::OneDnnPackedMatmul(std::unique_ptr<State> state) : state_(std::move(state)) {}
OneDnnPackedMatmul::~OneDnnPackedMatmul() = default;

absl::StatusOr<std::unique_ptr<OneDnnPackedMatmul>> OneDnnPackedMatmul::Create(const GemmShape& s,
                                                                               const Bfloat16* a,
                                                                               const Bfloat16* b) {
  constexpr auto kBf16 = memory::data_type::bf16;
  constexpr auto kAny = memory::format_tag::any;
  auto state = std::make_unique<State>();
  try {
    const memory::desc c = Describe(s.batch, s.m, s.n, DenseStrides(s.m, s.n),
                                    s.accumulate ? memory::data_type::f32 : kBf16);
    state->product_desc =
        dnnl::matmul::primitive_desc({memory::desc(Dims(s.batch, s.m, s.k), kBf16, kAny),
                                      memory::desc(Dims(s.batch, s.k, s.n), kBf16, kAny), c},
                                     Attributes(s), state->engine);
    state->product = dnnl::matmul(state->product_desc);
    state->a =
        state->Packed(Describe(s.batch, s.m, s.k, s.a, kBf16), a, state->product_desc.src_desc());
    state->b = state->Packed(Describe(s.batch, s.k, s.n, s.b, kBf16), b,
                             state->product_desc.weights_desc());
  } catch (const dnnl::error& error) {
    return Refused(error);
  }
  return std::unique_ptr<OneDnnPackedMatmul>(new OneDnnPackedMatmul(std::move(state)));
}

void OneDnnPackedMatmul::Run(void* c) const {
  dnnl::stream stream(state_->engine);
  memory c_memory(state_->product_desc.dst_desc(), state_->engine, c);
  state_->product.execute(
      stream, {{DNNL_ARG_SRC, state_->a}, {DNNL_ARG_WEIGHTS, state_->b}, {DNNL_ARG_DST, c_memory}});
  stream.wait();
}

std::string OneDnnPackedMatmul::implementation() const {
  return state_->product_desc.impl_info_str();
}

}  // namespace mgc::cpu
