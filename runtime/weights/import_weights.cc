#include "runtime/weights/import_weights.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"
#include "graph/types/layer_names.h"
#include "graph/types/tile_runs.h"
#include "graph/weights/adapters.h"
#include "runtime/state/parameters.h"
#include "runtime/state/tensor_shapes.h"
#include "runtime/weights/strided.h"
#include "runtime/weights/weight_types.h"

namespace mgc {
namespace {

// What ranks here hold of a tensor: ascending, disjoint, no two side by side.
std::vector<ElementRange> ElementsHere(const Executor& executor, const HeldTensor& tensor) {
  const Mesh& mesh = executor.plan().mesh;
  std::vector<ElementRange> runs;
  for (int64_t rank = executor.local().begin; rank < executor.local().end; ++rank) {
    if (ClassOfRank(mesh, rank) != tensor.rank_class) continue;
    ForEachRun(*tensor.type, *tensor.sharding, mesh, rank,
               [&](int64_t, int64_t whole, int64_t count) {
                 runs.push_back({whole, whole + count});
               });
  }
  std::sort(runs.begin(), runs.end(),
            [](const ElementRange& a, const ElementRange& b) { return a.begin < b.begin; });
  std::vector<ElementRange> joined;
  for (const ElementRange& run : runs) {
    if (!joined.empty() && run.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, run.end);
    } else {
      joined.push_back(run);
    }
  }
  return joined;
}

// Reads what FillRunsHere asks for: of a quantized tensor all of it first.
class TensorReader {
 public:
  TensorReader(const PlacedPart& from, const Executor& executor, const HeldTensor& tensor)
      : from_(from), here_(ElementsHere(executor, tensor)) {
    if (tensor.scales.has_value()) {
      reader_.emplace(from, std::vector<ElementRange>{{0, NumElements(SizesOf(*tensor.type))}});
    } else {
      reader_.emplace(from, here_);
    }
  }

  absl::Status Read(int64_t begin, absl::Span<float> values) {
    if (begin < last_) {
      before_ += reader_->bytes_read();
      reader_.emplace(from_, here_);
    }
    last_ = begin;
    return reader_->Read(begin, values);
  }

  int64_t bytes_read() const { return before_ + reader_->bytes_read(); }

 private:
  const PlacedPart& from_;
  const std::vector<ElementRange> here_;
  absl::optional<StridedReader> reader_;
  int64_t last_ = 0;
  int64_t before_ = 0;  // of readers before this one
};

absl::StatusOr<int64_t> FillHere(const ModelFiles& files, Executor& executor) {
  std::map<std::string, const PlacedPart*> parts;
  for (const PlacedPart& part : files.parts()) parts[part.part->parameter] = &part;
  MGC_ASSIGN_OR_RETURN(const std::vector<HeldTensor> held,
                       HeldTensors(executor.plan(), TensorRole::kParam, Holders::kAll));
  int64_t bytes = 0;
  for (const HeldTensor& tensor : held) {
    const auto part = parts.find(tensor.name);
    if (part == parts.end()) continue;  // an adapter's, which has its first values
    TensorReader reader(*part->second, executor, tensor);
    const auto fill = [&](int64_t whole, absl::Span<float> values, bool) -> absl::Status {
      MGC_RETURN_IF_ERROR(reader.Read(whole, values));
      return CheckFinite(values, "has values that are not finite");
    };
    MGC_RETURN_IF_ERROR(
        Annotate(FillRunsHere(tensor, executor, fill),
                 absl::StrCat(EscapeBytes(files.dir()), ": parameter ", tensor.name)));
    bytes += reader.bytes_read();
    executor.team().ComesOn();
  }
  return bytes;
}

std::set<std::string> TrainedAdapters(const Plan& plan) {
  std::set<std::string> names;
  for (const PlanClass& plan_class : plan.classes) {
    for (const HeldBlock& held : plan_class.blocks) {
      for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(held.block)].entries) {
        if (!IsOfAdapter(entry.init) || !IsTrained(entry.init)) continue;
        names.insert(NameForLayer(entry.name, held.layer));
      }
    }
  }
  return names;
}

}  // namespace

absl::Status CheckSameParameters(const ModelFiles& files, const Plan& plan) {
  TensorShapes there, wanted;
  for (const PlacedPart& part : files.parts()) there[part.part->parameter] = part.part->shape;
  MGC_ASSIGN_OR_RETURN(const std::vector<HeldTensor> held, HeldTensors(plan, TensorRole::kParam));
  const std::set<std::string> new_adapters = TrainedAdapters(plan);
  for (const HeldTensor& tensor : held) {
    if (there.count(tensor.name) == 0 && new_adapters.count(tensor.name) != 0) continue;
    wanted[tensor.name] = SizesOf(*tensor.type);
  }
  return CheckSameTensors(there, files.dir(), wanted, "the plan");
}

absl::StatusOr<int64_t> ImportWeights(const ModelFiles& files, Executor& executor) {
  // All processes alike.
  MGC_RETURN_IF_ERROR(CheckSameParameters(files, executor.plan()));
  absl::StatusOr<int64_t> bytes = FillHere(files, executor);
  MGC_RETURN_IF_ERROR(executor.team().Agree(bytes.status()));
  return bytes;
}

}  // namespace mgc
