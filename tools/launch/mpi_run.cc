#include "tools/launch/mpi_run.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "runtime/comm/memfd_regions.h"
#include "runtime/comm/mixed_link.h"
#include "runtime/comm/mpi/mpi_link.h"
#include "runtime/comm/mpi/mpi_world.h"
#include "runtime/comm/shared_link.h"
#include "runtime/run/trace.h"
#include "tools/cli/flags.h"
#include "tools/cli/output.h"
#include "tools/launch/board_mail.h"
#include "tools/launch/captured_output.h"
#include "tools/launch/monitor.h"
#include "tools/launch/run_memory.h"

namespace mgc {
namespace {

constexpr std::chrono::milliseconds kToPrepare(120'000);  // reading a plan from a slow disk
constexpr std::chrono::hours kToProve(1);
constexpr int kLookMs = 50;
constexpr int64_t kMailNs = 200'000'000;
// The first process says an error that all have, the others give it time to.
constexpr std::chrono::milliseconds kAfterLead(300);
constexpr std::chrono::seconds kAfterReporter(2);
constexpr int64_t kSecondNs = 1'000'000'000;

// A process as the others know it.
struct Member {
  int64_t pid = 0;
  int board = -1;  // its file
  std::string host;
  std::vector<int> processors;  // that it may use
};

std::vector<int> OwnProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int p = 0; p < CPU_SETSIZE; ++p) {
    if (CPU_ISSET(p, &set)) processors.push_back(p);
  }
  return processors;
}

std::string PackSelf(int board) {
  std::string text = absl::StrCat(getpid(), " ", board, " ", HostName(), " ");
  for (int processor : OwnProcessors()) absl::StrAppend(&text, processor, ",");
  return text;
}

Member UnpackMember(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  Member member;
  if (words.size() != 4 || !absl::SimpleAtoi(words[0], &member.pid) ||
      !absl::SimpleAtoi(words[1], &member.board)) {
    return member;
  }
  member.host = words[2];
  for (absl::string_view word : absl::StrSplit(words[3], ',', absl::SkipEmpty())) {
    int processor = 0;
    if (absl::SimpleAtoi(word, &processor)) member.processors.push_back(processor);
  }
  return member;
}

// Processes of one host that may use the same processors share them out.
int WorkersOf(const std::vector<Member>& members, size_t self) {
  const Member& own = members[self];
  int sharing = 0;
  for (const Member& other : members) {
    const bool overlaps =
        other.host == own.host &&
        std::find_first_of(own.processors.begin(), own.processors.end(), other.processors.begin(),
                           other.processors.end()) != own.processors.end();
    sharing += overlaps ? 1 : 0;
  }
  return std::max(1, static_cast<int>(own.processors.size()) / std::max(1, sharing));
}

// The boards of other processes of this host, by process; null for those that are elsewhere.
class NearBoards {
 public:
  NearBoards(const std::vector<Member>& members, size_t self) : memory_(members.size()) {
    for (size_t p = 0; p < members.size(); ++p) {
      if (p == self || members[p].host != members[self].host) continue;
      auto memory = SharedMemory::Open(
          absl::StrCat("/proc/", members[p].pid, "/fd/", members[p].board), false);
      if (!memory.ok() || !Board::Read(memory->data(), memory->bytes()).ok()) continue;
      memory_[p] = std::make_unique<SharedMemory>(*std::move(memory));
    }
  }

  bool Has(int process) const { return memory_[static_cast<size_t>(process)] != nullptr; }
  std::vector<bool> known() const {
    std::vector<bool> known;
    for (const auto& memory : memory_) known.push_back(memory != nullptr);
    return known;
  }
  void CopyTo(int process, const Board& board, int64_t now_ns) const {
    const SharedMemory& memory = *memory_[static_cast<size_t>(process)];
    CopyProcess(*Board::Read(memory.data(), memory.bytes()), process, board, now_ns);
  }

