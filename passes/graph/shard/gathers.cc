#include "passes/graph/shard/gathers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/ir/op.h"
#include "graph/types/layer_names.h"

namespace mgc {

int Gathers::GatheredDim(const TensorType& type, const Sharding& has,
                         const Sharding& wanted) const {
  for (int d = 0; d < type.ndim(); ++d) {
    if (has.dims[d].size() <= wanted.dims[d].size()) continue;
    if (strategy_.TakenGather(type.dims[d].name) != GatherTaken::kSilent) return d;
  }
  return -1;
}

absl::Status Gathers::Take(ValueId operand, const Sharding& has, const Sharding& wanted,
                           const Node& node) {
  const Value& value = source_.value(operand);
  const int dim = GatheredDim(value.type, has, wanted);
  if (dim < 0) return absl::OkStatus();
  const std::string& dim_name = value.type.dims[dim].name;
  const auto text = [&](absl::string_view name) {
    return absl::StrCat(node.op->name, " gathers dim ",
                        dim_name.empty() ? absl::StrCat(dim) : EscapeBytes(dim_name), " of %",
                        EscapeBytes(name), " over ", mesh_.GroupName(has.dims[dim].AsSet()));
  };
  if (strategy_.TakenGather(dim_name) == GatherTaken::kError) {
    return absl::InvalidArgumentError(ToString(
        Diagnostic{"shard_c1", text(value.name),
                   absl::StrCat("rows of a --strategy that cut what it is multiplied with too, "
                                "--strategy classes, or one without `gather ",
                                EscapeBytes(dim_name), " error`")}));
  }
  std::string note = text(FoldName(value.name, node.layer, source_.num_layers()));
  const bool known = std::find(notes_.begin(), notes_.end(), note) != notes_.end();
  if (!known) notes_.push_back(std::move(note));
  return absl::OkStatus();
}

}  // namespace mgc
