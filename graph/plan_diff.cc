#include "graph/plan_diff.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/op.h"

namespace mgc {
namespace {

constexpr int kMaxDifferences = 10;

std::string Text(const std::string& text) { return absl::StrCat("`", EscapeBytes(text), "`"); }
std::string Text(double value) { return absl::StrCat(value); }
std::string Text(bool value) { return value ? "yes" : "no"; }
std::string Text(int64_t value) { return absl::StrCat(value); }
std::string Text(int value) { return absl::StrCat(value); }
std::string Text(const TensorType& type) { return type.ToString(); }
std::string Text(const std::vector<int>& list) {
  return absl::StrCat("(", absl::StrJoin(list, ","), ")");
}
std::string Text(const std::vector<std::string>& list) {
  return absl::StrCat("(", EscapeBytes(absl::StrJoin(list, ",")), ")");
}
std::string Text(const ActionRef& ref) {
  return absl::StrCat("chunk ", ref.chunk, " ", LetterOf(ref.kind), ref.micro_batch);
}
std::string Text(const TransferRef& ref) {
  return absl::StrCat("chunk ", ref.chunk, " ", WordOf(ref.kind), ref.micro_batch);
}
std::string Text(const Attrs&) { return "attributes"; }
std::string Text(const Machine& machine) { return machine.name; }
std::string Text(const Mesh& mesh) { return mesh.ToString(); }
std::string Text(const Binding& binding) {
  return absl::StrCat("base ", static_cast<int>(binding.base), "+", binding.offset);
}
std::string Text(const PlanOptions&) { return "options"; }
template <typename Ref>
std::string Text(const std::vector<Ref>& list) {
  return absl::StrJoin(list, " ", [](std::string* out, const Ref& ref) { out->append(Text(ref)); });
}

template <typename T>
bool Equal(const T& a, const T& b) {
  return a == b;
}
template <typename Ref>
bool EqualRefs(const Ref& a, const Ref& b) {
  return a.kind == b.kind && a.chunk == b.chunk && a.micro_batch == b.micro_batch;
}
bool Equal(const ActionRef& a, const ActionRef& b) { return EqualRefs(a, b); }
bool Equal(const TransferRef& a, const TransferRef& b) { return EqualRefs(a, b); }
bool Equal(const Binding& a, const Binding& b) { return a.base == b.base && a.offset == b.offset; }
template <typename T>
bool Equal(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return Equal(x, y); });
}

// Collects differences, each behind the path to where it is.
class Differ {
 public:
  Differ(const Plan& a, const Plan& b) : a_(a), b_(b) {}

  const Plan& a() const { return a_; }
  const Plan& b() const { return b_; }
  std::string text() const { return text_; }
  bool full() const { return count_ > kMaxDifferences; }
  void Enter(std::string place) { path_.push_back(std::move(place)); }
  void Leave() { path_.pop_back(); }

  void Add(absl::string_view what, const std::string& a, const std::string& b) {
    if (++count_ > kMaxDifferences) return;
    absl::StrAppend(&text_, text_.empty() ? "" : "\n", absl::StrJoin(path_, ""), what, ": ", a,
                    ", not ", b);
  }
  template <typename T>
  void Field(absl::string_view what, const T& a, const T& b) {
    if (!Equal(a, b)) Add(what, Text(a), Text(b));
  }
  template <typename Enum>
  void Kind(absl::string_view what, Enum a, Enum b) {
    Field(what, static_cast<int>(a), static_cast<int>(b));
  }
  void Layout(absl::string_view what, const Sharding& a, const Sharding& b) {
    if (a != b) Add(what, ToString(a, a_.mesh), ToString(b, b_.mesh));
  }

  // Compares two lists entry by entry.
  template <typename T>
  void Each(absl::string_view what, const std::vector<T>& a, const std::vector<T>& b) {
    if (a.size() != b.size()) {
      Add(absl::StrCat(what, "s"), absl::StrCat(a.size()), absl::StrCat(b.size()));
    }
    for (size_t i = 0; i < std::min(a.size(), b.size()) && !full(); ++i) {
      Enter(absl::StrCat(what, " ", i, ": "));
      Compare(a[i], b[i], this);
      Leave();
    }
  }

