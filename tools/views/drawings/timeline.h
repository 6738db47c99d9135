// Timelines in the JSON form that Perfetto and chrome://tracing read.

#ifndef MGC_TOOLS_VIEWS_DRAWINGS_TIMELINE_H_
#define MGC_TOOLS_VIEWS_DRAWINGS_TIMELINE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "passes/plan/time/simulated_step.h"

namespace mgc {

// A row of events that do not overlap: one queue of one rank.
struct TimelineTrack {
  int64_t process = 0;  // a rank, from 1
  std::string process_name;
  int64_t thread = 1;  // 1 compute, 2 communication
  std::string thread_name;
  int64_t pipeline = 0;  // the same for ranks that send to each other
};

struct TimelineEvent {
  size_t track = 0;  // index into Timeline::tracks
  std::string name;
  std::string category;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint64_t flow = 0;  // events of the same flow are joined by an arrow; 0: none
  bool flow_begins = false;
  // Arguments, shown where they say something.
  int64_t micro_batch = -1;
  int64_t layer = kNoLayer;
  int64_t bytes = -1;  // of a transfer; of a collective its payload
  int64_t flops = 0;   // of a rank
};

struct Timeline {
  std::vector<TimelineTrack> tracks;
  std::vector<TimelineEvent> events;
};

// One event a line. Times are microseconds with three decimals, made from the integers, so that
// neighbouring events keep touching.
std::string TimelineJson(const Timeline& timeline);

// Joins each send with its receive by an arrow: the n-th `0SEND_F3` of a pipeline with the n-th
// `1RECV_F3`. Events of a track are in the order of time.
void JoinTransfers(Timeline* timeline);

// Flops of what ranks run; of an action counted once for all its events. The plan outlives it.
class FlopCounter {
 public:
  explicit FlopCounter(const Plan& plan) : plan_(plan) {}
  int64_t Of(const Segment& segment, const Instr& instr) const;
  int64_t Of(const std::vector<Call>& calls);

 private:
  const Plan& plan_;
  std::map<const std::vector<Call>*, int64_t> counted_;
};

// The predicted step of a plan (passes/plan/time/predict_step.h), a process for each rank class;
// sends and their receives are joined. Class c is process first_process + c. Names, categories and
// arguments are those of what is measured (tools/cli/measured_timeline.h).
Timeline PredictedTimeline(const Plan& plan, const SimulatedStep& step, int64_t first_process);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_DRAWINGS_TIMELINE_H_
