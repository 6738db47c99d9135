#include "runtime/train/tensor_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/shared_file.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"
#include "runtime/comm/team_file.h"
#include "runtime/data/safetensors.h"

namespace mgc {
namespace {

constexpr size_t kBufferValues = size_t{1} << 16;

// What makes means of the sums of gradients, from the first process that has a rank that reports
// it.
absl::StatusOr<float> GradientFactor(const Executor& executor) {
  const absl::StatusOr<double> own = executor.Report(kGradFactorReport, false);
  absl::string_view mine;
  if (own.ok()) mine = {reinterpret_cast<const char*>(&*own), sizeof(*own)};
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all, executor.team().Gather(mine));
  for (const std::string& given : all) {
    double factor = 0;
    if (given.size() != sizeof(factor)) continue;
    std::memcpy(&factor, given.data(), sizeof(factor));
    return static_cast<float>(factor);
  }
  return own.status();
}

// Puts runs of values into a file, multiplied. What is not to be changed goes there as it is.
class RunWriter {
 public:
  RunWriter(float factor, SharedFile& file) : factor_(factor), file_(file) {}

  // Nothing more is written after an error.
  void Write(int64_t offset, absl::Span<const float> values) {
    if (factor_ == 1) return WriteBytes(offset, values);
    while (!values.empty()) {
      const absl::Span<const float> part = values.subspan(0, kBufferValues);
      buffer_.resize(part.size());
      std::transform(part.begin(), part.end(), buffer_.begin(),
                     [this](float value) { return value * factor_; });
      WriteBytes(offset, buffer_);
      offset += static_cast<int64_t>(part.size() * sizeof(float));
      values.remove_prefix(part.size());
    }
  }

  const absl::Status& status() const { return status_; }

 private:
  void WriteBytes(int64_t offset, absl::Span<const float> values) {
    if (!status_.ok()) return;
    status_ = file_.Write(
        offset, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }

  const float factor_;
  SharedFile& file_;
  std::vector<float> buffer_;
  absl::Status status_;
};

absl::Status WriteTiles(const Executor& executor, absl::Span<const HeldTensor> tensors,
                        const SafetensorsLayout& layout, float factor, SharedFile& file) {
  // All processes have the same header.
  if (executor.team().is_lead()) MGC_RETURN_IF_ERROR(file.Write(0, layout.header()));
  RunWriter writer(factor, file);
  for (size_t t = 0; t < tensors.size(); ++t) {
    ForEachRunHere(executor, tensors[t], [&](int64_t whole, absl::Span<const float> values) {
      writer.Write(layout.OffsetOf(t) + whole * static_cast<int64_t>(sizeof(float)), values);
    });
    MGC_RETURN_IF_ERROR(writer.status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteTensors(const Executor& executor, TensorRole role, const std::string& path) {
  // The plan alone decides about these, and so all processes alike.
  MGC_ASSIGN_OR_RETURN(const std::vector<HeldTensor> tensors, HeldTensors(executor.plan(), role));
  std::vector<SafetensorsSpec> specs;
  specs.reserve(tensors.size());
  for (const HeldTensor& tensor : tensors) {
    specs.push_back({tensor.name, SafetensorsType::kF32, SizesOf(*tensor.type)});
  }
  MGC_ASSIGN_OR_RETURN(const SafetensorsLayout layout, SafetensorsLayout::Create(specs));
  float factor = 1;
  if (role == TensorRole::kMeanGradient) {
    MGC_ASSIGN_OR_RETURN(factor, GradientFactor(executor));
  }
  return WriteTogether(executor.team(), path, layout.file_bytes(), [&](SharedFile& file) {
    return WriteTiles(executor, tensors, layout, factor, file);
  });
}

}  // namespace mgc
