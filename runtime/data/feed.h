// Which samples a step works on, and how a rank's tile of them gets into its slot.
//
// Row i of micro-batch m of a step that begins with sample f is sample f + m * rows + i, whatever
// the plan: every plan trains on the same batches.

#ifndef MGC_RUNTIME_DATA_FEED_H_
#define MGC_RUNTIME_DATA_FEED_H_

#include <cstdint>

#include "absl/types/span.h"
#include "graph/plan/plan.h"
#include "graph/types/mesh.h"
#include "runtime/data/data.h"
#include "runtime/load/load_segment.h"

namespace mgc {

struct StepData {
  const ByteDataset* data = nullptr;
  int64_t first_sample = 0;
  // Samples before this one count; later rows only fill up the batch: their weights are zero and
  // their tokens those of an earlier sample.
  int64_t end_sample = 0;
};

// Fills `out` with the tile that `rank` holds of a data input: `tokens` and `targets` as i64,
// `weights` as f32. `row_sample` is the sample of the micro-batch's row 0; `scratch` has room for
// the s + 1 tokens of a sample. Allocates nothing.
void FillData(DataInput input, const Slot& slot, const Mesh& mesh, int64_t rank,
              const StepData& step, int64_t row_sample, absl::Span<int32_t> scratch, char* out);

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_FEED_H_
