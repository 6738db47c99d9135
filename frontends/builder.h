// Writing a model in C++: values, named dims, parameters by path, layers.
//
//   ModelBuilder b("mine", {{2, "batch"}, {64, "seq"}, {32, "embed"}, {257, "vocab"}});
//   Tensor x;
//   {
//     ModelBuilder::Scope scope = b.EmbeddingLayer();
//     x = Embedding(b, "word", b.Tokens(), "vocab embed");
//   }
//   ...
//   absl::StatusOr<Graph> graph = std::move(b).Finish();
//
// The result is a graph of the logical level: the forward pass of one micro-batch on one device. It
// says nothing of parallelism except through dim names, which a strategy may give axes to, and Pin.
//
// A mistake in a model never aborts. It is recorded with the place of the user's call; the value
// that could not be made stands for itself in later calls, which then add no errors of their own;
// Finish() returns all of them as one status.

#ifndef MGC_FRONTENDS_BUILDER_H_
#define MGC_FRONTENDS_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"
#include "graph/ir/graph.h"
#include "graph/types/attrs.h"
#include "graph/types/tensor_type.h"

namespace mgc {

#if defined(__has_builtin)
#if __has_builtin(__builtin_COLUMN)
#define MGC_CALL_COLUMN_ __builtin_COLUMN()
#endif
#endif
#ifndef MGC_CALL_COLUMN_
#define MGC_CALL_COLUMN_ 0
#endif

// A place in the user's code. As the default of a last parameter, `CallSite site =
// CallSite::Current()` is the place of the call; functions built from other functions pass theirs
// on.
struct CallSite {
  const char* file;  // as the compiler was given it
  int line;          // from 1
  int column;        // from 1; 0 where the compiler (GCC) does not tell

  static constexpr CallSite Current(const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE(), int column = MGC_CALL_COLUMN_) {
    return {file, line, column};
  }
};

#undef MGC_CALL_COLUMN_

class Adapter;  // frontends/adapter.h
class ModelBuilder;

// A value of a model that is being built. Copies stand for the same value. Default-constructed: no
// value, which options of layers take for "none".
class Tensor {
 public:
  Tensor() = default;
  bool empty() const { return builder_ == nullptr; }
  friend bool operator==(Tensor a, Tensor b) { return a.builder_ == b.builder_ && a.id_ == b.id_; }

 private:
  friend class ModelBuilder;
  Tensor(const ModelBuilder* builder, ValueId id) : builder_(builder), id_(id) {}
  const ModelBuilder* builder_ = nullptr;
  ValueId id_ = kNone;  // kNone with a builder: could not be made, and the reason is recorded
};

// How a parameter starts, whether weight decay applies to it, and whether it is trained at all.
struct ParamInit {
  std::string kind;  // `normal`, `zeros`, `ones`
  double std = 0;    // of `normal`, whose mean is 0
  bool decay = true;
  bool train = true;
  bool adapter = false;  // of an adapter, and not of the model that it stands beside
};
ParamInit NormalInit(double std);  // a weight matrix or table: decays
ParamInit ZerosInit();             // a bias: does not
ParamInit OnesInit();              // a norm weight: does not
ParamInit Frozen(ParamInit init);  // stays as it starts, or as it is loaded

class ModelBuilder {
 public:
  // `dims` are the model's named dims with their sizes: `batch` and `seq` of one micro-batch, and
  // what the parameters have. Layers use `embed`, `heads`, `kv_heads`, `head_dim`, `mlp`, `vocab`.
  ModelBuilder(absl::string_view name, std::vector<Dim> dims, CallSite site = CallSite::Current());
  ModelBuilder(const ModelBuilder&) = delete;
  ModelBuilder& operator=(const ModelBuilder&) = delete;

  // While it lives, paths begin with its name, and nodes belong to its layer. Scopes nest; they end
  // in reverse order.
  class Scope {
   public:
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class ModelBuilder;
    Scope(ModelBuilder* builder, absl::string_view name);
    ModelBuilder* builder_;
    size_t outer_;  // length of the path outside
  };
  [[nodiscard]] Scope In(absl::string_view name) { return Scope(this, name); }
  // The parts of a model, in this order: `embedding`, `layers.0`, `layers.1`, ..., `head` (where
  // loss terms belong). Pipeline cuts lie between them. Nodes outside belong to the part last
  // entered, at first to the embedding. Another order is an error.
  [[nodiscard]] Scope EmbeddingLayer(CallSite site = CallSite::Current());
  [[nodiscard]] Scope Layer(int index, CallSite site = CallSite::Current());
  [[nodiscard]] Scope Head(CallSite site = CallSite::Current());

  // `name` below the open scopes, e.g. `layers.3.mlp.up`; an empty name is the scope itself.
  std::string Path(absl::string_view name) const;

