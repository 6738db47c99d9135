#include "runtime/load/kernel_table.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "runtime/load/local_move.h"

namespace mgc {
namespace {

std::vector<const TensorType*> Pointers(const std::vector<TensorType>& types) {
  std::vector<const TensorType*> pointers;
  pointers.reserve(types.size());
  for (const TensorType& type : types) pointers.push_back(&type);
  return pointers;
}

std::vector<const Sharding*> ShardingsOf(const Segment& segment, const std::vector<int>& slots) {
  std::vector<const Sharding*> shardings;
  shardings.reserve(slots.size());
  for (int slot : slots) shardings.push_back(&segment.slots[static_cast<size_t>(slot)].sharding);
  return shardings;
}

// Whether a tensor's tile has the sizes its factors have on a rank.
bool Fits(const TensorFactors& factors, const std::vector<int64_t>& shape, const FactorRule& rule,
          const std::vector<AxisList>& axes, const Mesh& mesh) {
  for (size_t d = 0; d < factors.size(); ++d) {
    int64_t size = 1;
    for (int f : factors[d]) {
      const Factor& factor = rule.factors[f];
      size *= LocalSize({factor.size, "", factor.multiple}, axes[f], mesh);
    }
    if (size != shape[d]) return false;
  }
  return true;
}

// A kernel trusts the tiles' sizes, so they are checked here: by the rule, and of tiles stored in
// pieces (elementwise) that all have one size.
absl::Status CheckTiles(const Segment& segment, const Instr& instr, const KernelSpec& spec,
                        const std::vector<AxisList>& axes, const Mesh& mesh) {
  int64_t flat = -1;
  const auto check = [&](int slot, const std::vector<int64_t>& shape,
                         const TensorFactors& factors) {
    const Sharding& sharding = segment.slots[static_cast<size_t>(slot)].sharding;
    if (sharding.storage.empty()) return Fits(factors, shape, spec.rule, axes, mesh);
    if (flat < 0) flat = shape[0];
    return flat == shape[0];
  };
  bool fits = true;
  bool whole = false;  // a tensor with dims that is not stored in pieces
  const auto visit = [&](int slot, const std::vector<int64_t>& shape,
                         const TensorFactors& factors) {
    fits = fits && check(slot, shape, factors);
    whole = whole ||
            (!factors.empty() && segment.slots[static_cast<size_t>(slot)].sharding.storage.empty());
  };
  for (size_t i = 0; i < instr.inputs.size(); ++i) {
    visit(instr.inputs[i], spec.input_shapes[i], spec.rule.operands[i]);
  }
  for (size_t i = 0; i < instr.outputs.size(); ++i) {
    visit(instr.outputs[i], spec.output_shapes[i], spec.rule.results[i]);
  }
  if (fits && !(flat >= 0 && whole)) return absl::OkStatus();
  return absl::InvalidArgumentError("the operands' tiles do not fit together");
}

// Whether the op's meaning needs to know where its piece of the factor begins. Factors behind `...`
// have names that begin with a dot.
bool IsPlaced(const OpDef& op, const Factor& factor) {
  const absl::string_view own = factor.name;
  const absl::string_view name = absl::StartsWith(own, ".") ? absl::string_view("...") : own;
  return std::find(op.offset_factors.begin(), op.offset_factors.end(), name) !=
         op.offset_factors.end();
}

bool NamesLayer(const Attrs& attrs) {
  return std::any_of(attrs.begin(), attrs.end(), [](const Attrs::Entry& entry) {
    const std::string* text = std::get_if<std::string>(&entry.second);
    return text != nullptr && absl::StrContains(*text, "*");
  });
}

Attrs ForLayer(const Attrs& attrs, int layer) {
  Attrs result;
  for (const Attrs::Entry& entry : attrs) {
    const std::string* text = std::get_if<std::string>(&entry.second);
    result.Set(entry.first, text != nullptr ? NameForLayer(*text, layer) : entry.second);
  }
  return result;
}

std::string Describe(const KernelSpec& spec) {
  const auto join = [](const std::vector<TensorType>& types) {
    return absl::StrJoin(types, ", ", [](std::string* out, const TensorType& type) {
      absl::StrAppend(out, type.ToString());
    });
  };
  return absl::StrCat(spec.op->name, "(", join(spec.input_types), ") -> (", join(spec.output_types),
                      ")");
}

}  // namespace

KernelTable::KernelTable(const KernelList& kernels, const Mesh& mesh, uint64_t seed, int width)
    : host_(kernels.host), mesh_(mesh), seed_(seed), width_(width) {
  for (const KernelEntry& entry : kernels.entries) factories_[entry.op] = entry.make;
}

const KernelTable::Use& KernelTable::UseOf(const Segment& segment, const Instr& instr) {
  std::unique_ptr<Use>& use = uses_[&instr];
  if (use != nullptr) return *use;
  use = std::make_unique<Use>();
  use->number = static_cast<int>(uses_.size());
  use->by_layer = NamesLayer(instr.attrs);
  KernelSpec& spec = use->spec;
  spec.op = instr.op;
  spec.seed = seed_;
  for (int i : instr.inputs) {
    const Slot& slot = segment.slots[static_cast<size_t>(i)];
    spec.input_types.push_back(slot.type);
    spec.input_shapes.push_back(LocalShape(slot.type, slot.sharding, mesh_));
  }
  for (int i : instr.outputs) {
    const Slot& slot = segment.slots[static_cast<size_t>(i)];
    spec.output_types.push_back(slot.type);
    spec.output_shapes.push_back(LocalShape(slot.type, slot.sharding, mesh_));
  }
  const std::vector<const TensorType*> operands = Pointers(spec.input_types);
  const std::vector<const TensorType*> results = Pointers(spec.output_types);
  absl::StatusOr<FactorRule> rule = RuleOf(*instr.op, OpUse{instr.attrs, operands, results});
  MGC_CHECK(rule.ok()) << rule.status().ToString();  // the segment has passed inference
  spec.rule = *std::move(rule);
  use->axes = FactorAxesOf(spec.rule, ShardingsOf(segment, instr.inputs),
                           ShardingsOf(segment, instr.outputs), mesh_);
  if (!instr.op->collective) {
    use->status = CheckTiles(segment, instr, spec, use->axes, mesh_);
  } else {
    for (const std::vector<int>* slots : {&instr.inputs, &instr.outputs}) {
      for (const Sharding* sharding : ShardingsOf(segment, *slots)) {
        use->moved = use->moved | sharding->UsedAxes();
      }
    }
  }
  for (const Factor& factor : spec.rule.factors) {
    use->placed.push_back(IsPlaced(*instr.op, factor));
  }
  return *use;
}

const Kernel* KernelTable::Find(const Segment& segment, const Instr& instr, int layer,
                                int64_t rank) {
  const Use& use = UseOf(segment, instr);
  std::string key = absl::StrCat(use.number, ":", use.by_layer ? layer : kNoLayer);
  std::vector<DimPiece> pieces;
  for (size_t f = 0; f < use.axes.size(); ++f) {
    const Factor& factor = use.spec.rule.factors[f];
    DimPiece piece = PieceOf({factor.size, "", factor.multiple}, use.axes[f], mesh_, rank);
    if (!use.placed[f]) piece.begin = 0;
    absl::StrAppend(&key, ",", piece.begin, "+", piece.valid);
    pieces.push_back(piece);
  }
  // The kernels of collective ops depend on the rank's place in its group, not on which group it
  // is.
  for (AxisId axis : use.moved) absl::StrAppend(&key, "@", mesh_.Coordinate(rank, axis));
  const auto [it, is_new] = kernels_.try_emplace(key);
  if (!is_new) return it->second.get();
  absl::StatusOr<std::unique_ptr<Kernel>> made =
      Make(use, segment, instr, layer, std::move(pieces), rank);
  absl::Status status = made.status();
  if (made.ok()) status = CheckWorkspace(**made, segment, instr);
  if (status.ok()) {
    it->second = *std::move(made);
  } else {
    refused_.insert(absl::StrCat(Describe(use.spec), ": ", status.message()));
  }
  return it->second.get();
}

absl::StatusOr<std::unique_ptr<Kernel>> KernelTable::Make(const Use& use, const Segment& segment,
                                                          const Instr& instr, int layer,
                                                          std::vector<DimPiece> pieces,
                                                          int64_t rank) const {
  MGC_RETURN_IF_ERROR(use.status);
  const auto factory = factories_.find(instr.op->name);
  if (factory == factories_.end()) return absl::UnimplementedError("no kernel");
  if (instr.op->collective) {
    const Slot& from = segment.slots[static_cast<size_t>(instr.inputs[0])];
    const Slot& to = segment.slots[static_cast<size_t>(instr.outputs[0])];
    KernelSpec local;
    local.op = instr.op;
    local.input_types = use.spec.input_types;
    local.output_types = use.spec.output_types;
    MGC_ASSIGN_OR_RETURN(local.move, LocalMoveOf(from.type, from.sharding, to.sharding,
                                                 instr.op->name, mesh_, rank));
    return factory->second(local);
  }
  KernelSpec spec = use.spec;
  spec.attrs = ForLayer(instr.attrs, layer);
  spec.pieces = std::move(pieces);
  return factory->second(spec);
}

absl::Status KernelTable::CheckWorkspace(const Kernel& kernel, const Segment& segment,
                                         const Instr& instr) {
  const int64_t asked = kernel.workspace_bytes(width_);
  workspace_bytes_ = std::max(workspace_bytes_, asked);
  const int64_t bound = WorkspaceBound(segment, instr, mesh_, host_);
  if (asked <= bound * width_) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "segment `", segment.name, "`: the kernel asks for ", asked, " bytes of workspace, `",
      instr.op->name, "` allows ", bound, " for each of ", width_, " threads"));
}

absl::Status KernelTable::Refused() const {
  if (refused_.empty()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("this backend cannot run the plan:\n  ", absl::StrJoin(refused_, "\n  ")));
}

}  // namespace mgc