 private:
  std::vector<std::unique_ptr<SharedMemory>> memory_;
};

// Where a process says why the run ends. All but the first one have a log, if the run has a folder:
// the launcher may be out of reach by then, and where it is not, that is what users look at.
class LastWords {
 public:
  absl::Status LogFrom(const std::string& run_dir, int process) {
    MGC_ASSIGN_OR_RETURN(terminal_, LogTo(run_dir, process));
    return absl::OkStatus();
  }
  void Print(absl::FunctionRef<void()> print) const {
    print();
    if (terminal_ < 0 || dup2(terminal_, STDERR_FILENO) < 0) return;
    print();
  }
  // In the log alone, where there is one.
  void Log(absl::FunctionRef<void()> print) const {
    if (terminal_ >= 0) print();
  }

 private:
  int terminal_ = -1;  // where stderr went before it went to a log
};

// Watches the run from within one of its processes, on a thread of its own.
class MpiWatch {
 public:
  MpiWatch(const Plan& plan, const Board& board, int self, std::vector<Member> members,
           const LaunchOptions& options, const RunSignals& signals, MpiWorld& mpi,
           const LastWords& words)
      : board_(board),
        self_(self),
        members_(std::move(members)),
        near_(members_, static_cast<size_t>(self)),
        seconds_(options.watchdog_seconds),
        mpi_(mpi),
        words_(words),
        monitor_(plan, board, options.watchdog_seconds),
        signals_(signals),
        thread_([this] { Run(); }) {}

  // No process may be missed from now on.
  void Stop() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }
  ~MpiWatch() { Stop(); }

  // From now on processes tell each other what they are at.
  void Connect(Communicator& communicator) {
    std::lock_guard<std::mutex> lock(mutex_);
    mail_ = std::make_unique<BoardMail>(communicator, board_, near_.known());
  }
  // The communicator is about to be gone.
  void Disconnect() {
    std::lock_guard<std::mutex> lock(mutex_);
    mail_.reset();
  }

