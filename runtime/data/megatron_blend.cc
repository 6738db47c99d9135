#include "runtime/data/megatron_blend.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {

std::vector<std::string> MegatronBlend::FilesOf(const std::string& prefix) {
  return IndexFilesOf(prefix, {"-dataset_index.npy", "-dataset_sample_index.npy"});
}

absl::StatusOr<std::shared_ptr<const MegatronBlend>> MegatronBlend::Open(
    const std::string& prefix, std::vector<int64_t> samples) {
  const std::vector<std::string> files = FilesOf(prefix);
  MGC_ASSIGN_OR_RETURN(IndexFile sources, IndexFile::Open(files[0], 1));
  MGC_ASSIGN_OR_RETURN(IndexFile places, IndexFile::Open(files[1], 1));
  if (sources.rows() < 1 || sources.rows() != places.rows()) {
    return absl::InvalidArgumentError(absl::StrCat(sources.name(), " has ", sources.rows(),
                                                   " samples, and ", places.name(), " ",
                                                   places.rows()));
  }
  std::shared_ptr<const MegatronBlend> blend(
      new MegatronBlend(std::move(sources), std::move(places), std::move(samples)));
  for (const int64_t sample : {int64_t{0}, blend->samples() - 1}) {
    MGC_RETURN_IF_ERROR(blend->At(sample).status());
  }
  return blend;
}

absl::StatusOr<Blended> MegatronBlend::At(int64_t sample) const {
  MGC_ASSIGN_OR_RETURN(const int64_t source,
                       sources_.At(sample, 0, static_cast<int64_t>(samples_.size())));
  const auto number = static_cast<size_t>(source);
  MGC_ASSIGN_OR_RETURN(const int64_t place, places_.At(sample, 0, samples_[number]));
  return Blended{number, place};
}

}  // namespace mgc
