// How the checks of graph/ir/check.h collect what they find. For graph/ir/check*.cc only.

#ifndef MGC_GRAPH_IR_CHECK_INTERNAL_H_
#define MGC_GRAPH_IR_CHECK_INTERNAL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/file.h"
#include "graph/ir/check.h"
#include "graph/ir/graph.h"

namespace mgc {

// What is found in a graph, with where it stands there and in the source.
class ViolationList {
 public:
  explicit ViolationList(const Graph& graph) : graph_(graph) {}

  void AddAt(const Node& node, absl::string_view label, absl::string_view text) {
    Add(node.loc, node.outputs.empty() ? "node" : NameOfValue(node.outputs[0]), label, text);
  }
  void AddAt(ValueId value, absl::string_view label, absl::string_view text) {
    const NodeId producer = graph_.value(value).producer;
    Add(producer == kNone ? SourceLoc() : graph_.node(producer).loc, NameOfValue(value), label,
        text);
  }

  std::string NameOfValue(ValueId value) const {
    return absl::StrCat("%", EscapeBytes(graph_.value(value).name));
  }

  Diagnostics Take() && { return std::move(list_); }

 private:
  void Add(const SourceLoc& loc, absl::string_view subject, absl::string_view label,
           absl::string_view text) {
    const std::string source = graph_.LocText(loc);
    list_.Add(label, absl::StrCat(source, source.empty() ? "" : ": ", subject), text);
  }

  const Graph& graph_;
  // Of one label as many as of all: a mistake of a pass shows in many nodes.
  Diagnostics list_{Diagnostics::kMost, Diagnostics::kNoLimit};
};

// The parts of the sharded and local checks that look at shardings.
void CheckShardings(const Graph& graph, ViolationList* violations);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_CHECK_INTERNAL_H_
