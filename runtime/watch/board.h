// What all processes of a run are at, in one piece of memory: shared by processes of one host, a
// file where a run leaves it for people (`mgc-status`), filled by messages where hosts are several.
//
// Also how a run ends before its time: the first process that has a reason puts it on the board,
// and all others see it.

#ifndef MGC_RUNTIME_WATCH_BOARD_H_
#define MGC_RUNTIME_WATCH_BOARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "runtime/comm/process_map.h"
#include "runtime/run/progress.h"

namespace mgc {

enum class ProcessStage : int32_t {
  kAbsent,    // has not begun
  kStarting,  // reads, loads, connects
  kRunning,   // steps, and what is between them
  kAgreeing,  // waits for the other processes between steps
  kEnded,     // with all it had to do
};

struct ProcessEntry {
  static constexpr size_t kHostBytes = 64;

  RankProgress::Field<int64_t> pid;
  RankProgress::Field<ProcessStage> stage;
  RankProgress::Field<int64_t> since_ns;      // of the stage
  RankProgress::Field<int64_t> heartbeat_ns;  // when it was last heard of
  char host[kHostBytes] = {};                 // written before the pid
};

// The reason why a run ends before its time.
struct RunEnd {
  int process = -1;  // which says so, -1: the launcher
  absl::Status status;
  int exit_code = 0;  // that the run has for it
};

class Board {
 public:
  // Bytes for so many; zeroed memory is an empty board.
  static int64_t Bytes(int64_t ranks, int processes);
  // On memory that outlives it and begins at a line of the cache; writes its sizes there.
  Board(char* memory, const ProcessMap& map);
  // On memory of `bytes` that a board was made on, perhaps long ago. InvalidArgument for anything
  // else.
  static absl::StatusOr<Board> Read(char* memory, int64_t bytes);

  // As they were when the board was made or read, whatever is written there since.
  int64_t num_ranks() const { return ranks_; }
  int num_processes() const { return processes_; }
  RankRange RanksOf(int process) const;
  int ProcessOf(int64_t rank) const;

  absl::Span<RankProgress> ranks() const;
  ProcessEntry& process(int process) const;

  // Puts a process on the board, on whose host `now_ns` is.
  void Enter(int process, int64_t pid, absl::string_view host, int64_t now_ns) const;
  void SetStage(int process, ProcessStage stage, int64_t now_ns) const;

  // A random number, by which one knows a board that has been told of.
  void SetKey(uint64_t key) const { head_->key.store(key); }
  uint64_t key() const { return head_->key.load(); }

  // Ends the run for `reason`, an error, with `exit_code`; false when somebody else has ended it
  // before.
  bool End(int process, const absl::Status& reason, int exit_code) const;
  absl::optional<RunEnd> end() const;

  // Asks all to stop after a step that they agree on; the number of times that was asked.
  int AskToStop() const { return head_->stops.fetch_add(1) + 1; }
  int stops_asked() const { return head_->stops.load(); }

 private:
  static constexpr size_t kReasonBytes = 8192;

  struct Head {
    char magic[8];
    int64_t ranks;
    int64_t processes;
    std::atomic<uint64_t> key;
    std::atomic<int32_t> stops;
    std::atomic<int32_t> ending;  // 0: nobody; else the process + 2
    std::atomic<int32_t> code;    // of the reason; 0: not yet written
    int32_t exit_code;            // written before it
    char reason[kReasonBytes];
  };

  Board(Head* head, int64_t ranks, int processes)
      : head_(head), ranks_(ranks), processes_(processes) {}
  char* memory() const { return reinterpret_cast<char*>(head_); }
  int64_t BeginOf(int process) const;  // as it is written there

  Head* head_;
  int64_t ranks_;
  int processes_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_WATCH_BOARD_H_
