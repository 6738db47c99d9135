#include "runtime/train/tensor_file.h"

#include <algorithm>
#include <cstdint>
#include <string>
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
    std::copy(given.begin(), given.end(), reinterpret_cast<char*>(&factor));
    return static_cast<float>(factor);
  }
  return own.status();
}

// Multiplied; what is not to be changed goes into the file as it is, whatever its bits.
absl::Status WriteValues(int64_t offset, float factor, absl::Span<float> values, SharedFile& file) {
  if (factor != 1) {
    for (float& value : values) value *= factor;
  }
  return file.Write(offset,
                    {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

absl::Status WriteTiles(const Executor& executor, absl::Span<const HeldTensor> tensors,
                        const SafetensorsLayout& layout, float factor, SharedFile& file) {
  // All processes have the same header.
  if (executor.team().is_lead()) MGC_RETURN_IF_ERROR(file.Write(0, layout.header()));
  absl::Status status;
  for (size_t t = 0; t < tensors.size(); ++t) {
    ForEachRunHere(executor, tensors[t], [&](int64_t whole, absl::Span<float> values) {
      if (!status.ok()) return;
      const int64_t offset = layout.OffsetOf(t) + whole * static_cast<int64_t>(sizeof(float));
      status = WriteValues(offset, factor, values, file);
    });
    MGC_RETURN_IF_ERROR(status);
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
