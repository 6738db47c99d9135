// A collective as it stands in a segment.

#ifndef MGC_TOOLS_VIEWS_INSTR_COLLECTIVE_H_
#define MGC_TOOLS_VIEWS_INSTR_COLLECTIVE_H_

#include <cstdint>
#include <string>

#include "graph/plan/plan.h"

namespace mgc {

struct InstrCollective {
  std::string op;     // `all-reduce`, ...
  std::string group;  // `tp`, ...
  std::string label;  // `f`, `g`, `gradient`, ...; may be empty
  int64_t ranks = 1;  // in a group
  int64_t payload_bytes = 0;
};

// Of a kStart instruction. One with the attribute `group` "embedding" joins the two stages, of
// those along pp, that hold a tied weight. A bucket's payload is the sum over its tensors of the
// larger buffer.
InstrCollective CollectiveOf(const Plan& plan, const Segment& segment, const Instr& instr);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_INSTR_COLLECTIVE_H_