 private:
  const Plan& a_;
  const Plan& b_;
  std::vector<std::string> path_;
  std::string text_;
  int count_ = 0;
};

// --- The model -----------------------------------------------------------------------------------

std::vector<std::string> Names(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  names.reserve(ids.size());
  for (ValueId id : ids) names.push_back(graph.value(id).name);
  return names;
}

void CompareValue(const Graph& a, ValueId i, const Graph& b, ValueId j, Differ* d) {
  const Value& x = a.value(i);
  const Value& y = b.value(j);
  d->Enter(absl::StrCat("%", EscapeBytes(x.name), ": "));
  d->Field("name", x.name, y.name);
  d->Field("type", x.type, y.type);
  if (x.sharding != y.sharding) {
    d->Add("sharding", x.sharding ? ToString(*x.sharding, a.mesh()) : "none",
           y.sharding ? ToString(*y.sharding, b.mesh()) : "none");
  }
  d->Field("primal", x.primal == kNone ? std::string() : a.value(x.primal).name,
           y.primal == kNone ? std::string() : b.value(y.primal).name);
  d->Leave();
}

void CompareNode(const Graph& a, const Node& x, const Graph& b, const Node& y, Differ* d) {
  d->Enter(absl::StrCat("node ", x.op->name, ": "));
  d->Field("op", x.op->name, y.op->name);
  d->Field("attributes", x.attrs, y.attrs);
  d->Field("operands", Names(a, x.inputs), Names(b, y.inputs));
  d->Field("results", Names(a, x.outputs), Names(b, y.outputs));
  d->Kind("phase", x.phase, y.phase);
  d->Field("layer", x.layer, y.layer);
  d->Field("place", a.LocText(x.loc), b.LocText(y.loc));
  d->Field("origin", x.origin, y.origin);
  for (size_t i = 0; i < std::min(x.outputs.size(), y.outputs.size()); ++i) {
    CompareValue(a, x.outputs[i], b, y.outputs[i], d);
  }
  d->Leave();
}

void Compare(const Graph& a, const Graph& b, Differ* d) {
  d->Enter(std::string("model: "));
  d->Field("name", a.name(), b.name());
  d->Kind("level", a.level(), b.level());
  d->Field("mesh", a.mesh(), b.mesh());
  d->Field("layers", a.num_layers(), b.num_layers());
  d->Field("inputs", static_cast<int>(a.inputs().size()), static_cast<int>(b.inputs().size()));
  d->Field("nodes", static_cast<int>(a.nodes().size()), static_cast<int>(b.nodes().size()));
  d->Field("outputs", static_cast<int>(a.outputs().size()), static_cast<int>(b.outputs().size()));
  for (size_t i = 0; i < std::min(a.inputs().size(), b.inputs().size()); ++i) {
    const GraphInput& x = a.inputs()[i];
    const GraphInput& y = b.inputs()[i];
    CompareValue(a, x.value, b, y.value, d);
    d->Kind("kind of an input", x.kind, y.kind);
    d->Field("attributes of an input", x.attrs, y.attrs);
  }
  for (size_t i = 0; i < std::min(a.nodes().size(), b.nodes().size()); ++i) {
    if (!d->full()) CompareNode(a, a.nodes()[i], b, b.nodes()[i], d);
  }
  for (size_t i = 0; i < std::min(a.outputs().size(), b.outputs().size()); ++i) {
    const GraphOutput& x = a.outputs()[i];
    const GraphOutput& y = b.outputs()[i];
    d->Kind("kind of an output", x.kind, y.kind);
    d->Field("name of an output", x.name, y.name);
    d->Field("value of an output", a.value(x.value).name, b.value(y.value).name);
    d->Field("weight of an output", x.weight, y.weight);
    d->Field("target of an output", x.target == kNone ? std::string() : a.value(x.target).name,
             y.target == kNone ? std::string() : b.value(y.target).name);
  }
  d->Leave();
}

// Also of a place in a file that the model does not name.
std::string PlaceText(const Graph& model, const SourceLoc& loc) {
  const bool exists = loc.file < static_cast<int32_t>(model.files().size());
  return exists ? model.LocText(loc) : absl::StrCat("file ", loc.file);
}

