// The order of a step's actions on every pipeline rank, in PyTorch's pipeline action words.

#ifndef MGC_TOOLS_VIEWS_SCHEDULE_H_
#define MGC_TOOLS_VIEWS_SCHEDULE_H_

#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "passes/plan/schedule.h"
#include "tools/views/repeats.h"

namespace mgc {

// For each rank its words, in order.
using ScheduleRows = std::vector<std::vector<ScheduleEntry>>;

ScheduleRows RowsOf(const PipelineSchedule& schedule);

// The training step of a plan, transfers where they may start: `0RECV_F1` before the action that
// waits for it, `0SEND_F1` behind the one that makes it. `U` is the step's update.
ScheduleRows RowsOf(const Plan& plan);

// One line per rank, words separated by commas.
std::string ScheduleCsv(const ScheduleRows& rows);

// The same, and where a line would have more than 100 characters and not `all` is asked for, with
// loops (tools/views/repeats.h) and ranks that follow a rule on one line (tools/views/series.h):
// `pp 1-6 (p = pp): {7-p} x ({p}F0) +1 ...`.
std::string ScheduleText(const ScheduleRows& rows, bool all);

// The rows with loops, a line for each rank or for several that follow a rule.
std::string FoldedSchedule(const ScheduleRows& rows);

// {"ranks": [["0F0", ...], ...]}
std::string ScheduleJson(const ScheduleRows& rows);

// The training step of a class, as the rows above; and without its transfers.
std::vector<ScheduleEntry> ScheduleEntriesOf(const PlanClass& plan_class);
std::vector<ScheduleEntry> ComputedEntriesOf(const PlanClass& plan_class);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_SCHEDULE_H_
