#include "runtime/state/tensor_shapes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"

namespace mgc {

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

absl::Status CheckSameTensors(const TensorShapes& there, const std::string& path,
                              const TensorShapes& wanted, absl::string_view whose) {
  Diagnostics problems;
  const auto add = [&](const auto&... text) {
    problems.Add("", EscapeBytes(path), absl::StrCat(text...));
  };
  for (const auto& [name, shape] : wanted) {
    const auto found = there.find(name);
    if (found == there.end()) {
      add("has no tensor ", EscapeBytes(name), ", which ", whose, " has");
    } else if (found->second != shape) {
      add("tensor ", EscapeBytes(name), " has shape ", ShapeText(found->second), ", ", whose, "'s ",
          ShapeText(shape));
    }
  }
  for (const auto& [name, shape] : there) {
    if (wanted.count(name) == 0) add("tensor ", EscapeBytes(name), " is none of ", whose, "'s");
  }
  return problems.ToStatus(absl::StatusCode::kFailedPrecondition);
}

}  // namespace mgc
