// What a run or an evaluation is fed from: a text, tensors, or both.

#ifndef MGC_RUNTIME_DATA_SAMPLE_SET_H_
#define MGC_RUNTIME_DATA_SAMPLE_SET_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "graph/plan/plan.h"
#include "runtime/data/data.h"
#include "runtime/data/feed.h"
#include "runtime/data/input_files.h"

namespace mgc {

class SampleSet {
 public:
  // `tensors` are those of ReadInputs for this text, or none has any.
  SampleSet(absl::optional<TokenDataset> text, InputTensors tensors);
  SampleSet(SampleSet&&) = default;
  SampleSet& operator=(SampleSet&&) = default;
  SampleSet(const SampleSet&) = delete;
  SampleSet& operator=(const SampleSet&) = delete;

  // Until they begin again, at least 1.
  int64_t samples() const;

  // The samples [first, end) of a step; behind the last sample the first one follows. Valid as long
  // as the set.
  StepData At(int64_t first, int64_t end) const;

  // What it holds, to be recognized by: of the text and of each input its size and a hash of its
  // samples, in their order. What was split off is not in it. Of a text so many tokens are looked
  // at, in samples from everywhere in the first epoch; a file of more need not be read whole.
  static constexpr int64_t kTokensLookedAt = int64_t{1} << 20;
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Identity() const;

  // Splits off the last `tail_samples` samples: {the rest, the tail}. No sample is in both.
  // InvalidArgument with the numbers if less than one sample would remain, or if the text's tail
  // would not be the samples of the tensors' (TokenDataset::HoldBackTail counts from the last
  // token).
  absl::StatusOr<std::pair<SampleSet, SampleSet>> HoldBackTail(int64_t tail_samples) const;

 private:
  absl::Status CheckAligned() const;

  absl::optional<TokenDataset> text_;
  InputTensors tensors_;
  std::vector<const SampleTensor*> given_;  // of tensors_, null where there is none
};

// Whether samples of weight 0 are left out of everything that a step reports.
bool LeavesOut(const Graph& model);

// The samples of a set that are evaluated. A batch that is not full is filled up with samples of
// weight 0, where all losses and the count depend on `weights`; else it is left out.
int64_t SamplesToEvaluate(const Plan& plan, const SampleSet& set);

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_SAMPLE_SET_H_
