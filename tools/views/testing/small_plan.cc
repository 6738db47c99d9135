#include "tools/views/testing/small_plan.h"

#include <algorithm>
#include <utility>

#include "graph/base/status.h"
#include "passes/plan/schedule.h"

namespace mgc {
namespace {

constexpr int64_t kMicroBatches = 4;

// Segments, in the order of Plan::segments.
enum SegmentIndex {
  kEmbeddingForward,
  kLayerForward,
  kHeadForward,
  kHeadBackward,
  kLayerBackward,
  kEmbeddingBackward,
  kReduce,
  kUpdate,
};

const OpDef* Op(absl::string_view name) {
  const OpDef* op = FindOp(name);
  MGC_CHECK(op != nullptr) << name;
  return op;
}

// Builds one segment; every collective is waited for right away.
class SegmentBuilder {
 public:
  SegmentBuilder(const Mesh& mesh, absl::string_view name) : mesh_(mesh) {
    segment_.name = std::string(name);
    segment_.formals = {{}, {Region::kParams, ""}};
  }

  int Add(absl::string_view name, const TensorType& type, absl::string_view sharding) {
    Slot slot;
    slot.name = std::string(name);
    slot.type = type;
    absl::StatusOr<Sharding> parsed = ParseSharding(sharding, mesh_);
    MGC_CHECK(parsed.ok()) << parsed.status().ToString();
    slot.sharding = *parsed;
    slot.offset = segment_.transient_bytes;
    slot.bytes = LocalElements(type, slot.sharding, mesh_) * SizeOf(type.dtype);
    segment_.transient_bytes += slot.bytes;
    segment_.slots.push_back(std::move(slot));
    return static_cast<int>(segment_.slots.size()) - 1;
  }

  void Compute(absl::string_view op, Attrs attrs, std::vector<int> inputs, int output) {
    Instr instr;
    instr.op = Op(op);
    instr.attrs = std::move(attrs);
    instr.inputs = std::move(inputs);
    instr.outputs = {output};
    segment_.instrs.push_back(std::move(instr));
  }

  void Collective(absl::string_view op, absl::string_view label, std::vector<int> from,
                  std::vector<int> to) {
    Instr start;
    start.kind = InstrKind::kStart;
    start.op = Op(op);
    start.attrs.Set("label", std::string(label));
    start.inputs = std::move(from);
    start.outputs = std::move(to);
    start.collective = segment_.num_collectives++;
    Instr wait;
    wait.kind = InstrKind::kWait;
    wait.collective = start.collective;
    segment_.instrs.push_back(std::move(start));
    segment_.instrs.push_back(std::move(wait));
  }

  Segment Take() && { return std::move(segment_); }

