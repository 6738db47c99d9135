// Sides that take turns, and what their times say of each other.
//
// A machine's speed moves more within a minute than what is compared, so that no side's seconds
// mean much: what counts is the ratio of two sides that ran one after the other, and of all such
// ratios the median. How far the ratios lie apart says whether it means anything.

#ifndef MGC_TOOLS_BENCHMARKS_COMPARISON_H_
#define MGC_TOOLS_BENCHMARKS_COMPARISON_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace mgc {

// Time of one kind of work in one step, over all ranks, in seconds of one core: a kernel that all
// cores share counts for each of them.
struct WorkShare {
  std::string name;  // an op; `collectives`, `transfers`
  double seconds = 0;
  int64_t calls = 0;
};

// Where a side's time and memory go.
struct Profile {
  std::vector<WorkShare> shares;  // of one step, largest first
  double seconds = 0;             // of that step
  int64_t peak_bytes = 0;         // that a rank needs at most; 0: unknown
  double predicted_seconds = 0;   // of a step; 0: not predicted
};

// What one step took.
struct StepTime {
  double seconds = 0;
  double cpu_seconds = 0;  // of all threads of the side
};

// From its construction on.
class Stopwatch {
 public:
  Stopwatch();
  // Processor time is that of this process.
  StepTime Read() const;

 private:
  StepTime begin_;
};

// What is timed.
class BenchSide {
 public:
  virtual ~BenchSide() = default;
  virtual absl::StatusOr<StepTime> Step() = 0;
  // Empty where a side cannot tell.
  virtual Profile profile() const { return {}; }
};

// A side that is yet to be made.
struct SideSpec {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<BenchSide>>()> make;
};

// That the fastest of some sides is `least` times as fast as the fastest of others, by index.
struct Claim {
  std::vector<int> sides, peers;
  double least = 0;
};

// That a side needs at most `most` of the memory that a peer needs.
struct MemoryClaim {
  int side = 0, peer = 0;
  double most = 0;
};

// Sides that do the same work.
struct Comparison {
  std::string name;    // `one-rank`
  std::string title;   // `one rank, 4 x 256 tokens`
  int64_t tokens = 0;  // of one step of every side; 0: it has none
  std::vector<SideSpec> sides;
  std::vector<Claim> claims;
  std::vector<MemoryClaim> memory_claims;
};

// Of a side: its times, in order of its turns.
struct Timings {
  std::string name;
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;
  Profile profile;
  std::string missing;  // why this machine has no such side, which then has no times
};

struct ComparisonResult {
  std::string name, title;
  int64_t tokens = 0;
  std::vector<Timings> sides;
  std::vector<Claim> claims;
  std::vector<MemoryClaim> memory_claims;
};

// Makes all sides, has each do two steps that do not count (they touch all memory and fill caches),
// then `repetitions` >= 1 in turns. A side whose making is Unimplemented is missing. Errors: the
// first of any side, with its name.
absl::StatusOr<ComparisonResult> Compare(const Comparison& comparison, int64_t repetitions);

// Keeps this thread, and the threads and programs that it starts from now on, on the first `cores`
// >= 1 processors it may run on, so that every side has the same ones; on all if there are fewer.
absl::Status PinSides(int cores);

// How much faster one side is than another: ratios of turns that follow each other.
struct Ratio {
  double median = 0;
  double low = 0, high = 0;  // half of the ratios lie between
  bool noisy() const { return high - low > kMostSpread * median; }

  static constexpr double kMostSpread = 0.2;
};

double Median(std::vector<double> values);
// Of seconds in order of turns; `side` took them, and `peer`.
Ratio Faster(const std::vector<double>& side, const std::vector<double>& peer);

// A claim held against times. `side` and `peer` are the fastest of those named, by median.
struct Finding {
  int side = 0, peer = 0;
  Ratio ratio;
  double cpu_ratio = 0;  // the median, of processor time
  double least = 0;

  bool reached() const { return ratio.median >= least; }
};
// None where all sides or all peers are missing.
absl::optional<Finding> Judge(const ComparisonResult& result, const Claim& claim);

// Memory of the side over that of its peer; none where one of them is unknown.
absl::optional<double> MemoryRatio(const ComparisonResult& result, const MemoryClaim& claim);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_COMPARISON_H_
