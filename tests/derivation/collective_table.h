// The collectives of a local graph in a form that tests compare whole: kind, group, bytes.

#ifndef MGC_TESTS_DERIVATION_COLLECTIVE_TABLE_H_
#define MGC_TESTS_DERIVATION_COLLECTIVE_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"

namespace mgc {

// One collective that moves data.
struct CollectiveEntry {
  std::string name;  // of its result
  std::string kind;  // `all-reduce`, ...
  std::string group;
  std::string label;
  int64_t bytes = 0;  // of the larger buffer on one rank
};

// Those of a phase, in program order; of `layer` unless the phase is the update.
std::vector<CollectiveEntry> CollectivesOf(const Graph& local, Phase phase, int layer);
// Those of forward and backward in all layers.
std::vector<CollectiveEntry> CollectivesOfPasses(const Graph& local);

// `all-reduce tp 2048` -> how many. Compared as a whole, so that nothing may come out beside it.
using CollectiveTable = std::map<std::string, int>;
std::string RowOf(absl::string_view kind, absl::string_view group, int64_t bytes);
CollectiveTable TableOf(const std::vector<CollectiveEntry>& entries);

// `all-reduce tp` -> how many, bytes aside.
CollectiveTable KindsOf(const std::vector<CollectiveEntry>& entries);

}  // namespace mgc

#endif  // MGC_TESTS_DERIVATION_COLLECTIVE_TABLE_H_
