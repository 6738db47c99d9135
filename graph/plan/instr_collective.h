// What an instruction of a plan exchanges between ranks: the collective of the graph it came from,
// with what only a plan has, several parts at once and a group that joins two stages. Said by the
// instruction's op, slots and attribute `group`, which nobody else reads.

#ifndef MGC_GRAPH_PLAN_INSTR_COLLECTIVE_H_
#define MGC_GRAPH_PLAN_INSTR_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "graph/ir/collective.h"
#include "graph/plan/plan.h"

namespace mgc {

struct InstrCollective {
  // By operand: how it becomes its result. Alike in kind and axes: plan_c17.
  std::vector<Collective> parts;
  // Along pp, only the classes of the first and the last stage take part: they hold the copies of a
  // tied weight.
  bool joins_ends = false;
  int64_t ranks = 1;  // in a group
  // On one rank: of each part the larger buffer, at the type in the plan.
  int64_t payload_bytes = 0;
  std::string label;  // what reports call it: `f`, `g`, `gradient`, ...; may be empty

  CollectiveKind kind() const { return parts[0].kind; }
  AxisSet axes() const { return parts[0].axes.AsSet(); }
};

// Of a kStart that has passed graph/plan/plan_check.h.
InstrCollective CollectiveOf(const Mesh& mesh, const Segment& segment, const Instr& instr);

// What operand number `part` of a collective instruction, started or computed, goes through.
// InvalidArgument (local_c3) where operand and result do not differ by one op, as those of a start
// that joins the ends.
absl::StatusOr<Collective> CollectiveOfPart(const Segment& segment, const Instr& instr,
                                            size_t part);

// The group a start names, instead of having it said by its slots' shardings; there is one such
// name (plan_c16).
absl::optional<std::string> GroupNamed(const Instr& instr);
bool JoinsEnds(const Instr& instr);
void SetJoinsEnds(Instr* instr);

// How messages call the group: `tp`, `dp+cp`, `embedding` for the two ends.
std::string GroupName(const InstrCollective& collective, const Mesh& mesh);

// Bytes that one of `ranks` ranks sends when a collective of this payload runs as a ring:
// all-reduce 2 (n - 1) / n of the payload, the others (n - 1) / n, rounded up; 0 for what is local.
int64_t RingWireBytes(CollectiveKind kind, int64_t payload_bytes, int64_t ranks);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_INSTR_COLLECTIVE_H_
