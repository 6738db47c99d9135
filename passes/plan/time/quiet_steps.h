// An action's steps as they pass when nothing but the action uses its class' queues.
//
// Between two transfers a class is by itself: what its steps take can be added up once for each
// list of steps, and a simulation need not stop at every one (simulate_step.h). That makes it as
// long as its actions and transfers are many, however many layers an action has.

#ifndef MGC_PASSES_PLAN_TIME_QUIET_STEPS_H_
#define MGC_PASSES_PLAN_TIME_QUIET_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/time/cost.h"

namespace mgc {

class QuietSteps {
 public:
  // Behind a wait, or at an end: all collectives started so far, but those in the background, have
  // been waited for. What it holds is of all steps before, and counts from an arbitrary begin.
  struct Point {
    int step = 0;
    int64_t at_ns = 0;  // when compute comes to the step
    int64_t busy_ns = 0;
    int64_t collectives_ns = 0;
    int collectives = 0;
    size_t until =
        0;  // the last point that is reached before a collective starts in the background
  };

  QuietSteps() = default;
  // Collectives are numbered within `steps`.
  explicit QuietSteps(const std::vector<TimedStep>& steps);

  // The point at a step, or -1.
  int PointAt(int step) const { return points_of_steps_[static_cast<size_t>(step)]; }
  const Point& point(size_t place) const { return points_[place]; }
  // The last point that compute comes to before `ns` (with it, where `with`), counted as at_ns; at
  // least `from`, at most `from`'s `until`.
  size_t LastBefore(size_t from, int64_t ns, bool with) const;
  // Adds what the steps between two points wait for.
  void AddExposed(size_t from, size_t until, ExposedTime* exposed) const;

 private:
  void AddPoint(const Point& point, const std::vector<int64_t>& exposed);

  std::vector<Point> points_;
  std::vector<int> points_of_steps_;
  std::vector<AxisSet> axes_;     // over which something is waited for
  std::vector<int64_t> exposed_;  // by point and axes
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TIME_QUIET_STEPS_H_
