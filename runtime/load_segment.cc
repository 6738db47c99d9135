#include "runtime/load_segment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/assemble.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int64_t kMaxDim = int64_t{1} << 40;
constexpr int64_t kMaxOffset = int64_t{1} << 50;
constexpr int64_t kLargestElement = 8;  // bytes

absl::Status Invalid(absl::string_view text) { return absl::InvalidArgumentError(text); }

// A text attribute; empty when it is absent or no text.
std::string TextOf(const Attrs& attrs, absl::string_view name) {
  const AttrValue* value = attrs.Find(name);
  const std::string* text = value != nullptr ? std::get_if<std::string>(value) : nullptr;
  return text != nullptr ? *text : "";
}

template <typename T>
bool IsIndexOf(int i, const std::vector<T>& list) {
  return i >= 0 && i < static_cast<int>(list.size());
}

// Bytes of a slot's tile; an error for sizes no machine has.
absl::StatusOr<int64_t> TileBytes(const Slot& slot, const Mesh& mesh) {
  int64_t elements = 1;
  for (size_t d = 0; d < slot.type.dims.size(); ++d) {
    const Dim& dim = slot.type.dims[d];
    if (dim.size < 0 || dim.size > kMaxDim || dim.multiple < 1 || dim.multiple > kMaxDim) {
      return Invalid(absl::StrCat("slot `", slot.name, "` has a dim of ", dim.size));
    }
    const int64_t size = LocalSize(dim, slot.sharding.dims[d], mesh);
    if (__builtin_mul_overflow(elements, size, &elements) || elements > kMaxTileElements) {
      return Invalid(absl::StrCat("slot `", slot.name, "` is too large"));
    }
  }
  return LocalElements(slot.type, slot.sharding, mesh) * SizeOf(slot.type.dtype);
}

class Loader {
 public:
  Loader(const Plan& plan, const Segment& segment) : plan_(plan), segment_(segment) {
    out_.segment = &segment;
  }

  absl::StatusOr<LoadedSegment> Run() {
    MGC_RETURN_IF_ERROR(LoadSlots());
    numbers_.assign(static_cast<size_t>(std::max(segment_.num_collectives, 0)), -1);
    waited_.assign(numbers_.size(), false);
    for (size_t i = 0; i < segment_.instrs.size(); ++i) {
      const Instr& instr = segment_.instrs[i];
      MGC_RETURN_IF_ERROR(Annotate(LoadInstr(instr),
                                   absl::StrCat("segment `", segment_.name, "`, instruction ", i,
                                                instr.op != nullptr ? " " + instr.op->name : "")));
    }
    if (std::count(numbers_.begin(), numbers_.end(), -1) > 0) {
      return Invalid(absl::StrCat("segment `", segment_.name, "` does not start all of its ",
                                  segment_.num_collectives, " collectives"));
    }
    return std::move(out_);
  }

 private:
  absl::Status LoadSlots() {
    out_.formal_ends.assign(segment_.formals.size(), 0);
    for (const Slot& slot : segment_.slots) {
      MGC_RETURN_IF_ERROR(Annotate(
          LoadSlot(slot), absl::StrCat("segment `", segment_.name, "`, slot `", slot.name, "`")));
    }
    return absl::OkStatus();
  }

  absl::Status LoadSlot(const Slot& slot) {
    if (!IsIndexOf(slot.formal, segment_.formals)) return Invalid("has no such formal");
    MGC_RETURN_IF_ERROR(CheckSharding(slot.type, slot.sharding, plan_.mesh));
    MGC_ASSIGN_OR_RETURN(const int64_t bytes, TileBytes(slot, plan_.mesh));
    if (bytes > slot.bytes) {
      return Invalid(absl::StrCat("needs ", bytes, " bytes and has ", slot.bytes));
    }
    if (slot.offset < 0 || slot.offset > kMaxOffset || slot.offset % kLargestElement != 0) {
      return Invalid(absl::StrCat("may not lie at ", slot.offset));
    }
    slots_.push_back({slot.formal, slot.offset, bytes});
    int64_t& end = out_.formal_ends[static_cast<size_t>(slot.formal)];
    end = std::max(end, slot.offset + bytes);
    return absl::OkStatus();
  }

  absl::Status LoadInstr(const Instr& instr) {
    LoadedInstr loaded;
    loaded.instr = &instr;
    loaded.kind = instr.kind;
    for (int slot : instr.inputs) {
      if (!IsIndexOf(slot, slots_)) return Invalid("has no such slot");
      loaded.inputs.push_back(slots_[static_cast<size_t>(slot)]);
    }
    for (int slot : instr.outputs) {
      if (!IsIndexOf(slot, slots_)) return Invalid("has no such slot");
      loaded.outputs.push_back(slots_[static_cast<size_t>(slot)]);
    }
    absl::Status status = Invalid("is of no known kind");
    if (instr.kind == InstrKind::kCompute) status = LoadCompute(instr, &loaded);
    if (instr.kind == InstrKind::kLoad) status = LoadData(instr, &loaded);
    if (instr.kind == InstrKind::kStart) status = LoadStart(instr, &loaded);
    if (instr.kind == InstrKind::kWait) status = LoadWait(instr, &loaded);
    MGC_RETURN_IF_ERROR(status);
    out_.instrs.push_back(std::move(loaded));
    return absl::OkStatus();
  }

  const Slot& SlotOf(int index) const { return segment_.slots[static_cast<size_t>(index)]; }

