// Watches a run from within one of its processes, that MPI has started: on a thread of its own.
//
// The first process sees what all ranks are at and names the culprit of a run that does not come
// on; every process sees the first one, and those of its host that die.

#ifndef MGC_TOOLS_LAUNCH_MPI_WATCH_H_
#define MGC_TOOLS_LAUNCH_MPI_WATCH_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "graph/plan/plan.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/mpi/mpi_world.h"
#include "runtime/watch/board.h"
#include "tools/launch/board_mail.h"
#include "tools/launch/launcher.h"
#include "tools/launch/member.h"
#include "tools/launch/monitor.h"
#include "tools/launch/run_memory.h"

namespace mgc {

// Where a process says why the run ends. All but the first one have a log, if the run has a folder:
// the launcher may be out of reach by then, and where it is not, that is what users look at.
class LastWords {
 public:
  // What is said begins with the command's name.
  explicit LastWords(std::string command) : command_(std::move(command)) {}

  const std::string& command() const { return command_; }
  absl::Status LogFrom(const std::string& run_dir, int process);
  void Print(absl::FunctionRef<void()> print) const;
  // In the log alone, where there is one.
  void Log(absl::FunctionRef<void()> print) const;

 private:
  std::string command_;
  int terminal_ = -1;  // where stderr went before it went to a log
};

// The boards of other processes of this host, by process; null for those that are elsewhere.
class NearBoards {
 public:
  // `own`: this process's. What does not say the member's key is somebody else's board: in another
  // container of the same name process numbers mean other processes.
  NearBoards(const std::vector<Member>& members, size_t self, const Board& own);

  bool Has(int process) const { return memory_[static_cast<size_t>(process)] != nullptr; }
  // Of which processes it has one.
  std::vector<bool> known() const;
  void CopyTo(int process, const Board& board, int64_t now_ns) const;

 private:
  std::vector<std::unique_ptr<SharedMemory>> memory_;
};

// What processes get to prepare, connect and begin: reading a plan from a slow disk.
inline constexpr std::chrono::milliseconds kToPrepare(120'000);

class MpiWatch {
 public:
  // What is referred to must outlive it. Ends all processes where they do not come on.
  MpiWatch(const Plan& plan, const Board& board, int self, std::vector<Member> members,
           const LaunchOptions& options, const RunSignals& signals, MpiWorld& mpi,
           const LastWords& words);
  ~MpiWatch() { Stop(); }

  // No process may be missed from now on; those here are seen once more.
  void Stop();
  // From now on processes tell each other what they are at.
  void Connect(Communicator& communicator);
  // The communicator is about to be gone.
  void Disconnect();

 private:
  void Run();
  void FindDead();
  void Exchange(int64_t now);
  void Look(int64_t now);
  [[noreturn]] void End(const std::string& why, int code);

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
  int64_t unheard_ns_;  // since when nothing can be heard of other hosts
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_MPI_WATCH_H_
