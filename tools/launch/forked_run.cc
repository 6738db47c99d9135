// RunForked: the processes of a run on this host, and their launcher, which watches them.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/comm/memfd_regions.h"
#include "runtime/comm/shared_link.h"
#include "runtime/run/host.h"
#include "runtime/run/ticker.h"
#include "runtime/run/trace.h"
#include "tools/cli/flags.h"
#include "tools/cli/output.h"
#include "tools/launch/fork_exchange.h"
#include "tools/launch/launcher.h"
#include "tools/launch/monitor.h"
#include "tools/launch/run_memory.h"

namespace mgc {
namespace {

constexpr int kLookMs = 20;
constexpr auto kHeartbeat = std::chrono::milliseconds(20);
// What processes get to end by themselves when the run ends before its time.
constexpr int64_t kGraceNs = 300'000'000;

// The error of a run that has been ended, for links and exchanges.
absl::Status EndOf(const Board& board) {
  const absl::optional<RunEnd> end = board.end();
  return end.has_value() ? absl::AbortedError(end->status.message()) : absl::OkStatus();
}

// What a forked process does; returns its exit code.
int RunChild(const ProcessMap& map, const LaunchOptions& options, const Board& board,
             char* exchange_memory, int self, const std::function<int(World&)>& body) {
  RunSignals::LeaveToLauncher();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  board.Enter(self, getpid(), HostName(), NowNs());
  World world;
  world.map = map;
  world.self = self;
  world.ranks_before = map.RanksOf(self).begin;
  world.board = board;
  // The launcher says why.
  world.end_run = [&board, self](const absl::Status& why, int code) { board.End(self, why, code); };
  world.workers = std::max(1, ReadHost().processors / map.processes());
  if (!options.run_dir.empty() && self != 0) {
    const absl::Status logged = LogTo(options.run_dir, self).status();
    if (!logged.ok()) return EndRun(world, logged, kExitFailed);
  }
  const Ticker heartbeat(kHeartbeat,
                         [&board, self] { board.process(self).heartbeat_ns.set(NowNs()); });
  const auto check = [&board] { return EndOf(board); };
  ForkExchange exchange(exchange_memory, map.processes(), self, check);
  const auto gather = [&](const std::string& mine) {
    board.SetStage(self, ProcessStage::kAgreeing, NowNs());
    auto all = exchange.Gather(mine);
    board.SetStage(self, ProcessStage::kStarting, NowNs());
    return all;
  };
  const auto reachable = MemfdRegions::FindReachable(self, HostName(), gather);
  if (!reachable.ok()) return EndRun(world, reachable.status(), kExitFailed);
  MemfdRegions regions(*reachable, gather, check), arenas(*reachable, gather, check);
  SharedLink link(regions);
  world.link = &link;
  world.arenas = &arenas;
  const int code = body(world);
  if (code == kExitOk) board.SetStage(self, ProcessStage::kEnded, NowNs());
  return code;
}

// The launcher's view of the processes it has forked.
class Children {
 public:
  Children(const Board& board, const Monitor& monitor) : board_(board), monitor_(monitor) {}

  void Add(pid_t pid) { pids_.push_back(pid); }
  int running() const {
    int count = 0;
    for (pid_t pid : pids_) count += pid > 0 ? 1 : 0;
    return count;
  }
  // Takes note of those that have ended; one that has not done all it had to ends the run.
  void Reap() {
    for (size_t p = 0; p < pids_.size(); ++p) {
      int status = 0;
      if (pids_[p] <= 0 || waitpid(pids_[p], &status, WNOHANG) != pids_[p]) continue;
      pids_[p] = 0;
      Judge(static_cast<int>(p), status);
    }
  }
  void KillAll() const {
    for (pid_t pid : pids_) {
      if (pid > 0) kill(pid, SIGKILL);
    }
  }
  // Of the run: that of its end, whichever process is heard of first.
  int code() const {
    const absl::optional<RunEnd> end = board_.end();
    return end.has_value() ? end->exit_code : kExitOk;
  }