  absl::Status LoadCompute(const Instr& instr, LoadedInstr* out) {
    if (instr.op == nullptr) return Invalid("has no op");
    std::vector<const TensorType*> operands;
    for (int slot : instr.inputs) operands.push_back(&SlotOf(slot).type);
    absl::StatusOr<std::vector<TensorType>> results = InferTypes(*instr.op, instr.attrs, operands);
    MGC_RETURN_IF_ERROR(results);
    if (results->size() != instr.outputs.size()) return Invalid("has a wrong number of results");
    for (size_t i = 0; i < results->size(); ++i) {
      const TensorType& made = (*results)[i];
      const TensorType& slot = SlotOf(instr.outputs[i]).type;
      bool equal = made.dtype == slot.dtype && made.ndim() == slot.ndim();
      for (int d = 0; equal && d < made.ndim(); ++d) equal = made.dims[d].size == slot.dims[d].size;
      if (!equal) {
        return Invalid(absl::StrCat("makes ", made.ToString(), ", not ", slot.ToString()));
      }
    }
    const int64_t workspace = WorkspaceBound(segment_, instr, plan_.mesh);
    if (workspace > segment_.workspace_bytes) {
      return Invalid(absl::StrCat("may use ", workspace, " bytes of workspace, the segment has ",
                                  segment_.workspace_bytes));
    }
    out->kernel = out_.num_kernels++;
    return absl::OkStatus();
  }

  absl::Status LoadData(const Instr& instr, LoadedInstr* out) {
    const std::string name = TextOf(instr.attrs, "name");
    constexpr absl::string_view kNames[] = {"tokens", "targets", "weights"};
    const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
    if (found == std::end(kNames) || instr.outputs.size() != 1) {
      return Invalid(absl::StrCat("loads no data input `", name, "` into one slot"));
    }
    out->data = static_cast<DataInput>(found - std::begin(kNames));
    const Slot& slot = SlotOf(instr.outputs[0]);
    const DType dtype = out->data == DataInput::kWeights ? DType::kF32 : DType::kI64;
    const int64_t batch = plan_.global_batch_size / std::max<int64_t>(plan_.num_micro_batches, 1);
    if (slot.type.dtype != dtype || slot.type.ndim() != 2 || slot.type.dims[0].size != batch ||
        slot.type.dims[1].size != plan_.seq_length || !slot.sharding.storage.empty()) {
      return Invalid(absl::StrCat("`", name, "` is ", NameOf(dtype), "[", batch, ",",
                                  plan_.seq_length, "], not ", slot.type.ToString()));
    }
    return absl::OkStatus();
  }

  absl::Status LoadStart(const Instr& instr, LoadedInstr* out) {
    if (instr.op == nullptr || !instr.op->collective) return Invalid("is no collective");
    if (!IsIndexOf(instr.collective, numbers_) || numbers_[instr.collective] >= 0) {
      return Invalid(absl::StrCat("starts collective ", instr.collective, " twice or of none"));
    }
    if (instr.inputs.empty() || instr.inputs.size() != instr.outputs.size()) {
      return Invalid("has a wrong number of operands");
    }
    LoadedExchange exchange;
    exchange.instr = static_cast<int>(out_.instrs.size());
    exchange.embedding = TextOf(instr.attrs, "group") == "embedding";
    for (size_t i = 0; i < instr.inputs.size(); ++i) {
      MGC_ASSIGN_OR_RETURN(Exchange part, PartOf(instr, SlotOf(instr.inputs[i]),
                                                 SlotOf(instr.outputs[i]), exchange.embedding));
      if (i > 0 && (part.axes != exchange.parts[0].axes || part.kind != exchange.parts[0].kind)) {
        return Invalid("mixes collectives of several kinds or groups");
      }
      exchange.parts.push_back(std::move(part));
    }
    out->exchange = static_cast<int>(out_.exchanges.size());
    numbers_[instr.collective] = out->exchange;
    out_.exchanges.push_back(std::move(exchange));
    return absl::OkStatus();
  }

  absl::StatusOr<Exchange> PartOf(const Instr& instr, const Slot& in, const Slot& out,
                                  bool embedding) const {
    if (in.type != out.type) return Invalid("changes a type");
    if (embedding) {
      const AxisId pipeline = PipelineAxis(plan_.mesh);
      if (instr.op->name != "all_reduce" || in.sharding != out.sharding || pipeline < 0) {
        return Invalid("only an all_reduce over a pipeline sums tied weights");
      }
      Exchange sum = SumOver(in.type, in.sharding, 2, plan_.mesh);
      sum.axes.Add(pipeline);
      return sum;
    }
    MGC_ASSIGN_OR_RETURN(Exchange part, ExchangeBetween(in.type, in.sharding, out.sharding,
                                                        instr.op->name, plan_.mesh));
    if (part.kind == CollectiveKind::kSlice || part.kind == CollectiveKind::kLift) {
      return Invalid("moves nothing between ranks");
    }
    return part;
  }

  absl::Status LoadWait(const Instr& instr, LoadedInstr* out) {
    if (!IsIndexOf(instr.collective, numbers_) || numbers_[instr.collective] < 0 ||
        waited_[instr.collective]) {
      return Invalid(absl::StrCat("waits for collective ", instr.collective,
                                  ", which has not been started or has been waited for"));
    }
    waited_[instr.collective] = true;
    out->exchange = numbers_[instr.collective];
    return absl::OkStatus();
  }

  const Plan& plan_;
  const Segment& segment_;
  LoadedSegment out_;
  std::vector<LoadedSlot> slots_;
  std::vector<int> numbers_;  // by collective number: which exchange, -1 until started
  std::vector<bool> waited_;
};

}  // namespace

absl::StatusOr<LoadedSegment> LoadSegment(const Plan& plan, const Segment& segment) {
  return Loader(plan, segment).Run();
}

}  // namespace mgc
