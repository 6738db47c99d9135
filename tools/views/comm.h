// What a plan communicates: one entry for each stage, phase, layer and kind of collective.

#ifndef MGC_TOOLS_VIEWS_COMM_H_
#define MGC_TOOLS_VIEWS_COMM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "graph/plan/plan.h"

namespace mgc {

// Counts are per rank; those of forward and backward per micro-batch, those of the update per step.
struct CommEntry {
  // Of an update: the stage that holds the parameters; the rank's first for loss and norm.
  int stage = 0;
  std::string phase;          // `forward`, `backward` (with what it recomputes) or `update`
  absl::optional<int> layer;  // none outside the layers
  std::string op;             // NameOf(CollectiveKind), `send` or `recv`
  std::string group;          // names of the axes, `tp-dp`
  std::string label;          // `f`, `g`, `gradient`, ...
  int64_t count = 0;
  int64_t payload_bytes = 0;  // of one: the larger of its two buffers
  int64_t wire_bytes = 0;     // of one: what a rank sends in a ring
};

// Whether it is between stages, else a collective.
bool IsTransfer(const CommEntry& entry);

// How often in a step what is counted happens.
int64_t TimesInStep(const Plan& plan, const CommEntry& entry);

// By stage; within a stage forward, backward, update, each in the order of execution. Entries that
// differ in nothing but their place are one, with their count.
std::vector<CommEntry> CommEntries(const Plan& plan);

// {"entries": [{"stage", "phase", "layer", "op", "group", "label", "count", "payload_bytes",
// "wire_bytes"}], "classes": [{"pp", "collective_ns", "exposed_ns", "hideable_ns"}]}; no classes
// where the step never ends.
std::string CommJson(const Plan& plan);

// A table, what a rank of each stage sends in a step, and how long, by prediction, compute waits
// for collectives. Stages and layers that communicate alike are one row, which names them; with
// `all`, every stage has its own rows, in which only neighbouring layers are joined.
std::string CommText(const Plan& plan, bool all = false);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_COMM_H_