 private:
  void Judge(int process, int status) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailed;
    const bool has_ended = board_.process(process).stage.get() == ProcessStage::kEnded;
    if (has_ended && code == kExitOk) return;
    std::string how;
    if (WIFSIGNALED(status)) {
      how = absl::StrCat("was killed by signal ", WTERMSIG(status), " (",
                         strsignal(WTERMSIG(status)), ")");
    } else {
      how = absl::StrCat("ended early, with code ", code);
    }
    const RankRange range = board_.RanksOf(process);
    std::string text = absl::StrCat(monitor_.waits().NameOfProcess(process), ", ", how);
    const int64_t now = NowNs();
    for (int64_t rank = range.begin; rank < range.end; ++rank) {
      absl::StrAppend(&text, "\nrank ", rank, " ", monitor_.waits().StateOf(rank, now));
    }
    board_.End(-1, absl::UnavailableError(text), code == kExitOk ? int{kExitFailed} : code);
  }

  const Board& board_;
  const Monitor& monitor_;
  std::vector<pid_t> pids_;  // 0: ended
};

// Until all have ended; returns the run's exit code.
int Supervise(const RunSignals& signals, const Board& board, Monitor& monitor, Children& children) {
  int64_t ending_since = 0;
  while (children.running() > 0) {
    const int signal = signals.Next(kLookMs);
    const int64_t now = NowNs();
    children.Reap();
    if (monitor.Take(signal, now)) {
      board.End(-1, absl::CancelledError("ended at once, nothing saved"), kExitFailed);
    }
    if (!board.end().has_value()) {
      const auto stuck = monitor.Look(now);
      if (!stuck.has_value()) continue;
      board.End(-1, absl::DeadlineExceededError(*stuck), kExitWatchdog);
    }
    if (ending_since == 0) ending_since = now;
    if (now - ending_since > kGraceNs) children.KillAll();
  }
  return children.code();
}

// Prints why a run has ended before its time, once for all processes.
void Explain(const std::string& command, const Board& board, const Monitor& monitor, int code) {
  const absl::optional<RunEnd> end = board.end();
  if (!end.has_value()) return;
  if (!IsOfRunning(code)) {
    Fail(end->status, code);
    return;
  }
  const bool is_nobodys = end->process < 0 || IsAlike(end->status);
  Say(command, is_nobodys ? std::string(end->status.message())
                          : absl::StrCat(monitor.waits().NameOfProcess(end->process), ": ",
                                         end->status.message()));
}

}  // namespace

int RunForked(const Plan& plan, const ProcessMap& map, const LaunchOptions& options,
              const std::function<int(World&)>& body) {
  const absl::StatusOr<SharedMemory> memory = MakeBoardMemory(plan, map, options.run_dir);
  if (!memory.ok()) return Fail(memory.status(), kExitFailed);
  const absl::StatusOr<SharedMemory> exchange =
      SharedMemory::Create(ForkExchange::Bytes(map.processes()));
  if (!exchange.ok()) return Fail(exchange.status(), kExitFailed);
  const Board board(memory->data(), map);
  Monitor monitor(plan, board, options);
  const RunSignals signals;
  Children children(board, monitor);
  std::fflush(nullptr);
  for (int self = 0; self < map.processes(); ++self) {
    const pid_t pid = fork();
    if (pid == 0) {
      const int code = RunChild(map, options, board, exchange->data(), self, body);
      std::fflush(nullptr);
      _exit(code);
    }
    if (pid < 0) {
      board.End(-1,
                absl::ResourceExhaustedError(absl::StrCat("the system gives ", self, " of ",
                                                          map.processes(),
                                                          " processes: ", std::strerror(errno))),
                kExitFailed);
      break;
    }
    children.Add(pid);
  }
  const int code = Supervise(signals, board, monitor, children);
  Explain(options.command, board, monitor, code);
  return code;
}

}  // namespace mgc
