#include <algorithm>
#include <string>
#include <utility>

#include "graph/base/status.h"
#include "runtime/run/testing/chain_places.h"

namespace mgc {
namespace {

const TensorType kNumber{DType::kF64, {}};

// Writes one segment.
class SegmentMaker {
 public:
  SegmentMaker(const Mesh& mesh, std::string name, const std::vector<Region>& regions)
      : mesh_(mesh) {
    segment_.name = std::move(name);
    for (const Region region : regions) segment_.formals.push_back({region, ""});
  }

  int Slot(const std::string& name, const TensorType& type, const Sharding& sharding, Region region,
           int64_t offset) {
    const auto at = std::find(segment_.formals.begin(), segment_.formals.end(), Formal{region, ""});
    const int64_t bytes = LocalElements(type, sharding, mesh_) * SizeOf(type.dtype);
    segment_.slots.push_back(
        {name, type, sharding, static_cast<int>(at - segment_.formals.begin()), offset, bytes});
    if (segment_.slots.back().formal == 0) {
      segment_.transient_bytes = std::max(segment_.transient_bytes, offset + bytes);
    }
    return static_cast<int>(segment_.slots.size()) - 1;
  }
  void Compute(const char* op, std::vector<int> inputs, int output, Attrs attrs = {}) {
    Add(InstrKind::kCompute, op, std::move(inputs), {output}, std::move(attrs));
  }
  void Load(const char* input, int output) {
    Add(InstrKind::kLoad, nullptr, {}, {output}, {{"name", std::string(input)}});
  }
  void AllReduce(std::vector<int> inputs, std::vector<int> outputs, bool wait) {
    Add(InstrKind::kStart, "all_reduce", std::move(inputs), std::move(outputs), {});
    segment_.instrs.back().collective = segment_.num_collectives;
    if (wait) {
      Add(InstrKind::kWait, nullptr, {}, {}, {});
      segment_.instrs.back().collective = segment_.num_collectives;
    }
    ++segment_.num_collectives;
  }
  Segment Take() { return std::move(segment_); }

 private:
  void Add(InstrKind kind, const char* op, std::vector<int> inputs, std::vector<int> outputs,
           Attrs attrs) {
    Instr instr;
    instr.kind = kind;
    instr.op = op != nullptr ? FindOp(op) : nullptr;
    instr.inputs = std::move(inputs);
    instr.outputs = std::move(outputs);
    instr.attrs = std::move(attrs);
    segment_.instrs.push_back(std::move(instr));
  }

