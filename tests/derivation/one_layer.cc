#include "tests/derivation/one_layer.h"

#include <utility>

#include "frontends/layers.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/shard/partition.h"
#include "passes/graph/shard/shard.h"
#include "passes/graph/simplify.h"

namespace mgc {

Graph OneLayer(const LayerText& text, int64_t kv_heads) {
  ModelBuilder b("one_layer", {{4, "batch"},
                               {8, "seq"},
                               {16, "embed"},
                               {kHeads, "heads"},
                               {kv_heads, "kv_heads"},
                               {4, "head_dim"},
                               {24, "mlp"},
                               {13, "vocab"}});
  Tensor x;
  {
    ModelBuilder::Scope scope = b.EmbeddingLayer();
    x = Embedding(b, "word", b.Tokens(), "vocab embed");
  }
  {
    ModelBuilder::Scope scope = b.Layer(0);
    x = text(b, x);
  }
  ModelBuilder::Scope scope = b.Head();
  b.Loss("loss", b.Op("total", {x}));
  b.Report("count", b.Op("total", {b.Weights()}));
  return Must(std::move(b).Finish());
}

absl::StatusOr<Graph> LocalOf(const Graph& logical, const Mesh& mesh, const Strategy& strategy) {
  const Graph training = Simplify(Must(Differentiate(Simplify(logical))));
  MGC_ASSIGN_OR_RETURN(const Sharded sharded, Shard(training, mesh, strategy));
  return Partition(sharded.graph);
}

Graph LocalOf(const Graph& logical, const ParallelConfig& parallel, int64_t kv_heads) {
  const MeshStrategy bound =
      Must(BindStrategy(DefaultStrategy(), parallel, {{"kv_heads", kv_heads}}));
  return Must(LocalOf(logical, bound.mesh, bound.strategy));
}

Tensor Projected(ModelBuilder& b, const char* name, Tensor x, const char* spec, Tensor residual) {
  LinearOptions options;
  options.bias = true;
  options.residual = residual;
  return Linear(b, name, x, spec, options);
}

Tensor TwoProducts(ModelBuilder& b, Tensor x) {
  return Projected(b, "down", Projected(b, "up", x, "embed -> mlp", {}), "mlp -> embed", x);
}

CollectiveTable LayerKinds(const Graph& local, Phase phase) {
  return KindsOf(CollectivesOf(local, phase, 0));
}

}  // namespace mgc
