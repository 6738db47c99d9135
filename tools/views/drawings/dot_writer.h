// Writes a drawing in the DOT language: clusters, nodes and edges with quoted attributes.

#ifndef MGC_TOOLS_VIEWS_DRAWINGS_DOT_WRITER_H_
#define MGC_TOOLS_VIEWS_DRAWINGS_DOT_WRITER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace mgc {

// Attributes of a node, an edge or a cluster, in order.
using DotAttrs = std::vector<std::pair<std::string, std::string>>;

// `text` as a quoted DOT string: quotes and backslashes escaped, newlines as `\n`, bytes that are
// no printable ASCII as `?`.
std::string DotQuote(absl::string_view text);

class DotWriter {
 public:
  explicit DotWriter(const DotAttrs& graph_attrs);

  // Clusters nest; `name` gets the prefix that makes Graphviz draw a box.
  void BeginCluster(absl::string_view name, const DotAttrs& attrs);
  void EndCluster();
  // The nodes between them stand side by side.
  void BeginLine();
  void EndLine();
  // `id` also becomes the id of the node's element in an SVG.
  void Node(absl::string_view id, const DotAttrs& attrs);
  // Drawn behind all clusters; so call it at any time.
  void Edge(absl::string_view from, absl::string_view to, const DotAttrs& attrs);

  int nodes() const { return nodes_; }
  int edges() const { return num_edges_; }
  std::string Finish() &&;

 private:
  std::string Indent() const { return std::string(2 * static_cast<size_t>(depth_), ' '); }

  std::string text_;
  std::string edges_;
  int depth_ = 1;
  int nodes_ = 0;
  int num_edges_ = 0;
};

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_DRAWINGS_DOT_WRITER_H_
