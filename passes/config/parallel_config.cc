#include "passes/config/parallel_config.h"

#include <initializer_list>

#include "passes/config/nearest_legal.h"

namespace mgc {

std::optional<ScheduleKind> ParseScheduleKind(absl::string_view text) {
  for (ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved}) {
    if (text == ToString(kind)) return kind;
  }
  return std::nullopt;
}

absl::string_view ToString(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kGpipe:
      return "gpipe";
    case ScheduleKind::kOneFOneB:
      return "1f1b";
    case ScheduleKind::kInterleaved:
      return "interleaved";
  }
  return "?";
}

int64_t DataParallelSize(const ParallelConfig& config) {
  if (config.world_size < 1 || config.tp < 1 || config.pp < 1 || config.cp < 1) return 0;
  const int64_t replica = SaturatingMultiply(SaturatingMultiply(config.tp, config.pp), config.cp);
  return config.world_size % replica == 0 ? config.world_size / replica : 0;
}

int64_t MicroBatchesPerStep(const ParallelConfig& config) {
  const int64_t dp = DataParallelSize(config);
  if (dp < 1 || config.micro_batch_size < 1 || config.global_batch_size < 1) return 0;
  const int64_t samples = SaturatingMultiply(config.micro_batch_size, dp);
  return config.global_batch_size % samples == 0 ? config.global_batch_size / samples : 0;
}

}  // namespace mgc
