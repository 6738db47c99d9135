#include "runtime/data/feed.h"

#include <algorithm>

#include "graph/types/sharding.h"

namespace mgc {

void FillData(DataInput input, const Slot& slot, const Mesh& mesh, int64_t rank,
              const StepData& step, int64_t row_sample, absl::Span<int32_t> scratch, char* out) {
  const DimPiece rows = PieceOf(slot.type.dims[0], slot.sharding.dims[0], mesh, rank);
  const DimPiece seq = PieceOf(slot.type.dims[1], slot.sharding.dims[1], mesh, rank);
  for (int64_t row = 0; row < rows.valid; ++row) {
    const int64_t sample = row_sample + rows.begin + row;
    const bool counts = sample < step.end_sample;
    if (input == DataInput::kWeights) {
      float* to = reinterpret_cast<float*>(out) + row * seq.room;
      std::fill(to, to + seq.valid, counts ? 1.0f : 0.0f);
      continue;
    }
    step.data->CopySample(counts ? sample : 0, scratch);
    const int64_t shift = input == DataInput::kTargets ? 1 : 0;
    int64_t* to = reinterpret_cast<int64_t*>(out) + row * seq.room;
    for (int64_t i = 0; i < seq.valid; ++i) to[i] = scratch[seq.begin + i + shift];
  }
}

}  // namespace mgc
