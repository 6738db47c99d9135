#include "tools/launch/launcher.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "runtime/run/host.h"
#include "runtime/run/trace.h"
#include "tools/cli/flags.h"
#include "tools/cli/output.h"
#include "tools/launch/monitor.h"
#include "tools/launch/run_memory.h"

namespace mgc {
namespace {

constexpr int kLookMs = 50;

// Watches a run of this process until it has ended; ends the process when it does not come on.
void WatchHere(const std::string& command, const RunSignals& signals, const Board& board,
               Monitor& monitor, const std::atomic<bool>& ended) {
  while (!ended) {
    const int signal = signals.Next(kLookMs);
    const int64_t now = NowNs();
    board.process(0).heartbeat_ns.set(now);
    if (monitor.Take(signal, now)) _exit(kExitFailed);
    if (const auto stuck = monitor.Look(now)) {
      Say(command, *stuck);
      _exit(kExitWatchdog);
    }
  }
}

}  // namespace

bool IsAlike(const absl::Status& why) { return absl::IsCancelled(why) || absl::IsOutOfRange(why); }

bool IsOfRunning(int code) {
  return code == kExitFailed || code == kExitStopped || code == kExitWatchdog;
}

int EndRun(World& world, const absl::Status& why, int code) {
  world.end_run(why, code);
  return code;
}

int RunHere(const Plan& plan, const LaunchOptions& options,
            const std::function<int(World&)>& body) {
  World world;
  world.map = ProcessMap(plan.mesh.world_size());
  const absl::StatusOr<SharedMemory> memory = MakeBoardMemory(plan, world.map, options.run_dir);
  if (!memory.ok()) return Fail(memory.status(), kExitFailed);
  world.board = Board(memory->data(), world.map);
  world.end_run = [&options](const absl::Status& why, int code) {
    IsOfRunning(code) ? Say(options.command, why.message()) : static_cast<void>(Fail(why, code));
  };
  world.board->Enter(0, getpid(), HostName(), NowNs());
  const RunSignals signals;
  Monitor monitor(plan, *world.board, options);
  std::atomic<bool> ended{false};
  std::thread watch([&] { WatchHere(options.command, signals, *world.board, monitor, ended); });
  const int code = body(world);
  world.board->SetStage(0, ProcessStage::kEnded, NowNs());
  ended = true;
  watch.join();
  return code;
}

}  // namespace mgc
