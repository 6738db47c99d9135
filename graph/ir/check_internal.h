// How the checks of graph/ir/check.h collect what they find. For graph/check*.cc only.

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

class ViolationList {
 public:
  explicit ViolationList(const Graph& graph) : graph_(graph) {}

  void AddAt(const Node& node, absl::string_view label, std::string text) {
    const std::string subject = node.outputs.empty() ? "node" : NameOfValue(node.outputs[0]);
    list_.push_back({std::string(label), subject, std::move(text), graph_.LocText(node.loc)});
  }
  void AddAt(ValueId value, absl::string_view label, std::string text) {
    const NodeId producer = graph_.value(value).producer;
    const std::string place = producer == kNone ? "" : graph_.LocText(graph_.node(producer).loc);
    list_.push_back({std::string(label), NameOfValue(value), std::move(text), place});
  }

  std::string NameOfValue(ValueId value) const {
    return absl::StrCat("%", EscapeBytes(graph_.value(value).name));
  }

  std::vector<GraphViolation> Take() && { return std::move(list_); }

 private:
  const Graph& graph_;
  std::vector<GraphViolation> list_;
};

// The parts of the sharded and local checks that look at shardings.
void CheckShardings(const Graph& graph, ViolationList* violations);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_CHECK_INTERNAL_H_