  const Mesh& mesh_;
  Segment segment_;
};

Sharding Owed(Sharding sharding, AxisSet axes) {
  sharding.sum |= axes;
  return sharding;
}

Sharding Number(AxisSet owed) { return Owed(Sharding::Whole(0), owed); }

Segment FeedSegment(const ChainPlaces& l) {
  SegmentMaker s(l.mesh, "feed", {Region::kTransient, Region::kOutput});
  s.Load("weights", s.Slot("x", l.rows, l.row_sharding, Region::kOutput, 0));
  return s.Take();
}

Segment ForwardSegment(const ChainPlaces& l) {
  SegmentMaker s(l.mesh, "forward",
                 {Region::kTransient, Region::kParams, Region::kInput, Region::kOutput});
  const int x = s.Slot("x", l.rows, l.row_sharding, Region::kInput, 0);
  const int w = s.Slot("w", l.weight, Sharding::Whole(1), Region::kParams, 0);
  const int y = s.Slot("y", l.rows, l.row_sharding, Region::kOutput, 0);
  const int product = s.Slot("product", l.rows, l.row_sharding, Region::kTransient, 0);
  int part = y;
  if (l.o.tp > 1) {
    part = s.Slot("part", l.rows, Owed(l.row_sharding, l.tp), Region::kTransient, l.tile);
  }
  s.Compute("mul", {x, w}, product);
  s.Compute("scale", {product}, part, {{"value", 1.0 / l.o.tp}});
  if (l.o.tp > 1) s.AllReduce({part}, {y}, true);
  return s.Take();
}

Segment LossSegment(const ChainPlaces& l) {
  SegmentMaker s(l.mesh, "loss", {Region::kTransient, Region::kInput, Region::kGlobals});
  const int y = s.Slot("y", l.rows, l.row_sharding, Region::kInput, 0);
  const int x = s.Slot("weights", l.rows, l.row_sharding, Region::kTransient, 0);
  const int sum = s.Slot("sum", kNumber, Number(l.dp), Region::kTransient, l.tile);
  const int half = s.Slot("half", kNumber, Number(l.dp), Region::kTransient, l.tile + 8);
  const int loss = s.Slot("loss", kNumber, Number(l.dp), Region::kGlobals, 0);
  const int count = s.Slot("count", kNumber, Number(l.dp), Region::kTransient, l.tile + 16);
  const int tokens = s.Slot("tokens", kNumber, Number(l.dp), Region::kGlobals, kSlotAlignment);
  s.Compute("sum_squares", {y}, sum);
  s.Compute("scale", {sum}, half, {{"value", 0.5}});
  s.Compute("accumulate", {loss, half}, loss);
  s.Load("weights", x);
  s.Compute("total", {x}, count);
  s.Compute("accumulate", {tokens, count}, tokens);
  return s.Take();
}

Segment BackwardSegment(const ChainPlaces& l) {
  SegmentMaker s(l.mesh, "backward",
                 {Region::kTransient, Region::kParams, Region::kGrads, Region::kInput,
                  Region::kGradOutput, Region::kGradInput});
  const Sharding owed = Owed(Sharding::Whole(1), l.dp);
  const int x = s.Slot("x", l.rows, l.row_sharding, Region::kInput, 0);
  const int w = s.Slot("w", l.weight, Sharding::Whole(1), Region::kParams, 0);
  const int dy = s.Slot("dy", l.rows, l.row_sharding, Region::kGradOutput, 0);
  const int dx = s.Slot("dx", l.rows, l.row_sharding, Region::kGradInput, 0);
  const int product = s.Slot("product", l.rows, l.row_sharding, Region::kTransient, 0);
  const int term = s.Slot("term", l.weight, owed, Region::kTransient, l.tile);
  const int sum = s.Slot("g", l.weight, owed, Region::kGrads, 0);
  s.Compute("mul", {dy, x}, product);
  s.Compute("reduce_sum", {product}, term, {{"dims", std::vector<int64_t>{0}}});
  s.Compute("accumulate", {sum, term}, sum);
  s.Compute("mul", {dy, w}, dx);
  return s.Take();
}

Segment ReduceSegment(const ChainPlaces& l) {
  SegmentMaker s(l.mesh, "reduce", {Region::kTransient, Region::kGrads});
  const Sharding whole = Sharding::Whole(1);
  const int owed = s.Slot("g", l.weight, Owed(whole, l.dp), Region::kGrads, 0);
  const int paid = s.Slot("g", l.weight, whole, Region::kGrads, 0);
  if (l.o.dp > 1) s.AllReduce({owed}, {paid}, false);
  return s.Take();
}

Segment StepSegment(const ChainPlaces& l) {
  SegmentMaker s(l.mesh, "step",
                 {Region::kTransient, Region::kParams, Region::kGrads, Region::kGlobals});
  const Sharding whole = Sharding::Whole(1);
  const int w = s.Slot("w", l.weight, whole, Region::kParams, 0);
  const int g = s.Slot("g", l.weight, whole, Region::kGrads, 0);
  const int lr = s.Slot("lr", kNumber, Number({}), Region::kGlobals, 2 * kSlotAlignment);
  const int step = s.Slot("step", l.weight, whole, Region::kTransient, 0);
  s.Compute("mul", {g, lr}, step);
  s.Compute("sub", {w, step}, w);
  return s.Take();
}

Segment PayLossSegment(const ChainPlaces& l) {
  SegmentMaker s(l.mesh, "pay_loss", {Region::kTransient, Region::kGlobals});
  const int loss = s.Slot("loss", kNumber, Number(l.dp), Region::kGlobals, 0);
  const int tokens = s.Slot("tokens", kNumber, Number(l.dp), Region::kGlobals, kSlotAlignment);
  const int all = s.Slot("loss.all", kNumber, Number({}), Region::kGlobals, 3 * kSlotAlignment);
  const int count = s.Slot("tokens.all", kNumber, Number({}), Region::kGlobals, 4 * kSlotAlignment);
  if (l.o.dp > 1) {
    s.AllReduce({loss, tokens}, {all, count}, true);
  } else {
    s.Compute("scale", {loss}, all, {{"value", 1.0}});
    s.Compute("scale", {tokens}, count, {{"value", 1.0}});
  }
  const int factor =
      s.Slot("grad_factor", kNumber, Number({}), Region::kGlobals, 5 * kSlotAlignment);
  s.Compute("constant", {}, factor, {{"value", 1.0}});
  return s.Take();
}

}  // namespace

ChainPlaces::ChainPlaces(const ChainOptions& options) : o(options) {
  const std::vector<MeshAxis> sizes = {{"tp", o.tp}, {"dp", o.dp}, {"pp", o.pp}};
  absl::StatusOr<Mesh> made = Mesh::FromOrder(kDefaultAxisOrder, sizes);
  MGC_CHECK(made.ok()) << made.status().ToString();
  mesh = *std::move(made);
  tp = mesh.Find("tp").AsSet();
  dp = mesh.Find("dp").AsSet();
  rows.dims = {{o.rows, "batch"}, {o.seq, "seq"}};
  weight.dims = {{o.seq, "seq"}};
  row_sharding.dims = {mesh.Find("dp"), {}};
  tile = AlignUp(o.rows / o.dp * o.seq * 4);
  vector = AlignUp(o.seq * 4);
  depth = std::max(2, o.pp);
  grad_at = 6 * kSlotAlignment;  // behind loss, tokens, lr and three reports
  param_at = grad_at + vector;
  frames_at = param_at + vector;
  slots_at = frames_at + o.micro_batches * 2 * tile;
  scratch_at = slots_at + 4 * tile * depth;
}

std::vector<Segment> ChainSegments(const ChainPlaces& places) {
  return {FeedSegment(places),     ForwardSegment(places), LossSegment(places),
          BackwardSegment(places), ReduceSegment(places),  StepSegment(places),
          PayLossSegment(places)};
}

}  // namespace mgc
