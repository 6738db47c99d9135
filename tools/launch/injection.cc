#include "tools/launch/injection.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"

namespace mgc {
namespace {

constexpr const char* kFaults[] = {"kill", "stop", "throw", "loop", "slow", "exit"};
constexpr const char* kPoints[] = {"start",    "forward", "backward", "collective",
                                   "transfer", "update",  "end"};
constexpr int64_t kStep = 2;      // at which a step's faults happen: the first one is told apart
constexpr int64_t kSlowStep = 4;  // from which a rank is slow: what is usual must be known
constexpr int64_t kTimesSlower = 9;

template <size_t N>
int IndexOf(const char* const (&names)[N], absl::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) return static_cast<int>(i);
  }
  return -1;
}

absl::Status Fail(Fault fault) {
  switch (fault) {
    case Fault::kKill:
      kill(getpid(), SIGKILL);
      break;
    case Fault::kStop:
      kill(getpid(), SIGSTOP);
      break;
    case Fault::kThrow:
      return absl::InternalError("a failure that was asked for");
    case Fault::kLoop:
      for (volatile bool on = true; on;) continue;
      break;
    case Fault::kSlow:  // Dawdler
      break;
    case Fault::kExit:
      _exit(0);
  }
  return absl::OkStatus();
}

// Makes a rank slow: after an instruction it rests for a multiple of the time that it took.
class Dawdler {
 public:
  void Rest(const Rank& rank) {
    const int64_t busy = rank.busy_ns - seen_ns_;
    const int64_t worked = std::max<int64_t>(0, busy - rested_ns_);
    seen_ns_ = busy < 0 ? 0 : rank.busy_ns;
    rested_ns_ = kTimesSlower * worked;
    std::this_thread::sleep_for(std::chrono::nanoseconds(rested_ns_));
  }

 private:
  int64_t seen_ns_ = 0;    // of the rank's busy time, which counts rests too
  int64_t rested_ns_ = 0;  // since
};

// Where a rank stands when it is probed: an instruction's action, or an item it starts.
bool IsAt(const Rank& rank, const CommItem* item, FaultPoint point) {
  if (item != nullptr) {
    return point == (item->transfer < 0 ? FaultPoint::kCollective : FaultPoint::kTransfer);
  }
  const ActionKind kind = rank.program->steps->actions[rank.action].action->ref.kind;
  return (point == FaultPoint::kForward && kind == ActionKind::kForward) ||
         (point == FaultPoint::kBackward && kind == ActionKind::kBackward) ||
         (point == FaultPoint::kUpdate && kind == ActionKind::kUpdate);
}

}  // namespace

absl::StatusOr<Injection> ParseInjection(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ':');
  Injection injection;
  const int fault = IndexOf(kFaults, words[0]);
  const int point = words.size() > 1 ? IndexOf(kPoints, words[1]) : -1;
  if (words.size() != 3 || fault < 0 || point < 0 || !absl::SimpleAtoi(words[2], &injection.rank) ||
      injection.rank < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("no failure `", EscapeBytes(text), "`; it is FAULT:POINT:RANK, faults are ",
                     absl::StrJoin(kFaults, ", "), ", points ", absl::StrJoin(kPoints, ", ")));
  }
  injection.fault = static_cast<Fault>(fault);
  injection.point = static_cast<FaultPoint>(point);
  return injection;
}

void InjectOutside(const Injection& injection, FaultPoint point) {
  if (injection.point == point && !Fail(injection.fault).ok()) {
    throw std::runtime_error("a failure that was asked for");
  }
}

StepMachine::ProbeFn ProbeOf(const Injection& injection) {
  return [injection, dawdler = Dawdler()](const Rank& rank, const CommItem* item) mutable {
    const bool slow = injection.fault == Fault::kSlow;
    const int64_t step = rank.progress->steps.get();
    const bool now = slow ? step >= kSlowStep : step == kStep;
    if (rank.id != injection.rank || !now) return absl::OkStatus();
    if (slow && item == nullptr) dawdler.Rest(rank);
    return !slow && IsAt(rank, item, injection.point) ? Fail(injection.fault) : absl::OkStatus();
  };
}

}  // namespace mgc