  // A parameter of path Path(name), trained unless it is Frozen. `dims` are names of dims, and
  // sizes for dims without a name, between spaces: `embed heads head_dim`. A path names one
  // parameter; use its Tensor again to share it.
  Tensor Param(absl::string_view name, absl::string_view dims, const ParamInit& init,
               CallSite site = CallSite::Current());

  // Parameters from here on are not trained: they stay as they start, or as they are loaded.
  void KeepParams() { keeps_params_ = true; }

  // Linear layers from here on have beside them what this adds, which is there until Finish, and
  // parameters but its own are kept. Once, before all layers; its dim `adapter` is a new one.
  void AdaptWith(Adapter* adapter, CallSite site = CallSite::Current());
  Adapter* adapter() const { return adapter_; }  // null: there is none

  // A tensor that a step leaves for the next, of a model that is asked (graph/ir/results.h); `dims`
  // as Param has them. Keep says what is left there: what a node has written into it.
  Tensor State(absl::string_view name, absl::string_view dims, CallSite site = CallSite::Current());
  void Keep(Tensor state, Tensor written, CallSite site = CallSite::Current());

  // The data of one micro-batch, each one input however often it is asked for.
  Tensor Tokens(CallSite site = CallSite::Current());   // i64[batch, seq]
  Tensor Targets(CallSite site = CallSite::Current());  // i64[batch, seq], the tokens to predict
  Tensor Weights(CallSite site = CallSite::Current());  // f32[batch, seq], of each target's loss
  // A data input of the model's own; `dims` as Param has them, the first of them `batch`: it counts
  // samples. Asked for again, it must be of the same type.
  Tensor Data(absl::string_view name, absl::string_view dims, DType dtype,
              CallSite site = CallSite::Current());

  // Appends op `op` of graph/ops and returns its first result.
  Tensor Op(absl::string_view op, const std::vector<Tensor>& operands, Attrs attrs = {},
            CallSite site = CallSite::Current());
  // As Op, with all results; none when there is no such op.
  std::vector<Tensor> OpAll(absl::string_view op, const std::vector<Tensor>& operands,
                            Attrs attrs = {}, CallSite site = CallSite::Current());

  // `x` with the user's own sharding, which wins over every rule: one entry per dim, `-` for whole
  // or names of mesh axes, major first, e.g. `dp,-,tp.0*tp.1`. The value as produced keeps its
  // own: a pin is a node of its own (`reshard` with pin 1 and the text).
  Tensor Pin(Tensor x, absl::string_view sharding, CallSite site = CallSite::Current());

  // A loss term, a scalar; `weight` is the seed of its backward. Terms are not added up.
  void Loss(absl::string_view name, Tensor x, double weight = 1.0,
            CallSite site = CallSite::Current());
  // A value that training asks for by name: `count`, the tokens that the losses sum over.
  void Report(absl::string_view name, Tensor x, CallSite site = CallSite::Current());

  // The type of `x`, or null when it could not be made. An empty Tensor and one of another builder
  // are errors. Valid until the next value is made.
  const TensorType* Type(Tensor x, CallSite site = CallSite::Current());
  // Path(name) as the key of a random stream. Two streams of one key would be equal: an error.
  std::string RandomKey(absl::string_view name, CallSite site = CallSite::Current());
  // Size of a named dim; 0 when there is none, which is an error.
  int64_t Size(absl::string_view dim, CallSite site = CallSite::Current());
  // The value that stands for what could not be made, after its error was recorded.
  Tensor Failed() const { return Tensor(this, kNone); }
  // Records an error of the model and returns Failed().
  Tensor Fail(absl::string_view message, CallSite site);

  // The graph; or InvalidArgument with one line `file:line: ...` per mistake, in the order
  // they were made (at most 20). A model needs a loss and a use of every parameter.
  absl::StatusOr<Graph> Finish() &&;

 private:
  struct ParamUse {
    ValueId value;
    CallSite site;
  };

  const Dim* FindDim(absl::string_view name) const;
  bool ParseDims(absl::string_view text, std::vector<Dim>* dims, CallSite site);
  Tensor AddInput(const std::string& path, TensorType type, InputKind kind, Attrs attrs,
                  CallSite site);
  bool CheckSize(const TensorType& type, CallSite site);
  bool CheckOperands(absl::string_view op, const std::vector<Tensor>& operands,
                     std::vector<ValueId>* ids, CallSite site);
  void AddOutput(GraphOutput output, Tensor x, CallSite site);
  void EnterLayer(int layer, CallSite site);
  Node NodeLike(CallSite site);
  void CheckParamUse();

  GraphBuilder graph_;
  std::vector<Dim> dims_;
  std::string path_;  // of the open scopes
  bool keeps_params_ = false;
  Adapter* adapter_ = nullptr;
  int layer_ = kEmbeddingLayer;
  int num_layers_ = 0;
  bool in_head_ = false;
  std::vector<ParamUse> params_;
  absl::flat_hash_set<std::string> random_keys_;
  Diagnostics errors_;
};

}  // namespace mgc

#endif  // MGC_FRONTENDS_BUILDER_H_
