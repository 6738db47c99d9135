// The timed steps of a plan's segments. Each is made once for all classes that it takes as long in.

#ifndef MGC_PASSES_PLAN_TIME_SEGMENT_TIMER_H_
#define MGC_PASSES_PLAN_TIME_SEGMENT_TIMER_H_

#include <cstddef>
#include <vector>

#include "graph/plan/plan.h"
#include "passes/plan/time/cost.h"

namespace mgc {

class SegmentTimer {
 public:
  // What `model` refers to and `segments` outlive it.
  SegmentTimer(const CostModel& model, const std::vector<Segment>& segments);
  // Of segments whose steps are known, alike in all classes, without the segments.
  SegmentTimer(const CostModel& model, TimedSegments known);

  const CostModel& model() const { return model_; }
  const std::vector<Segment>& segments() const { return *segments_; }

  // Of a segment, as the class with this coordinate along pp runs it.
  const std::vector<TimedStep>& Of(int segment, int coordinate);

 private:
  struct Timed {
    bool made = false;
    std::vector<TimedStep> steps;
  };

  const CostModel model_;
  const std::vector<Segment>* const segments_;  // null: all steps are known
  std::vector<size_t> places_;                  // by class, into steps_
  std::vector<std::vector<Timed>> steps_;       // by place of classes and segment
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TIME_SEGMENT_TIMER_H_
