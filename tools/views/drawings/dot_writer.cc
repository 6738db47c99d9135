#include "tools/views/drawings/dot_writer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

std::string AttrsText(const DotAttrs& attrs) {
  std::string text;
  for (const auto& [name, value] : attrs) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, "=", DotQuote(value));
  }
  return text;
}

}  // namespace

std::string DotQuote(absl::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      quoted.push_back('\\');
      quoted.push_back(c);
    } else if (c == '\n') {
      quoted.append("\\n");
    } else {
      quoted.push_back(absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?');
    }
  }
  return quoted + "\"";
}

DotWriter::DotWriter(const DotAttrs& graph_attrs) {
  text_ = absl::StrCat("digraph plan {\n  graph [", AttrsText(graph_attrs), "];\n");
}

void DotWriter::BeginCluster(absl::string_view name, const DotAttrs& attrs) {
  absl::StrAppend(&text_, Indent(), "subgraph ", DotQuote(absl::StrCat("cluster_", name)), " {\n");
  ++depth_;
  absl::StrAppend(&text_, Indent(), "graph [", AttrsText(attrs), "];\n");
}

void DotWriter::EndCluster() {
  --depth_;
  absl::StrAppend(&text_, Indent(), "}\n");
}

void DotWriter::BeginLine() {
  absl::StrAppend(&text_, Indent(), "{\n");
  ++depth_;
  absl::StrAppend(&text_, Indent(), "rank=\"same\";\n");
}

void DotWriter::EndLine() { EndCluster(); }

void DotWriter::Node(absl::string_view id, const DotAttrs& attrs) {
  ++nodes_;
  absl::StrAppend(&text_, Indent(), DotQuote(id), " [id=", DotQuote(id), ", ", AttrsText(attrs),
                  "];\n");
}

void DotWriter::Edge(absl::string_view from, absl::string_view to, const DotAttrs& attrs) {
  ++num_edges_;
  absl::StrAppend(&edges_, "  ", DotQuote(from), " -> ", DotQuote(to), " [", AttrsText(attrs),
                  "];\n");
}

std::string DotWriter::Finish() && { return absl::StrCat(text_, edges_, "}\n"); }

}  // namespace mgc
