// What a command knows of the run that its process is part of.

#ifndef MGC_TOOLS_LAUNCH_WORLD_H_
#define MGC_TOOLS_LAUNCH_WORLD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "kernels/simd_level.h"
#include "runtime/run/executor.h"
#include "runtime/watch/board.h"

namespace mgc {

struct World {
  ProcessMap map{1};
  int self = 0;
  Link* link = nullptr;                 // null: one process
  SharedRegions* arenas = nullptr;      // of several processes: memory for arenas
  AllReduceLibrary* library = nullptr;  // that does the all-reduces; null: mgc does
  int64_t ranks_before = 0;             // of processes of this host that come before this one
  absl::optional<Board> board;
  // What kernels all processes use, where they have agreed on that.
  absl::optional<SimdLevel> simd_level;
  // Of several processes: threads that run the ranks of each, unless the user says otherwise.
  int workers = 0;
  // How the run ends before its time: says why, once for all processes, and may not return.
  std::function<void(const absl::Status& why, int code)> end_run;
  // To be called when the processes are connected, and before they are not any more; may be empty.
  std::function<void(Communicator& communicator)> on_open;
  std::function<void()> on_close;

  bool is_lead() const { return self == 0; }
  RankRange ranks() const { return map.RanksOf(self); }
  absl::optional<ProcessPlace> place() const {
    if (link == nullptr) return absl::nullopt;
    return ProcessPlace{&map, self, link, arenas, library, ranks_before};
  }
  absl::Span<RankProgress> progress() const {
    if (!board.has_value()) return {};
    return board->ranks().subspan(static_cast<size_t>(ranks().begin),
                                  static_cast<size_t>(ranks().size()));
  }
};

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_WORLD_H_
