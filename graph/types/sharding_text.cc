#include "graph/types/sharding_text.h"

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

void Append(absl::string_view text, std::string* out) {
  absl::StrAppend(out, out->empty() ? "" : "; ", text);
}

void ExplainList(const AxisList& from, const AxisList& to, absl::string_view what, const Mesh& mesh,
                 std::string* out) {
  if (from == to) return;
  Append(
      absl::StrCat(what, " is cut over ", ListText(from, mesh), " instead of ", ListText(to, mesh)),
      out);
  const AxisSet more = from.AsSet() - to.AsSet();
  const AxisSet less = to.AsSet() - from.AsSet();
  if (less.empty() && !more.empty()) {
    absl::StrAppend(out, ": an all_gather over ", mesh.GroupName(more), " is missing");
  }
}

}  // namespace

std::string OwedText(AxisSet sum, AxisSet max, const Mesh& mesh) {
  std::string text;
  if (!sum.empty()) absl::StrAppend(&text, "a sum over ", mesh.GroupName(sum));
  if (!max.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : " and ", "a maximum over ", mesh.GroupName(max));
  }
  return text;
}

std::string PayText(AxisSet sum, AxisSet max, const Mesh& mesh) {
  return absl::StrCat(max.empty() ? "an all_reduce or reduce_scatter over " : "an all_reduce over ",
                      mesh.GroupName(sum | max));
}

std::string ExplainChange(const Sharding& from, const Sharding& to, const Mesh& mesh) {
  std::string text;
  const AxisSet sum = from.sum - to.sum;
  const AxisSet max = from.max - to.max;
  if (!(sum | max).empty()) {
    Append(absl::StrCat(OwedText(sum, max, mesh),
                        " is owed and not paid: ", PayText(sum, max, mesh), " is missing"),
           &text);
  }
  if (!(to.Owed() - from.Owed()).empty()) {
    Append(absl::StrCat("nothing leaves ", OwedText(to.sum - from.sum, to.max - from.max, mesh)),
           &text);
  }
  for (size_t d = 0; d < from.dims.size() && from.dims.size() == to.dims.size(); ++d) {
    ExplainList(from.dims[d], to.dims[d], absl::StrCat("dim ", d), mesh, &text);
  }
  ExplainList(from.storage, to.storage, "the flat tile", mesh, &text);
  return text;
}

}  // namespace mgc
