#include "tools/launch/mpi_watch.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/run/trace.h"
#include "tools/cli/flags.h"

namespace mgc {
namespace {

constexpr int kLookMs = 50;
constexpr int64_t kMailNs = 200'000'000;
constexpr std::chrono::seconds kAfterReporter(2);
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kToPrepareNs = std::chrono::nanoseconds(kToPrepare).count();

bool IsAsLarge(const Board& a, const Board& b) {
  return a.num_ranks() == b.num_ranks() && a.num_processes() == b.num_processes();
}

}  // namespace

absl::Status LastWords::LogFrom(const std::string& run_dir, int process) {
  MGC_ASSIGN_OR_RETURN(terminal_, LogTo(run_dir, process));
  return absl::OkStatus();
}

void LastWords::Print(absl::FunctionRef<void()> print) const {
  print();
  if (terminal_ < 0 || dup2(terminal_, STDERR_FILENO) < 0) return;
  print();
}

void LastWords::Log(absl::FunctionRef<void()> print) const {
  if (terminal_ >= 0) print();
}

NearBoards::NearBoards(const std::vector<Member>& members, size_t self, const Board& own)
    : memory_(members.size()) {
  for (size_t p = 0; p < members.size(); ++p) {
    if (p == self || members[p].host != members[self].host) continue;
    auto memory =
        SharedMemory::Open(absl::StrCat("/proc/", members[p].pid, "/fd/", members[p].board), false);
    if (!memory.ok()) continue;
    const absl::StatusOr<Board> board = Board::Read(memory->data(), memory->bytes());
    if (!board.ok() || board->key() != members[p].board_key || !IsAsLarge(*board, own)) continue;
    memory_[p] = std::make_unique<SharedMemory>(*std::move(memory));
  }
}

std::vector<bool> NearBoards::known() const {
  std::vector<bool> known;
  for (const auto& memory : memory_) known.push_back(memory != nullptr);
  return known;
}

void NearBoards::CopyTo(int process, const Board& board, int64_t now_ns) const {
  const SharedMemory& memory = *memory_[static_cast<size_t>(process)];
  const absl::StatusOr<Board> theirs = Board::Read(memory.data(), memory.bytes());
  if (theirs.ok() && IsAsLarge(*theirs, board)) CopyProcess(*theirs, process, board, now_ns);
}

MpiWatch::MpiWatch(const Plan& plan, const Board& board, int self, std::vector<Member> members,
                   const LaunchOptions& options, const RunSignals& signals, MpiWorld& mpi,
                   const LastWords& words)
    : board_(board),
      self_(self),
      members_(std::move(members)),
      near_(members_, static_cast<size_t>(self), board),
      seconds_(options.watchdog_seconds),
      mpi_(mpi),
      words_(words),
      monitor_(plan, board, options),
      signals_(signals),
      unheard_ns_(NowNs()),
      thread_([this] { Run(); }) {}

void MpiWatch::Stop() {
  ended_ = true;
  if (!thread_.joinable()) return;
  thread_.join();
  Exchange(NowNs());
}

void MpiWatch::Connect(Communicator& communicator) {
  std::lock_guard<std::mutex> lock(mutex_);
  mail_ = std::make_unique<BoardMail>(communicator, board_, near_.known());
}

void MpiWatch::Disconnect() {
  std::lock_guard<std::mutex> lock(mutex_);
  mail_.reset();
  unheard_ns_ = NowNs();
}

void MpiWatch::Run() {
  while (!ended_) {
    const int signal = signals_.Next(kLookMs);
    if (ended_) return;
    const int64_t now = NowNs();
    FindDead();
    // Launchers pass signals to all, and end by SIGTERM what is left of a run that has failed: no
    // more is said of one than that the run has stopped, by those that do.
    const bool says = signal == SIGUSR2 && self_ == 0;
    if (monitor_.Take(signal, now, says)) mpi_.Abort(kExitFailed);
    Exchange(now);
    Look(now);
  }
}

// Of processes on this host one that is gone ends the run; the first one that lives says so. A
// launcher tells survivors by SIGTERM too, which is nobody's wish to stop then.
void MpiWatch::FindDead() {
  int reporter = -1;
  int dead = -1;
  for (int p = 0; p < static_cast<int>(members_.size()); ++p) {
    const Member& member = members_[static_cast<size_t>(p)];
    // Another host may have the same name and other processes: only who is seen can be missed.
    if (p != self_ && !near_.Has(p)) continue;
    const bool gone = kill(static_cast<pid_t>(member.pid), 0) != 0 && errno == ESRCH;
    if (gone) near_.CopyTo(p, board_, NowNs());
    const bool missed = gone && board_.process(p).stage.get() != ProcessStage::kEnded;
    if (missed && dead < 0) dead = p;
    if (!gone && reporter < 0) reporter = p;
  }
  if (dead < 0) return;
  if (reporter != self_) {
    RunSignals::Obey();  // the launcher, which ends the others too
    std::this_thread::sleep_for(kAfterReporter);
  }
  const int64_t rank = board_.RanksOf(dead).begin;
  End(absl::StrCat(monitor_.waits().NameOfProcess(dead), ", has died; rank ", rank, " ",
                   monitor_.waits().StateOf(rank, NowNs())),
      kExitFailed);
}

void MpiWatch::Exchange(int64_t now) {
  std::lock_guard<std::mutex> lock(mutex_);
  board_.process(self_).heartbeat_ns.set(now);
  for (int p = 0; p < board_.num_processes(); ++p) {
    if (near_.Has(p)) {
      near_.CopyTo(p, board_, now);
    } else if (mail_ == nullptr && now - unheard_ns_ < kToPrepareNs) {
      // While it cannot be heard of, it is taken to live.
      board_.process(p).heartbeat_ns.set(now);
    }
  }
  if (mail_ != nullptr && now - mailed_ns_ > kMailNs) {
    mail_->Exchange(now);
    mailed_ns_ = now;
  }
}

// The first process sees all; another one sees whether the first one lives.
void MpiWatch::Look(int64_t now) {
  if (self_ == 0) {
    const auto stuck = monitor_.Look(now);
    if (!stuck.has_value()) return;
    End(*stuck, kExitWatchdog);
  }
  const int64_t silent = now - board_.process(0).heartbeat_ns.get();
  const auto limit = static_cast<int64_t>(seconds_ * 1e9) + kSecondNs;
  if (seconds_ <= 0 || silent < limit) return;
  End(absl::StrCat(monitor_.waits().NameOfProcess(0), ", has not answered for ", silent / kSecondNs,
                   " s (stopped, or cut off); here ",
                   monitor_.waits().NameOf(board_.RanksOf(self_).begin), " ",
                   monitor_.waits().StateOf(board_.RanksOf(self_).begin, now)),
      kExitWatchdog);
}

// One that ends by itself is not missed by its neighbours, who find what it has found.
void MpiWatch::End(const std::string& why, int code) {
  words_.Print([&] { Say(words_.command(), why); });
  board_.SetStage(self_, ProcessStage::kEnded, NowNs());
  mpi_.Abort(code);
}

}  // namespace mgc
