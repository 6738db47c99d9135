// What an instruction of a plan exchanges between ranks: the collective of the graph it came from,
// with what only a plan has, several parts at once and groups that join some classes of a pipeline.
// Said by the instruction's op, slots and attributes `group` and `classes`, which nobody else
// reads:
//
//   (none)              over the axes by which the slots' shardings differ
//   group="embedding"   along pp, between the classes of the first and the last stage
//   classes=[0,2,3]     along pp, between these classes

#ifndef MGC_GRAPH_PLAN_INSTR_COLLECTIVE_H_
#define MGC_GRAPH_PLAN_INSTR_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/collective.h"
#include "graph/plan/plan.h"

namespace mgc {

struct InstrCollective {
  // By operand: how it becomes its result. Alike in kind and axes: plan_c17.
  std::vector<Collective> parts;
  // Along pp, only these classes take part, ascending: they hold the copies of a tied weight.
  // Empty: the shardings say who does.
  std::vector<int> classes;
  int64_t ranks = 1;  // in a group
  // How messages call the group: `tp`, `dp-cp`, `embedding` for the two ends, `pp:0,2,3`.
  std::string group;
  // On one rank: of each part the larger buffer, at the type in the plan.
  int64_t payload_bytes = 0;
  std::string label;  // what reports call it: `f`, `g`, `gradient`, ...; may be empty

  CollectiveKind kind() const { return parts[0].kind; }
  AxisSet axes() const { return parts[0].axes.AsSet(); }
};

// Of a kStart that has passed graph/plan/plan_check.h; `stages` of the plan, made or in the making.
InstrCollective CollectiveOf(const Mesh& mesh, const std::vector<StagePlace>& stages,
                             const Segment& segment, const Instr& instr);

// `all-reduce tp`: what messages and timelines call it.
std::string NameOf(const InstrCollective& collective);

// By collective of a segment: whether it is waited for there; of others a later call waits. The
// segment has passed graph/plan/plan_check.h.
std::vector<bool> WaitedFor(const Segment& segment);

// What operand number `part` of a collective instruction, started or computed, goes through.
// InvalidArgument (local_c3) where operand and result do not differ by one op, as those of a start
// that joins classes.
absl::StatusOr<Collective> CollectiveOfPart(const Segment& segment, const Instr& instr,
                                            size_t part);

// The classes of the first and the last stage, ascending: one where a V brings both to it.
std::vector<int> EndClasses(const std::vector<StagePlace>& stages);

// Whether a start names a group, instead of having it said by its slots' shardings.
bool JoinsClasses(const Instr& instr);
// The classes of that group, ascending. InvalidArgument, for plan_c16, where it names none: a word
// other than `embedding`, less than two classes, not ascending, one that does not exist, or both.
absl::StatusOr<std::vector<int>> JoinedClasses(const Mesh& mesh,
                                               const std::vector<StagePlace>& stages,
                                               const Instr& instr);
// `classes`: two or more, ascending; those of the ends go by their name.
void SetJoinedClasses(const std::vector<int>& classes, const std::vector<StagePlace>& stages,
                      Instr* instr);
void SetJoinsEnds(Instr* instr);

// How often each piece of a collective goes around a ring: twice where it is summed, then handed
// out; 0 for what is local.
int64_t RingRounds(CollectiveKind kind);

// Bytes that one of `ranks` ranks sends when a collective of this payload runs as a ring:
// all-reduce 2 (n - 1) / n of the payload, the others (n - 1) / n, rounded up; 0 for what is local.
int64_t RingWireBytes(CollectiveKind kind, int64_t payload_bytes, int64_t ranks);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_INSTR_COLLECTIVE_H_
