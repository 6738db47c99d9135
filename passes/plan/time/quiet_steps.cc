#include "passes/plan/time/quiet_steps.h"

#include <algorithm>

namespace mgc {
namespace {

// The axes of all waits, each once.
std::vector<AxisSet> AxesOf(const std::vector<TimedStep>& steps) {
  std::vector<AxisSet> axes;
  for (const TimedStep& step : steps) {
    const bool known = std::find(axes.begin(), axes.end(), step.axes) != axes.end();
    if (step.kind == TimedStep::kWait && !known) axes.push_back(step.axes);
  }
  return axes;
}

size_t PlaceOf(const std::vector<AxisSet>& axes, AxisSet of) {
  return static_cast<size_t>(std::find(axes.begin(), axes.end(), of) - axes.begin());
}

}  // namespace

QuietSteps::QuietSteps(const std::vector<TimedStep>& steps)
    : points_of_steps_(steps.size() + 1, -1), axes_(AxesOf(steps)) {
  std::vector<int64_t> ends(steps.size());  // of collectives
  std::vector<int64_t> exposed(axes_.size());
  std::vector<size_t> barriers;  // points before a start in the background
  Point now;
  int64_t queue_free = 0;
  int open = 0;  // started and not waited for
  AddPoint(now, exposed);
  for (const TimedStep& step : steps) {
    const auto collective = static_cast<size_t>(step.collective);
    if (step.kind == TimedStep::kRun) {
      now.at_ns = Later(now.at_ns, step.ns);
      now.busy_ns = Later(now.busy_ns, step.ns);
    } else if (step.kind == TimedStep::kStart && step.background) {
      barriers.push_back(points_.size() - 1);
    } else if (step.kind == TimedStep::kStart) {
      queue_free = Later(std::max(queue_free, now.at_ns), step.ns);
      ends[collective] = queue_free;
      now.collectives_ns = Later(now.collectives_ns, step.ns);
      ++now.collectives;
      ++open;
    } else if (step.kind == TimedStep::kWait) {
      const int64_t waited = std::max<int64_t>(ends[collective] - now.at_ns, 0);
      exposed[PlaceOf(axes_, step.axes)] += waited;
      now.at_ns += waited;
      --open;
    }
    ++now.step;
    if (open == 0) AddPoint(now, exposed);
  }
  // Times that have run into their limit are no longer their differences.
  const bool counts = std::max(now.at_ns, now.collectives_ns) < kMaxNs;
  barriers.push_back(points_.size() - 1);
  for (size_t p = points_.size(), b = barriers.size() - 1; p-- > 0;) {
    while (b > 0 && barriers[b - 1] >= p) --b;
    points_[p].until = counts ? barriers[b] : p;
  }
}

void QuietSteps::AddPoint(const Point& point, const std::vector<int64_t>& exposed) {
  points_of_steps_[static_cast<size_t>(point.step)] = static_cast<int>(points_.size());
  points_.push_back(point);
  exposed_.insert(exposed_.end(), exposed.begin(), exposed.end());
}

size_t QuietSteps::LastBefore(size_t from, int64_t ns, bool with) const {
  const auto begin = points_.begin() + static_cast<std::ptrdiff_t>(from) + 1;
  const auto end = points_.begin() + static_cast<std::ptrdiff_t>(points_[from].until) + 1;
  const auto behind = std::partition_point(begin, end, [&](const Point& point) {
    return point.at_ns < ns || (with && point.at_ns == ns);
  });
  return static_cast<size_t>(behind - points_.begin()) - 1;
}

void QuietSteps::AddExposed(size_t from, size_t until, ExposedTime* exposed) const {
  for (size_t a = 0; a < axes_.size(); ++a) {
    const int64_t ns = exposed_[until * axes_.size() + a] - exposed_[from * axes_.size() + a];
    if (ns == 0) continue;
    int64_t& all = (*exposed)[axes_[a]];
    all = Later(all, ns);
  }
}

}  // namespace mgc
