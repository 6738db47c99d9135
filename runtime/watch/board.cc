#include "runtime/watch/board.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

constexpr char kMagic[8] = {'m', 'g', 'c', 'b', 'o', 'a', 'r', '1'};
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

Board::Board(char* memory, const ProcessMap& map) : head_(new (memory) Head()) {
  head_->ranks = map.ranks();
  head_->processes = map.processes();
  char* at = memory + Rounded(sizeof(Head));
  for (int p = 0; p < map.processes(); ++p) {
    new (at) ProcessEntry;
    at += Rounded(sizeof(ProcessEntry));
  }
  for (int p = 0; p <= map.processes(); ++p) {
    const int64_t begin = p < map.processes() ? map.RanksOf(p).begin : map.ranks();
    std::memcpy(at + p * static_cast<int64_t>(sizeof(begin)), &begin, sizeof(begin));
  }
  for (RankProgress& rank : ranks()) new (&rank) RankProgress;
  std::memcpy(head_->magic, kMagic, sizeof(kMagic));
}

absl::StatusOr<Board> Board::Read(char* memory, int64_t bytes) {
  const Board board(memory);
  const bool fits = bytes >= static_cast<int64_t>(sizeof(Head)) &&
                    std::memcmp(board.head_->magic, kMagic, sizeof(kMagic)) == 0 &&
                    board.head_->processes >= 1 && board.head_->ranks >= board.head_->processes &&
                    board.head_->ranks <= bytes &&
                    bytes == Bytes(board.num_ranks(), board.num_processes());
  if (!fits) return absl::InvalidArgumentError("is not the board of a run");
  int64_t before = -1;
  for (int p = 0; p < board.num_processes(); ++p) {
    const RankRange range = board.RanksOf(p);
    if (range.begin <= before || range.end <= range.begin || range.end > board.num_ranks()) {
      return absl::InvalidArgumentError("gives no ranks to some process");
    }
    before = range.begin;
  }
  return board;
}

RankRange Board::RanksOf(int process) const {
  const char* const begins =
      memory() + Rounded(sizeof(Head)) + head_->processes * Rounded(sizeof(ProcessEntry));
  RankRange range;
  std::memcpy(&range.begin, begins + process * sizeof(int64_t), sizeof(int64_t));
  std::memcpy(&range.end, begins + (process + 1) * sizeof(int64_t), sizeof(int64_t));
  return range;
}

int Board::ProcessOf(int64_t rank) const {
  int process = 0;
  while (process + 1 < num_processes() && RanksOf(process).end <= rank) ++process;
  return process;
}

absl::Span<RankProgress> Board::ranks() const {
  char* const begin = memory() + Rounded(sizeof(Head)) + ProcessBytes(head_->processes);
  return {reinterpret_cast<RankProgress*>(begin), static_cast<size_t>(head_->ranks)};
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

bool Board::End(int process, const absl::Status& reason) const {
  int32_t nobody = 0;
  if (!head_->ending.compare_exchange_strong(nobody, process + 2)) return false;
  const absl::string_view text = reason.message();
  std::memset(head_->reason, 0, sizeof(head_->reason));
  text.copy(head_->reason, std::min(text.size(), kReasonBytes - 1));
  head_->code.store(static_cast<int32_t>(reason.code()), std::memory_order_release);
  return true;
}

absl::optional<RunEnd> Board::end() const {
  const int32_t code = head_->code.load(std::memory_order_acquire);
  if (code == 0) return absl::nullopt;
  return RunEnd{head_->ending.load() - 2,
                absl::Status(static_cast<absl::StatusCode>(code), head_->reason)};
}

}  // namespace mgc
