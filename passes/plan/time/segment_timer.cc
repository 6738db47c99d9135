#include "passes/plan/time/segment_timer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace mgc {

SegmentTimer::SegmentTimer(const CostModel& model, const std::vector<Segment>& segments)
    : model_(model), segments_(&segments) {
  const AxisId pipeline = PipelineAxis(model.mesh);
  const int64_t classes = pipeline < 0 ? 1 : model.mesh.size(pipeline);
  std::vector<int64_t> known;
  for (int64_t c = 0; c < classes; ++c) {
    const int64_t place = PlaceOfClass(model, static_cast<int>(c));
    const auto found = std::find(known.begin(), known.end(), place);
    places_.push_back(static_cast<size_t>(found - known.begin()));
    if (found == known.end()) known.push_back(place);
  }
  steps_.assign(known.size(), std::vector<Timed>(segments.size()));
}

SegmentTimer::SegmentTimer(const CostModel& model, TimedSegments known)
    : model_(model), segments_(nullptr), steps_(1) {
  const AxisId pipeline = PipelineAxis(model.mesh);
  places_.assign(pipeline < 0 ? 1 : static_cast<size_t>(model.mesh.size(pipeline)), 0);
  for (std::vector<TimedStep>& steps : known) steps_[0].push_back({true, std::move(steps)});
}

const std::vector<TimedStep>& SegmentTimer::Of(int segment, int coordinate) {
  const auto number = static_cast<size_t>(segment);
  Timed& timed = steps_[places_[static_cast<size_t>(coordinate)]][number];
  if (!timed.made) timed = {true, TimeSegment(model_, (*segments_)[number], coordinate)};
  return timed.steps;
}

}  // namespace mgc
