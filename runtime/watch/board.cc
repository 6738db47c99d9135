#include "runtime/watch/board.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

constexpr char kMagic[8] = {'m', 'g', 'c', 'b', 'o', 'a', 'r', '2'};
constexpr int64_t kLine = 64;

int64_t Rounded(size_t bytes) { return (static_cast<int64_t>(bytes) + kLine - 1) / kLine * kLine; }

// The processes' first ranks stand behind their entries.
int64_t ProcessBytes(int64_t processes) {
  return processes * Rounded(sizeof(ProcessEntry)) +
         Rounded(static_cast<size_t>(processes + 1) * sizeof(int64_t));
}

}  // namespace

int64_t Board::Bytes(int64_t ranks, int processes) {
  return Rounded(sizeof(Head)) + ProcessBytes(processes) +
         ranks * static_cast<int64_t>(sizeof(RankProgress));
}

Board::Board(char* memory, const ProcessMap& map)
    : Board(new (memory) Head(), map.ranks(), map.processes()) {
  head_->ranks = ranks_;
  head_->processes = processes_;
  char* at = memory + Rounded(sizeof(Head));
  for (int p = 0; p < processes_; ++p) {
    new (at) ProcessEntry;
    at += Rounded(sizeof(ProcessEntry));
  }
  for (int p = 0; p <= processes_; ++p) {
    const int64_t begin = p < processes_ ? map.RanksOf(p).begin : ranks_;
    std::memcpy(at + p * static_cast<int64_t>(sizeof(begin)), &begin, sizeof(begin));
  }
  for (RankProgress& rank : ranks()) new (&rank) RankProgress;
  std::memcpy(head_->magic, kMagic, sizeof(kMagic));
}

absl::StatusOr<Board> Board::Read(char* memory, int64_t bytes) {
  const absl::Status none = absl::InvalidArgumentError("is not the board of a run");
  Head* const head = reinterpret_cast<Head*>(memory);
  if (bytes < static_cast<int64_t>(sizeof(Head))) return none;
  if (std::memcmp(head->magic, kMagic, sizeof(kMagic)) != 0) return none;
  const int64_t ranks = head->ranks;
  const int64_t processes = head->processes;
  if (processes < 1 || ranks < processes || ranks > bytes) return none;
  const Board board(head, ranks, static_cast<int>(processes));
  if (processes > std::numeric_limits<int>::max() || bytes != Bytes(ranks, board.processes_)) {
    return none;
  }
  int64_t before = -1;
  for (int p = 0; p <= board.processes_; ++p) {
    const int64_t begin = board.BeginOf(p);
    const bool fits = p == 0                 ? begin == 0
                      : p < board.processes_ ? begin > before
                                             : begin == ranks && begin > before;
    if (!fits) return absl::InvalidArgumentError("gives no ranks to some process");
    before = begin;
  }
  return board;
}

int64_t Board::BeginOf(int process) const {
  int64_t begin = 0;
  std::memcpy(&begin,
              memory() + Rounded(sizeof(Head)) + processes_ * Rounded(sizeof(ProcessEntry)) +
                  process * static_cast<int64_t>(sizeof(begin)),
              sizeof(begin));
  return begin;
}

// What has been read may be written over since: ranges stay within the board.
RankRange Board::RanksOf(int process) const {
  const int64_t begin = std::clamp<int64_t>(BeginOf(process), 0, ranks_ - 1);
  return {begin, std::clamp<int64_t>(BeginOf(process + 1), begin + 1, ranks_)};
}

int Board::ProcessOf(int64_t rank) const {
  int low = 0;
  int high = processes_ - 1;
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    if (BeginOf(middle) <= rank) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

absl::Span<RankProgress> Board::ranks() const {
  char* const begin = memory() + Rounded(sizeof(Head)) + ProcessBytes(processes_);
  return {reinterpret_cast<RankProgress*>(begin), static_cast<size_t>(ranks_)};
}

ProcessEntry& Board::process(int process) const {
  char* const begin = memory() + Rounded(sizeof(Head));
  return *reinterpret_cast<ProcessEntry*>(begin + process * Rounded(sizeof(ProcessEntry)));
}

void Board::Enter(int number, int64_t pid, absl::string_view host, int64_t now_ns) const {
  ProcessEntry& entry = process(number);
  std::memset(entry.host, 0, sizeof(entry.host));
  host.copy(entry.host, std::min(host.size(), ProcessEntry::kHostBytes - 1));
  entry.pid.set(pid);
  entry.heartbeat_ns.set(now_ns);
  SetStage(number, ProcessStage::kStarting, now_ns);
}

void Board::SetStage(int number, ProcessStage stage, int64_t now_ns) const {
  process(number).stage.set(stage);
  process(number).since_ns.set(now_ns);
}

bool Board::End(int process, const absl::Status& reason, int exit_code) const {
  int32_t nobody = 0;
  if (!head_->ending.compare_exchange_strong(nobody, process + 2)) return false;
  const absl::string_view text = reason.message();
  std::memset(head_->reason, 0, sizeof(head_->reason));
  text.copy(head_->reason, std::min(text.size(), kReasonBytes - 1));
  head_->exit_code = exit_code;
  head_->code.store(static_cast<int32_t>(reason.code()), std::memory_order_release);
  return true;
}

absl::optional<RunEnd> Board::end() const {
  const int32_t code = head_->code.load(std::memory_order_acquire);
  if (code == 0) return absl::nullopt;
  return RunEnd{
      head_->ending.load() - 2,
      absl::Status(static_cast<absl::StatusCode>(code),
                   absl::string_view(head_->reason, strnlen(head_->reason, kReasonBytes))),
      head_->exit_code};
}

}  // namespace mgc
