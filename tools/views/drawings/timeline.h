// Timelines in the JSON form that Perfetto and chrome://tracing read.

#ifndef MGC_TOOLS_VIEWS_DRAWINGS_TIMELINE_H_
#define MGC_TOOLS_VIEWS_DRAWINGS_TIMELINE_H_

#include <cstdint>
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
};

struct TimelineEvent {
  size_t track = 0;  // index into Timeline::tracks
  std::string name;
  std::string category;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint64_t flow = 0;  // events of the same flow are joined by an arrow; 0: none
  bool flow_begins = false;
};

struct Timeline {
  std::vector<TimelineTrack> tracks;
  std::vector<TimelineEvent> events;
};

// One event a line. Times are microseconds with three decimals, made from the integers, so that
// neighbouring events keep touching.
std::string TimelineJson(const Timeline& timeline);

// The predicted step of a plan (passes/plan/time/predict_step.h), a process for each rank class;
// sends and their receives are joined. Class c is process first_process + c.
Timeline PredictedTimeline(const Plan& plan, const SimulatedStep& step, int64_t first_process);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_DRAWINGS_TIMELINE_H_
