// A side of several processes of this host, launched as `mgc-run --nproc` launches them.

#ifndef MGC_TOOLS_BENCHMARKS_PROCESS_SIDE_H_
#define MGC_TOOLS_BENCHMARKS_PROCESS_SIDE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "tools/benchmarks/child_side.h"
#include "tools/benchmarks/comparison.h"
#include "tools/launch/world.h"

namespace mgc {

// Every process does its own part of each step, as a side of its own; the slowest counts.
class ProcessSide : public BenchSide {
 public:
  using MakePart = std::function<absl::StatusOr<std::unique_ptr<BenchSide>>(World& world)>;

  // As many processes as the plan has ranks, each with what `make` gives it. They are forked from
  // this one: sides with threads are better made later. Unavailable where a process cannot begin.
  static absl::StatusOr<std::unique_ptr<BenchSide>> Create(const std::string& name,
                                                           const Plan& plan, const MakePart& make);

  ~ProcessSide() override;

  absl::StatusOr<StepTime> Step() override;
  // Of memory, what a rank has at most.
  Profile profile() const override;

 private:
  ProcessSide() = default;

  std::vector<std::unique_ptr<ChildSide>> parts_;  // the last one waits for the launcher
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_PROCESS_SIDE_H_
