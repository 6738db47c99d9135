// Steps that StepSimulator passes at one go.

#include <algorithm>

#include "passes/plan/time/simulate_step.h"

namespace mgc {
namespace {

// Fewer are taken one by one.
constexpr int kLeastSteps = 4;

}  // namespace

const QuietSteps& StepSimulator::QuietOf(int c) const {
  return states_[c].quiet_steps[ListOfSteps(c, RefOf(c))];
}

// Where nothing uses the queues of a class, and nothing can ask for them but by an interruption.
bool StepSimulator::BeginQuiet(int c, int64_t now) {
  ClassState& state = states_[c];
  if (keep_spans_ || !IsOfMicroBatch(RefOf(c).kind)) return false;
  if (state.background > 0 || !state.collectives.empty() || state.queue_free > now) return false;
  const QuietSteps& quiet = QuietOf(c);
  const int from = quiet.PointAt(state.step);
  if (from < 0) return false;
  const QuietSteps::Point& begin = quiet.point(static_cast<size_t>(from));
  const QuietSteps::Point& end = quiet.point(begin.until);
  if (end.step - begin.step < kLeastSteps) return false;
  if (IsAsked(state)) return false;
  state.quiet = QuietRun{static_cast<size_t>(from), now};
  state.running = true;
  Push(now + end.at_ns - begin.at_ns, Event::kQuietDone, c, ++state.quiet_runs, state.action);
  return true;
}

// Ends a quiet run at a point.
void StepSimulator::PassQuiet(int c, size_t until) {
  ClassState& state = states_[c];
  const QuietSteps& quiet = QuietOf(c);
  const QuietSteps::Point& begin = quiet.point(state.quiet->from);
  const QuietSteps::Point& end = quiet.point(until);
  CollectiveTime& collectives = result_.collectives[static_cast<size_t>(c)];
  quiet.AddExposed(state.quiet->from, until, &collectives.exposed);
  collectives.all_ns = Later(collectives.all_ns, end.collectives_ns - begin.collectives_ns);
  state.busy += end.busy_ns - begin.busy_ns;
  if (end.collectives > begin.collectives) {
    if (state.placed_action != state.action) state.placed = 0;
    state.placed_action = state.action;
    state.placed += end.collectives - begin.collectives;
  }
  state.step = end.step;
  state.running = false;
  state.quiet.reset();
}

// Brings a class to where single steps would have brought it by now.
void StepSimulator::Interrupt(int c, int64_t now) {
  if (!states_[c].quiet.has_value()) return;
  const QuietSteps& quiet = QuietOf(c);
  const QuietRun run = *states_[c].quiet;
  const int64_t began = run.began - quiet.point(run.from).at_ns;
  const size_t last = quiet.LastBefore(run.from, now - began, IsPast(c, now, now));
  const int end = quiet.point(quiet.point(run.from).until).step;
  PassQuiet(c, last);
  Replay(c, began + quiet.point(last).at_ns, end, now);
}

// Takes the steps before `end` that are past, from a time at which both queues are idle.
void StepSimulator::Replay(int c, int64_t at, int end, int64_t now) {
  ClassState& state = states_[c];
  const std::vector<TimedStep>& steps = StepsOf(c, RefOf(c));
  Replayed replayed{at, at, {}};
  for (; state.step < end; ++state.step) {
    const TimedStep& step = steps[static_cast<size_t>(state.step)];
    if (step.kind == TimedStep::kStart) ReplayStart(c, step, now, &replayed);
    if (step.kind == TimedStep::kWait && !ReplayWait(c, step, now, &replayed)) return;
    if (step.kind == TimedStep::kRun && !ReplayRun(c, step, now, &replayed)) return;
  }
  state.running = true;
  Push(now, Event::kCompute, c, 0, 0);
}

void StepSimulator::ReplayStart(int c, const TimedStep& step, int64_t now, Replayed* replayed) {
  ClassState& state = states_[c];
  const int64_t begin = std::max(replayed->at, replayed->queue_free);
  replayed->queue_free = begin + step.ns;
  replayed->ends.emplace_back(step.collective, replayed->queue_free);
  if (begin > replayed->at && !IsPast(c, begin, now)) {
    state.collectives.push_back(
        {state.action, step.collective, replayed->at, step.ns, false, false, step.axes});
    return;
  }
  PlaceCollective(c, state.action, step.ns);
  state.queue_free = replayed->queue_free;
  if (IsPast(c, replayed->queue_free, now)) {
    state.done[step.collective] = state.action;
  } else {
    Push(replayed->queue_free, Event::kCollectiveDone, c, step.collective, state.action);
  }
}

// False where it runs still; it is behind the class then.
bool StepSimulator::ReplayRun(int c, const TimedStep& step, int64_t now, Replayed* replayed) {
  ClassState& state = states_[c];
  state.busy += step.ns;
  state.run_end = replayed->at + step.ns;
  if (IsPast(c, state.run_end, now)) {
    replayed->at = state.run_end;
    return true;
  }
  ++state.step;
  state.running = true;
  Push(state.run_end, Event::kCompute, c, 0, 0);
  return false;
}

// False where it waits still.
bool StepSimulator::ReplayWait(int c, const TimedStep& step, int64_t now, Replayed* replayed) {
  const auto place = std::find_if(replayed->ends.begin(), replayed->ends.end(),
                                  [&](const auto& end) { return end.first == step.collective; });
  const int64_t done = place->second;
  if (!IsPast(c, done, now)) {
    states_[c].blocked_from = replayed->at;
    return false;
  }
  if (done > replayed->at) {
    int64_t& exposed = result_.collectives[static_cast<size_t>(c)].exposed[step.axes];
    exposed = Later(exposed, done - replayed->at);
    replayed->at = done;
  }
  return true;
}

}  // namespace mgc
