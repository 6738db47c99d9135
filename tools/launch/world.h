// What a command knows of the run that its process is part of.

#ifndef MGC_TOOLS_LAUNCH_WORLD_H_
#define MGC_TOOLS_LAUNCH_WORLD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "runtime/run/executor.h"
#include "runtime/watch/board.h"

namespace mgc {

struct World {
  ProcessMap map{1};
  int self = 0;
  Link* link = nullptr;  // null: one process
  absl::optional<Board> board;
  // Of several processes: threads that run the ranks of each, unless the user says otherwise.
  int workers = 0;

  bool is_lead() const { return self == 0; }
  RankRange ranks() const { return map.RanksOf(self); }
  absl::optional<ProcessPlace> place() const {
    if (link == nullptr) return absl::nullopt;
    return ProcessPlace{&map, self, link};
  }
  absl::Span<RankProgress> progress() const {
    if (!board.has_value()) return {};
    return board->ranks().subspan(static_cast<size_t>(ranks().begin),
                                  static_cast<size_t>(ranks().size()));
  }
};

// A short description of a process for people: `process 1 (pid 71), ranks 2-3`.
std::string HostName();

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_WORLD_H_