 private:
  void Run() {
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
  void FindDead() {
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

  void Exchange(int64_t now) {
    std::lock_guard<std::mutex> lock(mutex_);
    board_.process(self_).heartbeat_ns.set(now);
    for (int p = 0; p < board_.num_processes(); ++p) {
      if (near_.Has(p)) {
        near_.CopyTo(p, board_, now);
      } else if (mail_ == nullptr) {
        // Until it can be heard of, it is taken to live.
        board_.process(p).heartbeat_ns.set(now);
      }
    }
    if (mail_ != nullptr && now - mailed_ns_ > kMailNs) {
      mail_->Exchange(now);
      mailed_ns_ = now;
    }
  }

  // The first process sees all; another one sees whether the first one lives.
  void Look(int64_t now) {
    if (self_ == 0) {
      const auto stuck = monitor_.Look(now);
      if (!stuck.has_value()) return;
      End(*stuck, kExitWatchdog);
    }
    const int64_t silent = now - board_.process(0).heartbeat_ns.get();
    const auto limit = static_cast<int64_t>(seconds_ * 1e9) + kSecondNs;
    if (seconds_ <= 0 || silent < limit) return;
    End(absl::StrCat(monitor_.waits().NameOfProcess(0), ", has not answered for ",
                     silent / kSecondNs, " s (stopped, or cut off); here ",
                     monitor_.waits().NameOf(board_.RanksOf(self_).begin), " ",
                     monitor_.waits().StateOf(board_.RanksOf(self_).begin, now)),
        kExitWatchdog);
  }

  // One that ends by itself is not missed by its neighbours, who find what it has found.
  [[noreturn]] void End(const std::string& why, int code) {
    words_.Print([&why] { Say(why); });
    board_.SetStage(self_, ProcessStage::kEnded, NowNs());
    mpi_.Abort(code);
  }

  const Board board_;
  const int self_;
  const std::vector<Member> members_;
  const NearBoards near_;
  const double seconds_;
  MpiWorld& mpi_;
  const LastWords& words_;
  Monitor monitor_;
  const RunSignals& signals_;
  std::mutex mutex_;
  std::unique_ptr<BoardMail> mail_;
  int64_t mailed_ns_ = 0;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// Prints, and ends all processes.
void EndAll(MpiWorld& mpi, const LastWords& words, const absl::Status& why, int code) {
  // What all find alike is nobody's, and is said by the first one.
  const bool alike = absl::IsCancelled(why) || absl::IsOutOfRange(why);
  const auto print = [&] {
    if (alike) {
      Say(why.message());
    } else if (code == kExitFailed) {
      Say(absl::StrCat("process ", mpi.rank(), " (pid ", getpid(), ", ", HostName(),
                       "): ", why.message()));
    } else {
      Fail(why, code);
    }
  };
  if (mpi.rank() != 0) {
    RunSignals::Obey();  // the launcher, once another one has spoken
    std::this_thread::sleep_for(kAfterLead);
  }
  mpi.rank() != 0 && alike ? words.Log(print) : words.Print(print);
  mpi.Abort(code);
}

// The links to the others and what they stand on, in the order in which they come and go.
struct Links {
  explicit Links(MpiWorld& mpi) : far(mpi, kToPrepare) {}

  std::unique_ptr<MemfdRegions> regions;
  std::unique_ptr<SharedLink> near;
  MpiLink far;
  std::unique_ptr<MixedLink> mixed;
};

absl::StatusOr<std::unique_ptr<Links>> MakeLinks(MpiWorld& mpi, const Board& board) {
  auto links = std::make_unique<Links>(mpi);
  const auto gather = [&mpi, board](const std::string& mine) {
    board.SetStage(mpi.rank(), ProcessStage::kAgreeing, NowNs());
    auto all = mpi.Gather(mine, kToPrepare);
    board.SetStage(mpi.rank(), ProcessStage::kStarting, NowNs());
    return all;
  };
  MGC_ASSIGN_OR_RETURN(const std::vector<bool> reachable,
                       MemfdRegions::FindReachable(mpi.rank(), HostName(), gather));
  links->regions =
      std::make_unique<MemfdRegions>(reachable, gather, [] { return absl::OkStatus(); });
  links->near = std::make_unique<SharedLink>(*links->regions);
  links->mixed = std::make_unique<MixedLink>(reachable, *links->near, links->far);
  return links;
}

// Runs this process's ranks; the exit code. Errors end all processes.
int RunAgreed(MpiWorld& mpi, const RunSignals& signals, const Prepared& prepared,
              const ProcessMap& map, const MpiBody& body) {
  LastWords words;
  World world;
  const auto end = [&](const absl::Status& why, int code) {
    // One that ends by itself is not missed by its neighbours.
    if (world.board.has_value()) {
      world.board->SetStage(world.self, ProcessStage::kEnded, NowNs());
    }
    EndAll(mpi, words, why, code);
  };
  if (const std::string& run_dir = prepared.options.run_dir; !run_dir.empty() && mpi.rank() != 0) {
    const absl::Status logged = words.LogFrom(run_dir, mpi.rank());
    if (!logged.ok()) end(logged, kExitFailed);
  }
  world.map = map;
  world.self = mpi.rank();
  world.end_run = end;
  const auto memory =
      MakeBoardMemory(*prepared.plan, map, world.is_lead() ? prepared.options.run_dir : "");
  if (!memory.ok()) end(memory.status(), kExitFailed);
  world.board = Board(memory->data(), map);
  const auto told = mpi.Gather(PackSelf(memory->file()), kToPrepare);
  if (!told.ok()) end(told.status(), kExitFailed);
  std::vector<Member> members;
  for (const std::string& text : *told) members.push_back(UnpackMember(text));
  world.workers = WorkersOf(members, static_cast<size_t>(mpi.rank()));
  for (size_t p = 0; p < members.size(); ++p) {
    world.board->Enter(static_cast<int>(p), members[p].pid, members[p].host, NowNs());
  }
  MpiWatch watch(*prepared.plan, *world.board, mpi.rank(), members, prepared.options, signals, mpi,
                 words);
  world.on_open = [&watch](Communicator& communicator) { watch.Connect(communicator); };
  world.on_close = [&watch] { watch.Disconnect(); };
  const auto links = MakeLinks(mpi, *world.board);
  if (!links.ok()) end(links.status(), kExitFailed);
  world.link = (*links)->mixed.get();
  const int code = body.run(world);
  world.board->SetStage(world.self, ProcessStage::kEnded, NowNs());
  watch.Stop();
  return code;
}

// Which process says what of a command that ends before it runs: the first one what it has printed
// already, else the first other one that ends so.
int ExplainEnd(MpiWorld& mpi, const std::vector<std::string>& all) {
  for (size_t p = 0; p < all.size(); ++p) {
    const std::vector<std::string> parts = absl::StrSplit(all[p], absl::MaxSplits('\n', 2));
    if (parts.size() < 3 || parts[0] == "run") continue;
    int code = kExitFailed;
    if (!absl::SimpleAtoi(parts[0], &code)) code = kExitFailed;
    if (p > 0 && mpi.rank() == 0) {
      std::cerr << "error: process " << p << " ends with " << code << "; it says:\n" << parts[2];
    }
    return code;
  }
  return -1;
}

}  // namespace

int RunUnderMpi(const LaunchedBy& by, const MpiBody& body) {
  const RunSignals signals;  // before MPI starts threads of its own, on which they would be deadly
  absl::StatusOr<std::unique_ptr<MpiWorld>> made = MpiWorld::Create();
  if (!made.ok()) return Fail(made.status(), kExitFailed);
  MpiWorld& mpi = **made;
  if (mpi.size() != by.size) {
    return Fail(absl::FailedPreconditionError(
                    absl::StrCat(by.launcher, " has started ", by.size, " processes (", by.variable,
                                 "), this program's MPI library sees ", mpi.size(),
                                 ": they are not of one MPI; under Slurm try srun --mpi=pmix")),
                kExitFailed);
  }
  absl::optional<CapturedOutput> captured;
  if (mpi.rank() != 0) captured.emplace();
  const Prepared prepared = body.prepare();
  const std::string printed = captured.has_value() ? captured->End() : "";
  const std::string fate =
      prepared.plan != nullptr ? std::string("run") : absl::StrCat(prepared.code);
  const auto all =
      mpi.Gather(absl::StrCat(fate, "\n", "\n",
                              prepared.plan != nullptr ? PackTerms(prepared.terms) : printed),
                 kToPrepare);
  if (!all.ok()) EndAll(mpi, LastWords(), all.status(), kExitFailed);
  if (const int code = ExplainEnd(mpi, *all); code >= 0) {
    (void)mpi.Finalize();
    return code;
  }
  std::vector<std::string> terms;
  for (const std::string& text : *all) terms.push_back(text.substr(sizeof("run\n\n") - 1));
  absl::Status agreed = CheckTerms(terms);
  const auto map =
      ProcessMap::Create(prepared.plan->mesh.world_size(), mpi.size(), prepared.ranks_per_process);
  agreed.Update(map.status());
  if (!agreed.ok()) {
    if (mpi.rank() == 0) Fail(agreed, kExitInfeasible);
    (void)mpi.Finalize();
    return kExitInfeasible;
  }
  const auto proved =
      mpi.Gather(mpi.rank() == 0 ? absl::StrCat(body.prove()) : std::string(), kToProve);
  if (!proved.ok()) EndAll(mpi, LastWords(), proved.status(), kExitFailed);
  int code = kExitOk;
  if (absl::SimpleAtoi((*proved)[0], &code) && code == kExitOk) {
    code = RunAgreed(mpi, signals, prepared, *map, body);
  }
  const absl::Status ended = mpi.Finalize();
  return ended.ok() ? code : Fail(ended, kExitFailed);
}

}  // namespace mgc
