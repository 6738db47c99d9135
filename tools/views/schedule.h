// The order of a step's actions on every pipeline rank, in PyTorch's pipeline action words.

#ifndef MGC_TOOLS_VIEWS_SCHEDULE_H_
#define MGC_TOOLS_VIEWS_SCHEDULE_H_

#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "passes/plan/schedule.h"
#include "tools/views/repeats.h"

namespace mgc {

// The words of one rank, in order.
using ScheduleRows = std::vector<std::vector<std::string>>;

ScheduleRows RowsOf(const PipelineSchedule& schedule);

// The training step of a plan, transfers where they may start: `0RECV_F1` before the action that
// waits for it, `0SEND_F1` behind the one that makes it. `U` is the step's update.
ScheduleRows RowsOf(const Plan& plan);

// One line per rank, words separated by commas.
std::string ScheduleCsv(const ScheduleRows& rows);

// {"ranks": [["0F0", ...], ...]}
std::string ScheduleJson(const ScheduleRows& rows);

// The training step of a class, as the rows above.
std::vector<ScheduleEntry> ScheduleEntriesOf(const PlanClass& plan_class);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_SCHEDULE_H_