// --- Segments and parameters ---------------------------------------------------------------------

void Compare(const Segment& a, const Segment& b, Differ* d) {
  d->Field("name", a.name, b.name);
  d->Field("formals", a.formals, b.formals);
  d->Each("slot", a.slots, b.slots);
  d->Each("instruction", a.instrs, b.instrs);
  d->Field("collectives", a.num_collectives, b.num_collectives);
  d->Field("transient bytes", a.transient_bytes, b.transient_bytes);
  d->Field("workspace bytes", a.workspace_bytes, b.workspace_bytes);
}

void Compare(const Slot& a, const Slot& b, Differ* d) {
  d->Field("name", a.name, b.name);
  d->Field("type", a.type, b.type);
  d->Layout("sharding", a.sharding, b.sharding);
  d->Field("formal", a.formal, b.formal);
  d->Field("offset", a.offset, b.offset);
  d->Field("bytes", a.bytes, b.bytes);
}

void Compare(const Instr& a, const Instr& b, Differ* d) {
  d->Kind("kind", a.kind, b.kind);
  d->Field("op", a.op == nullptr ? std::string() : a.op->name,
           b.op == nullptr ? std::string() : b.op->name);
  d->Field("attributes", a.attrs, b.attrs);
  d->Field("inputs", a.inputs, b.inputs);
  d->Field("outputs", a.outputs, b.outputs);
  d->Field("collective", a.collective, b.collective);
  d->Kind("phase", a.phase, b.phase);
  d->Field("place", PlaceText(d->a().model, a.loc), PlaceText(d->b().model, b.loc));
  d->Field("origin", a.origin, b.origin);
}

void Compare(const ParamBlock& a, const ParamBlock& b, Differ* d) {
  d->Field("name", a.name, b.name);
  d->Each("parameter", a.entries, b.entries);
  d->Field("param bytes", a.param_bytes, b.param_bytes);
  d->Field("grad bytes", a.grad_bytes, b.grad_bytes);
  d->Field("state bytes", a.state_bytes, b.state_bytes);
}

void Compare(const ParamEntry& a, const ParamEntry& b, Differ* d) {
  d->Field("name", a.name, b.name);
  d->Field("type", a.type, b.type);
  d->Layout("sharding", a.sharding, b.sharding);
  d->Layout("state sharding", a.state_sharding, b.state_sharding);
  d->Field("init", a.init, b.init);
  d->Field("offset", a.param_offset, b.param_offset);
  d->Field("base of the mean", a.mean_base, b.mean_base);
  d->Field("offset of the mean", a.mean_offset, b.mean_offset);
  d->Field("offset of m", a.m_offset, b.m_offset);
  d->Field("offset of v", a.v_offset, b.v_offset);
}

// --- Classes -------------------------------------------------------------------------------------

void Compare(const HeldBlock& a, const HeldBlock& b, Differ* d) {
  d->Field("block", a.block, b.block);
  d->Field("layer", a.layer, b.layer);
  d->Field("owner", a.owner, b.owner);
  d->Field("params", a.param_base, b.param_base);
  d->Field("grads", a.grad_base, b.grad_base);
  d->Field("states", a.state_base, b.state_base);
}

void Compare(const Chunk& a, const Chunk& b, Differ* d) {
  d->Field("stage", a.stage, b.stage);
  d->Field("first layer", a.first_layer, b.first_layer);
  d->Field("layers", a.num_layers, b.num_layers);
  d->Field("embedding", a.has_embedding, b.has_embedding);
  d->Field("head", a.has_head, b.has_head);
  d->Each("forward call", a.forward, b.forward);
  d->Each("backward call", a.backward, b.backward);
  d->Each("reduce call", a.reduce, b.reduce);
  d->Field("frame", a.frame_bytes, b.frame_bytes);
}

void Compare(const Call& a, const Call& b, Differ* d) {
  d->Field("segment", a.segment, b.segment);
  d->Field("layer", a.layer, b.layer);
  d->Field("bindings", a.bindings, b.bindings);
}

void CompareProgram(absl::string_view what, const Program& a, const Program& b, Differ* d) {
  d->Enter(std::string(what));
  d->Each("action", a.compute, b.compute);
  d->Each("transfer", a.transfers, b.transfers);
  d->Leave();
}

