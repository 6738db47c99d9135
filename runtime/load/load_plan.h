// A plan made ready to run by the ranks of one process: all of them, or some.
//
// Every decision is the plan's. Loading checks it as its readers do (graph/plan/plan_check.h), then
// only resolves: names to places (which transfer an action waits for, which kernel an instruction
// runs), collectives and transfers to the one order of communication of each class.

#ifndef MGC_RUNTIME_LOAD_LOAD_PLAN_H_
#define MGC_RUNTIME_LOAD_LOAD_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/plan/data_input.h"
#include "graph/plan/plan.h"
#include "graph/plan/step_tables.h"
#include "kernels/kernel.h"
#include "runtime/load/kernel_table.h"
#include "runtime/load/load_segment.h"
#include "runtime/load/rank_range.h"

namespace mgc {

struct LoadedCall {
  const LoadedSegment* segment = nullptr;
  const Call* call = nullptr;
  // [place among the class' ranks here][kernel of the segment]
  std::vector<const Kernel*> kernels;

  const Kernel* kernel(int place, int kernel) const {
    const int64_t row = int64_t{place} * segment->num_kernels;
    return kernels[static_cast<size_t>(row + kernel)];
  }
};

// One entry of a rank's order of communication: a transfer, or a collective of a call.
struct CommItem {
  int transfer = -1;
  int action = -1;
  int call = -1;
  int exchange = -1;
  int64_t ordinal = -1;  // of the collective within the step
  int group = -1;        // index into LoadedPlan::groups
  int signature = -1;    // as StepStart's: collectives match when these are equal
};

struct LoadedProgram {
  const StepClass* steps = nullptr;                   // what has been proved: actions, transfers
  std::vector<const std::vector<LoadedCall>*> calls;  // of each action
  std::vector<CommItem> comm;
};

// Its lists as ListsOf has them.
using LoadedChunk = std::array<std::vector<LoadedCall>, kNumChunkLists>;

struct LoadedClass {
  const PlanClass* plan_class = nullptr;
  std::vector<int> ranks;
  std::vector<int> local;  // those in this process; where there are none, what follows is empty
  std::vector<LoadedChunk> chunks;
  std::vector<LoadedChunk> eval_chunks;
  std::vector<LoadedCall> update;
  std::vector<LoadedCall> eval_update;
  LoadedProgram train;
  LoadedProgram eval;
};

struct RankPlace {
  int rank_class = 0;
  int index = 0;  // among the ranks of its class
};

struct LoadedPlan {
  // `p` has passed graph/plan/plan_check.h.
  LoadedPlan(const Plan& p, const KernelList& list, uint64_t seed, int width, RankRange here)
      : plan(p),
        local(here),
        train(p, false),
        eval(p, true),
        inputs(DataInputsWithEntries(p)),
        kernels(list, p.mesh, seed, width) {}
  LoadedPlan(const LoadedPlan&) = delete;
  LoadedPlan& operator=(const LoadedPlan&) = delete;

  // The members of a local rank's group, ascending.
  const std::vector<int>& GroupOf(int group, int64_t rank) const {
    return groups[static_cast<size_t>(group)][static_cast<size_t>(rank - local.begin)];
  }

  const StepTables& tables(bool of_eval) const { return of_eval ? eval : train; }
  // Of a local rank.
  const LoadedProgram& program(int64_t rank, bool of_eval) const {
    const LoadedClass& rank_class =
        classes[static_cast<size_t>(ranks[static_cast<size_t>(rank)].rank_class)];
    return of_eval ? rank_class.eval : rank_class.train;
  }

  const Plan& plan;
  const RankRange local;
  int number = 0;  // among the plans whose steps one process runs
  const StepTables train;
  const StepTables eval;
  const std::vector<DataInput> inputs;  // what its loads take
  KernelTable kernels;
  std::vector<LoadedSegment> segments;
  std::vector<LoadedClass> classes;
  std::vector<RankPlace> ranks;  // all of the plan's
  // The groups of one set of axes: [set][local rank] gives the members, ascending.
  std::vector<std::vector<std::vector<int>>> groups;
  // Where sets are there, by the bits of their axes, and the classes they join if not all.
  std::map<std::pair<uint32_t, std::vector<int>>, int> group_numbers;
  size_t most_formals = 0;
  size_t most_operands = 0;
};

// For the ranks `local`, at least one. `plan` must outlive the result; `seed` keys what is random
// in kernels, on each of which up to `width` threads work. InvalidArgument with all that
// graph/plan/plan_check.h finds, Unimplemented with all kernels that are missing or ask for more
// scratch than their ops allow.
//
// `before` is null, or has been loaded for the same ranks of the same mesh, so that one process
// runs steps of both: its groups are among those of the result, in the same places.
absl::StatusOr<std::unique_ptr<LoadedPlan>> LoadPlan(const Plan& plan, const KernelList& kernels,
                                                     uint64_t seed, int width, RankRange local,
                                                     const LoadedPlan* before = nullptr);

}  // namespace mgc

#endif  // MGC_RUNTIME_LOAD_LOAD_PLAN_H_