 private:
  const Mesh& mesh_;
  Segment segment_;
};

TensorType Activation(absl::string_view last, int64_t size) {
  return {DType::kF32, {{2, "batch", 1}, {8, "seq", 1}, {size, std::string(last), 1}}};
}
TensorType Weight() { return {DType::kF32, {{16, "embed", 1}, {64, "mlp", 1}}}; }

// x -> matmul -> sum owed over tp -> all-reduce.
Segment ReducedProduct(const Mesh& mesh, absl::string_view name, absl::string_view label) {
  SegmentBuilder builder(mesh, name);
  const int x = builder.Add("x", Activation("mlp", 64), "dp,-,tp");
  const int w = builder.Add("layers.*.w", Weight(), "-,tp");
  const int owed = builder.Add("y.owed", Activation("embed", 16), "dp,-,-+tp");
  const int y = builder.Add("y", Activation("embed", 16), "dp,-,-");
  builder.Compute("matmul", {{"spec", "b s m, e m -> b s e"}}, {x, w}, owed);
  builder.Collective("all_reduce", label, {owed}, {y});
  builder.Compute("gelu", {}, {y}, y);
  return std::move(builder).Take();
}

Segment Head(const Mesh& mesh, absl::string_view name) {
  SegmentBuilder builder(mesh, name);
  const TensorType rows{DType::kF32, {{2, "batch", 1}, {8, "seq", 1}}};
  const int owed = builder.Add("max.owed", rows, "dp,-^tp");
  const int whole = builder.Add("max", rows, "dp,-");
  builder.Collective("all_reduce", "vocabulary", {owed}, {whole});
  return std::move(builder).Take();
}

// Two weights' gradients in one bucket.
Segment Reduce(const Mesh& mesh) {
  SegmentBuilder builder(mesh, "reduce");
  std::vector<int> from;
  std::vector<int> to;
  for (const char* name : {"a", "b"}) {
    from.push_back(builder.Add(std::string(name) + ".sum", Weight(), "-,tp+dp"));
    to.push_back(builder.Add(std::string(name) + ".mean", Weight(), "-,tp/dp"));
  }
  builder.Collective("reduce_scatter", "gradient", from, to);
  return std::move(builder).Take();
}

Segment Update(const Mesh& mesh) {
  SegmentBuilder builder(mesh, "update");
  const TensorType norms{DType::kF64, {{3, "", 1}}};
  const int owed = builder.Add("norms.owed", norms, "-+tp");
  const int whole = builder.Add("norms", norms, "-");
  builder.Collective("all_reduce", "norm", {owed}, {whole});
  return std::move(builder).Take();
}

std::vector<Segment> Segments(const Mesh& mesh) {
  std::vector<Segment> segments(kUpdate + 1);
  segments[kEmbeddingForward] = ReducedProduct(mesh, "embedding.forward", "g");
  segments[kLayerForward] = ReducedProduct(mesh, "layer.forward", "g");
  segments[kHeadForward] = Head(mesh, "head.forward");
  segments[kHeadBackward] = ReducedProduct(mesh, "head.backward", "f");
  segments[kLayerBackward] = ReducedProduct(mesh, "layer.backward", "f");
  segments[kEmbeddingBackward] = Head(mesh, "embedding.backward");
  segments[kReduce] = Reduce(mesh);
  segments[kUpdate] = Update(mesh);
  return segments;
}

Call CallOf(int segment, int layer) { return {segment, layer, {}}; }

Chunk MakeChunk(int stage, int first_layer, int num_layers) {
  Chunk chunk;
  chunk.stage = stage;
  chunk.first_layer = first_layer;
  chunk.num_layers = num_layers;
  chunk.has_embedding = stage == 0;
  chunk.has_head = stage == 1;
  chunk.frame_bytes = 4096;
  if (chunk.has_embedding) chunk.forward.push_back(CallOf(kEmbeddingForward, kEmbeddingLayer));
  for (int i = 0; i < num_layers; ++i) {
    chunk.forward.push_back(CallOf(kLayerForward, first_layer + i));
    chunk.backward.push_back(CallOf(kLayerBackward, first_layer + num_layers - 1 - i));
  }
  if (chunk.has_head) {
    chunk.forward.push_back(CallOf(kHeadForward, first_layer + num_layers));
    chunk.backward.insert(chunk.backward.begin(), CallOf(kHeadBackward, first_layer + num_layers));
  }
  if (chunk.has_embedding) chunk.backward.push_back(CallOf(kEmbeddingBackward, kEmbeddingLayer));
  chunk.last_backward = chunk.backward;
  chunk.last_backward.push_back(CallOf(kReduce, kNoLayer));
  return chunk;
}

// The compute order of 1f1b with the transfers of two stages.
Program ProgramOf(int coordinate) {
  Program program;
  const PipelineSchedule schedule =
      *BuildSchedule({ScheduleKind::kOneFOneB, 2, 1, kMicroBatches, 0});
  for (const ScheduleAction& step : schedule.lists[static_cast<size_t>(coordinate)]) {
    const bool forward = step.kind == ScheduleActionKind::kForward;
    Action action;
    action.ref = {forward ? ActionKind::kForward : ActionKind::kBackward, 0, step.micro_batch};
    Transfer transfer;
    transfer.bytes = 1024 / 2;
    transfer.peer = 1 - coordinate;
    transfer.anchor = action.ref;
    if (forward == (coordinate == 0)) {  // makes something for the other stage
      transfer.ref = {forward ? TransferKind::kSendForward : TransferKind::kSendBackward, 0,
                      step.micro_batch};
      transfer.after = {action.ref};
    } else {
      transfer.ref = {forward ? TransferKind::kRecvForward : TransferKind::kRecvBackward, 0,
                      step.micro_batch};
      action.waits = {transfer.ref};
    }
    program.transfers.push_back(transfer);
    program.compute.push_back(action);
  }
  Action update;
  update.ref = {ActionKind::kUpdate, 0, 0};
  program.compute.push_back(update);
  return program;
}

ParamBlock LayerBlock(const Mesh& mesh) {
  ParamBlock block;
  block.name = "layer";
  const std::pair<const char*, const char*> weights[] = {{"layers.*.up", "-,tp"},
                                                         {"layers.*.down", "tp,-"}};
  for (const auto& [name, sharding] : weights) {
    ParamEntry entry;
    entry.name = name;
    entry.type = Weight();
    if (entry.name == "layers.*.down") std::swap(entry.type.dims[0], entry.type.dims[1]);
    entry.sharding = *ParseSharding(sharding, mesh);
    entry.state_sharding = *ParseSharding(std::string(sharding) + "/dp", mesh);
    block.entries.push_back(std::move(entry));
  }
  return block;
}

}  // namespace

Plan SmallPlan(int layers) {
  Plan plan;
  plan.name = "small";
  plan.options = {{"--tp", "2"}, {"--pp", "2"}};
  plan.mesh = *Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 2}});
  plan.machine = MachinePresets().front();
  plan.micro_batch_size = 1;
  plan.global_batch_size = 2 * kMicroBatches;
  plan.num_micro_batches = kMicroBatches;
  plan.seq_length = 8;
  plan.vocab = 11;
  GraphBuilder model("small");
  model.set_num_layers(layers);
  plan.model = std::move(model).Finish();
  plan.segments = Segments(plan.mesh);
  plan.blocks = {LayerBlock(plan.mesh)};
  plan.predicted_step_ns = 1500000;
  for (int coordinate = 0; coordinate < 2; ++coordinate) {
    PlanClass plan_class;
    plan_class.coordinate = coordinate;
    const int half = layers / 2;
    plan_class.chunks = {MakeChunk(coordinate, coordinate * half, half)};
    plan_class.eval_chunks = plan_class.chunks;
    for (Chunk& chunk : plan_class.eval_chunks) {
      chunk.backward.clear();
      chunk.last_backward.clear();
    }
    for (int i = 0; i < half; ++i) {
      HeldBlock held;
      held.layer = coordinate * half + i;
      plan_class.blocks.push_back(held);
    }
    plan_class.update = {CallOf(kUpdate, kNoLayer)};
    plan_class.update[0].running = 0;
    plan_class.train = ProgramOf(coordinate);
    plan_class.memory = {4096, 4096, 4096, 0, 8192, 1024, 2048, 23552 + coordinate, 0};
    plan.stages.push_back({plan_class.coordinate, 0});
    plan.classes.push_back(std::move(plan_class));
  }
  return plan;
}

}  // namespace mgc
