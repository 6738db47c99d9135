#include "runtime/run/testing/reference_kernels.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "graph/eval/models/op_eval.h"
#include "graph/ir/op.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"

namespace mgc {
namespace {

using Tensor = HostTensor<double>;

template <typename T>
void Read(const void* from, std::vector<double>* to) {
  const T* values = static_cast<const T*>(from);
  std::copy(values, values + to->size(), to->begin());
}

template <typename T>
void ReadNarrow(const void* from, std::vector<double>* to) {
  const T* values = static_cast<const T*>(from);
  std::transform(values, values + to->size(), to->begin(), [](T x) { return ToFloat(x); });
}

Tensor ReadTile(const TensorType& type, const std::vector<int64_t>& shape, const void* from) {
  Tensor tensor = Tensor::Make(shape, type.dtype == DType::kI64);
  switch (type.dtype) {
    case DType::kF32:
      Read<float>(from, &tensor.real);
      break;
    case DType::kF64:
      Read<double>(from, &tensor.real);
      break;
    case DType::kI64:
      std::memcpy(tensor.index.data(), from, tensor.index.size() * sizeof(int64_t));
      break;
    case DType::kBF16:
      ReadNarrow<Bfloat16>(from, &tensor.real);
      break;
    case DType::kF16:
      ReadNarrow<Float16>(from, &tensor.real);
      break;
    case DType::kI8:
      Read<int8_t>(from, &tensor.real);
      break;
  }
  return tensor;
}

void WriteTile(const TensorType& type, const Tensor& tensor, void* to) {
  switch (type.dtype) {
    case DType::kF32: {
      float* values = static_cast<float*>(to);
      for (double value : tensor.real) *values++ = static_cast<float>(value);
      return;
    }
    case DType::kF64:
      std::memcpy(to, tensor.real.data(), tensor.real.size() * sizeof(double));
      return;
    case DType::kI64:
      std::memcpy(to, tensor.index.data(), tensor.index.size() * sizeof(int64_t));
      return;
    case DType::kBF16: {
      Bfloat16* values = static_cast<Bfloat16*>(to);
      for (double value : tensor.real) *values++ = ToBfloat16(static_cast<float>(value));
      return;
    }
    case DType::kF16: {
      Float16* values = static_cast<Float16*>(to);
      for (double value : tensor.real) *values++ = ToFloat16(static_cast<float>(value));
      return;
    }
    case DType::kI8:  // made by no op
      return;
  }
}

class ReferenceKernel : public Kernel {
 public:
  explicit ReferenceKernel(const KernelSpec& spec) : spec_(spec) {}

  absl::Status Run(const KernelRun& run, Parallel& /*parallel*/) const override {
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      inputs.push_back(ReadTile(spec_.input_types[i], spec_.input_shapes[i], run.inputs[i]));
    }
    for (size_t i = 0; i < run.outputs.size(); ++i) {
      outputs.push_back(
          Tensor::Make(spec_.output_shapes[i], spec_.output_types[i].dtype == DType::kI64));
    }
    const DoubleModel model;
    EvalContext<DoubleModel> context{model,      spec_.attrs, spec_.rule, spec_.pieces,
                                     spec_.seed, {},          {}};
    for (size_t f = 0; f < spec_.rule.factors.size(); ++f) {
      if (spec_.rule.factors[f].dim_name == kSampleDim) context.pieces[f].begin += run.first_sample;
    }
    for (const Tensor& tensor : inputs) context.inputs.push_back(&tensor);
    for (Tensor& tensor : outputs) context.outputs.push_back(&tensor);
    spec_.op->eval(context);
    for (size_t i = 0; i < outputs.size(); ++i) {
      WriteTile(spec_.output_types[i], outputs[i], run.outputs[i]);
    }
    return absl::OkStatus();
  }

 private:
  KernelSpec spec_;
};

}  // namespace

std::vector<KernelEntry> ReferenceKernels() {
  std::vector<KernelEntry> entries;
  for (const OpDef& op : AllOps()) {
    if (op.collective) continue;
    entries.push_back(
        {op.name.c_str(), [](const KernelSpec& spec) -> absl::StatusOr<std::unique_ptr<Kernel>> {
           return std::make_unique<ReferenceKernel>(spec);
         }});
  }
  return entries;
}

}  // namespace mgc
