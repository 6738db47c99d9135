#include "tools/benchmarks/process_side.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "tools/cli/flags.h"
#include "tools/launch/launcher.h"

namespace mgc {
namespace {

constexpr int kBench = 0;    // the end of a pair of sockets that mgc-bench has
constexpr int kProcess = 1;  // and the one of a process of the side

using SocketPair = std::array<int, 2>;

void Say(int socket, const std::string& line) {
  static_cast<void>(send(socket, line.data(), line.size(), MSG_NOSIGNAL));
}

// A process of the side: does its part whenever it is asked, until nobody can ask any more.
int Serve(World& world, int socket, const ProcessSide::MakePart& make) {
  const auto part = make(world);
  if (!part.ok()) {
    Say(socket, absl::StrCat(EscapeBytes(part.status().message()), "\n"));
    return EndRun(world, part.status(), kExitFailed);
  }
  Say(socket, "ready\n");
  char asked[64];  // one request at a time, whose answer is waited for
  while (recv(socket, asked, sizeof asked, 0) > 0) {
    const absl::StatusOr<StepTime> time = (*part)->Step();
    if (!time.ok()) return EndRun(world, time.status(), kExitFailed);
    Say(socket, absl::StrFormat("%.9f %.9f %d\n", time->seconds, time->cpu_seconds,
                                (*part)->profile().peak_bytes));
  }
  return kExitOk;
}

absl::StatusOr<std::vector<SocketPair>> MakeSockets(int processes) {
  std::vector<SocketPair> pairs(static_cast<size_t>(processes));
  for (SocketPair& pair : pairs) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
      return absl::UnavailableError(absl::StrCat("socketpair: ", std::strerror(errno)));
    }
  }
  return pairs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchSide>> ProcessSide::Create(const std::string& name,
                                                               const Plan& plan,
                                                               const MakePart& make) {
  const int64_t ranks = plan.mesh.world_size();
  MGC_ASSIGN_OR_RETURN(const ProcessMap map, ProcessMap::Create(ranks, ranks));
  MGC_ASSIGN_OR_RETURN(const std::vector<SocketPair> sockets, MakeSockets(map.processes()));
  std::fflush(nullptr);
  const pid_t launcher = fork();
  if (launcher < 0) return absl::UnavailableError(absl::StrCat("fork: ", std::strerror(errno)));
  if (launcher == 0) {
    for (const SocketPair& pair : sockets) close(pair[kBench]);
    LaunchOptions options;
    options.command = "mgc-bench";
    options.watchdog_seconds = 0;  // between its steps a side waits for the others
    _exit(RunForked(plan, map, options, [&](World& world) {
      return Serve(world, sockets[static_cast<size_t>(world.self)][kProcess], make);
    }));
  }
  for (const SocketPair& pair : sockets) close(pair[kProcess]);
  std::unique_ptr<ProcessSide> side(new ProcessSide);
  for (size_t p = 0; p < sockets.size(); ++p) {
    // Destroyed in this order: all sockets but the last are closed before somebody is waited for.
    const bool is_last = p + 1 == sockets.size();
    MGC_ASSIGN_OR_RETURN(auto part, ChildSide::Adopt(absl::StrCat(name, ", process ", p),
                                                     sockets[p][kBench], is_last ? launcher : 0));
    side->parts_.push_back(std::move(part));
  }
  return side;
}

ProcessSide::~ProcessSide() {
  while (!parts_.empty()) parts_.erase(parts_.begin());
}

absl::StatusOr<StepTime> ProcessSide::Step() {
  for (const auto& part : parts_) MGC_RETURN_IF_ERROR(part->Ask());
  StepTime all;
  for (const auto& part : parts_) {
    MGC_ASSIGN_OR_RETURN(const StepTime time, part->Answer());
    all.seconds = std::max(all.seconds, time.seconds);
    all.cpu_seconds += time.cpu_seconds;
  }
  return all;
}

Profile ProcessSide::profile() const {
  Profile profile;
  for (const auto& part : parts_) {
    profile.peak_bytes = std::max(profile.peak_bytes, part->profile().peak_bytes);
  }
  return profile;
}

}  // namespace mgc