void Compare(const Action& a, const Action& b, Differ* d) {
  d->Field("name", a.ref, b.ref);
  d->Field("frame", a.frame, b.frame);
  d->Field("input", a.input, b.input);
  d->Field("output", a.output, b.output);
  d->Field("gradient input", a.grad_input, b.grad_input);
  d->Field("gradient output", a.grad_output, b.grad_output);
  d->Field("waits", a.waits, b.waits);
  d->Field("waits for reductions", a.waits_for_reductions, b.waits_for_reductions);
}

void Compare(const Transfer& a, const Transfer& b, Differ* d) {
  d->Field("name", a.ref, b.ref);
  d->Field("address", a.address, b.address);
  d->Field("bytes", a.bytes, b.bytes);
  d->Field("peer", a.peer, b.peer);
  d->Field("anchor", a.anchor, b.anchor);
  d->Field("collectives issued", a.issued, b.issued);
  d->Field("after", a.after, b.after);
  d->Field("after transfers", a.after_transfers, b.after_transfers);
}

void Compare(const Range& a, const Range& b, Differ* d) {
  d->Field("begin", a.begin, b.begin);
  d->Field("end", a.end, b.end);
}

void Compare(const NamedAddress& a, const NamedAddress& b, Differ* d) {
  d->Field("name", a.name, b.name);
  d->Field("address", a.address, b.address);
}

void Compare(const MemoryUse& a, const MemoryUse& b, Differ* d) {
  d->Field("memory of params", a.params, b.params);
  d->Field("memory of grads", a.grads, b.grads);
  d->Field("memory of states", a.states, b.states);
  d->Field("memory of frames", a.frames, b.frames);
  d->Field("memory of boundaries", a.boundaries, b.boundaries);
  d->Field("transient memory", a.transient, b.transient);
  d->Field("peak", a.peak, b.peak);
  d->Field("workspace", a.workspace, b.workspace);
}

void Compare(const PlanClass& a, const PlanClass& b, Differ* d) {
  d->Field("coordinate", a.coordinate, b.coordinate);
  d->Each("held block", a.blocks, b.blocks);
  d->Each("chunk", a.chunks, b.chunks);
  d->Each("evaluation chunk", a.eval_chunks, b.eval_chunks);
  d->Each("update call", a.update, b.update);
  d->Each("evaluation update call", a.eval_update, b.eval_update);
  CompareProgram("training: ", a.train, b.train, d);
  CompareProgram("evaluation: ", a.eval, b.eval, d);
  d->Each("zeroed range", a.zeroed, b.zeroed);
  d->Field("global bytes", a.global_bytes, b.global_bytes);
  d->Field("global bytes of evaluation", a.eval_global_bytes, b.eval_global_bytes);
  d->Each("scalar", a.scalars, b.scalars);
  d->Each("report", a.reports, b.reports);
  d->Each("evaluation report", a.eval_reports, b.eval_reports);
  Compare(a.memory, b.memory, d);
}

void Compare(const Plan& a, const Plan& b, Differ* d) {
  d->Field("name", a.name, b.name);
  d->Field("options", a.options, b.options);
  d->Field("mesh", a.mesh, b.mesh);
  d->Field("machine", a.machine, b.machine);
  d->Field("micro-batch size", a.micro_batch_size, b.micro_batch_size);
  d->Field("global batch size", a.global_batch_size, b.global_batch_size);
  d->Field("micro-batches", a.num_micro_batches, b.num_micro_batches);
  d->Field("sequence length", a.seq_length, b.seq_length);
  d->Field("vocabulary", a.vocab, b.vocab);
  d->Field("predicted step", a.predicted_step_ns, b.predicted_step_ns);
  d->Field("notes", a.notes, b.notes);
  Compare(a.model, b.model, d);
  d->Each("segment", a.segments, b.segments);
  d->Each("block", a.blocks, b.blocks);
  d->Each("class", a.classes, b.classes);
}

}  // namespace

bool SamePlan(const Plan& a, const Plan& b, std::string* difference) {
  Differ differ(a, b);
  Compare(a, b, &differ);
  *difference = differ.text();
  return difference->empty();
}

}  // namespace mgc
