// Where a rank stands in its program, in words: for errors, deadlocks and timelines.

#ifndef MGC_RUNTIME_RUN_WHERE_H_
#define MGC_RUNTIME_RUN_WHERE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "graph/types/mesh.h"
#include "runtime/load/load_plan.h"

namespace mgc {

// `rank 3 (tp 1, dp 0)`; `rank 0` on a mesh without axes.
std::string NameOfRank(const Mesh& mesh, int64_t rank);

// What an action of a class' program is called: `3F2`.
std::string NameOfAction(const StepTables& tables, int rank_class, size_t action);

// What an instruction of a call is called: `layer.forward[7] matmul layer 2`.
std::string NameOfInstr(const Segment& segment, int layer, size_t at);

// ` (model.cc:42)` of an instruction that came from there, to be put behind its name; else empty.
std::string SourceText(const Graph& model, const Instr& instr);

// What an item of a class' communication list is called: `3RECV_F2`, `all-reduce tp`.
std::string NameOfItem(const StepTables& tables, int rank_class, const CommItem& item);

// The collective that an item is which is no transfer.
const InstrCollective& CollectiveOf(const StepTables& tables, int rank_class, const CommItem& item);

// `why` with what failed put before it (rank, action, instruction) and the neighbouring
// instructions behind it, an arrow at the one that failed. `why` is an error and keeps its code.
absl::Status FailureOfInstr(const LoadedPlan& plan, int rank, bool eval, size_t action,
                            const LoadedCall& call, size_t at, const absl::Status& why);

// The same for a collective, which fails for all of its group; `rank` is one of its members. Of a
// transfer there is only its name.
absl::Status FailureOfItem(const LoadedPlan& plan, int rank, bool eval, const CommItem& item,
                           const absl::Status& why);

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_WHERE_H_
