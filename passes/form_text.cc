#include "passes/form_text.h"

#include <variant>

#include "graph/text/plan_text.h"
#include "graph/text/printer.h"

namespace mgc {
namespace {

struct Printer {
  std::string operator()(const StepGraphs& graphs) const { return PrintGraph(graphs.train); }
  std::string operator()(const StagedPlan& staged) const { return PrintPlan(staged.plan); }
  std::string operator()(const ScheduledPlan& scheduled) const {
    return PrintPlan(scheduled.staged.plan) + ScheduleCsv(scheduled.schedule);
  }
  std::string operator()(const OrderedPlan& ordered) const { return PrintPlan(ordered.plan); }
  std::string operator()(const Plan& plan) const { return PrintPlan(plan); }
};

}  // namespace

std::string PrintForm(const PassForm& form) { return std::visit(Printer(), form); }

}  // namespace mgc
