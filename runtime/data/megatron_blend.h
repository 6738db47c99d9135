// The order in which Megatron-LM's BlendedDataset takes samples of several data sets.
//
// Two arrays of NumPy, which it keeps beside the data sets' own orders: of sample i
// `dataset_index` (i2) says the data set, by its number, and `dataset_sample_index` (i8) which of
// its samples, in the data set's own order (runtime/data/megatron_order.h).

#ifndef MGC_RUNTIME_DATA_MEGATRON_BLEND_H_
#define MGC_RUNTIME_DATA_MEGATRON_BLEND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/blend/blend.h"
#include "runtime/data/index_file.h"

namespace mgc {

// Immutable; any number of threads.
class MegatronBlend {
 public:
  // `prefix` is what the files' names have in common, as `cache/<hash>-BlendedDataset-train` before
  // `-dataset_index.npy`; or the path of one of both. `samples` are those of each data set, of
  // which there is at least one. InvalidArgument for files that are no such arrays or do not fit
  // together, and where the first or the last sample is none of the data sets'.
  static absl::StatusOr<std::shared_ptr<const MegatronBlend>> Open(const std::string& prefix,
                                                                   std::vector<int64_t> samples);

  // The two files behind `prefix`.
  static std::vector<std::string> FilesOf(const std::string& prefix);

  int64_t samples() const { return sources_.rows(); }

  // Of a sample below samples(). InvalidArgument, with file, row and number, for one that is none
  // of the data sets'.
  absl::StatusOr<Blended> At(int64_t sample) const;

 private:
  MegatronBlend(IndexFile sources, IndexFile places, std::vector<int64_t> samples)
      : sources_(std::move(sources)), places_(std::move(places)), samples_(std::move(samples)) {}

  IndexFile sources_, places_;
  std::vector<int64_t> samples_;  // of each data set
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_MEGATRON_BLEND_H_
