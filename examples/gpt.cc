// A small GPT, written with the builder: compiles it for four ranks, proves the plan, trains.
//   bazel run //examples:gpt -- FILE      any file: its bytes are the tokens
#include <iostream>

#include "frontends/layers.h"
#include "frontends/losses.h"
#include "graph/base/status.h"
#include "graph/verify/verify.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/compile.h"
#include "runtime/metrics/metrics.h"
#include "runtime/train/trainer.h"
#include "tools/views/show.h"

namespace mgc {
namespace {

// Layers, hidden, heads, kv heads, size of a head, feed-forward, vocabulary, positions.
constexpr ModelDims kDims = {2, 64, 4, 4, 16, 256, 257, 64};

absl::StatusOr<Graph> SmallGpt(int64_t batch, int64_t seq) {
  const auto& [layers, hidden, heads, kv_heads, head_dim, ffn, vocab, positions, _] = kDims;
  ModelBuilder b("small_gpt", {{batch, "batch"},
                               {seq, "seq"},
                               {hidden, "embed"},
                               {heads, "heads"},
                               {kv_heads, "kv_heads"},
                               {head_dim, "head_dim"},
                               {ffn, "mlp"},
                               {vocab, "vocab"},
                               {positions, "position"}});
  Tensor x, words;
  {
    ModelBuilder::Scope embedding = b.EmbeddingLayer();
    x = Embedding(b, "word", b.Tokens(), "vocab embed", 0.02, &words);
    x = Add(b, {x, Embedding(b, "position", Positions(b), "position embed")});
  }
  for (int i = 0; i < layers; ++i) {
    ModelBuilder::Scope layer = b.Layer(i);
    x = Attention(b, "attention", LayerNorm(b, "norm1", x), x);
    x = Mlp(b, "mlp", LayerNorm(b, "norm2", x), x);
  }
  {
    ModelBuilder::Scope head = b.Head();
    CrossEntropyLoss(b, Logits(b, LayerNorm(b, "norm", x), words));
  }
  return std::move(b).Finish();
}

// 4 ranks in all: 2 by 2; 16 samples of 64 tokens a step, 4 at a time.
ParallelConfig FourRanks() {
  ParallelConfig config;
  config.world_size = 4;
  config.tp = config.pp = 2;
  config.sequence_parallel = true;
  config.micro_batch_size = 4;
  config.global_batch_size = 16;
  config.seq_length = 64;
  return config;
}

absl::Status Train(const std::string& data) {
  CompileOptions options;
  options.parallel = FourRanks();
  options.machine = MachinePresets()[0];
  MGC_ASSIGN_OR_RETURN(const Graph model, SmallGpt(4, 64));
  MGC_ASSIGN_OR_RETURN(Plan plan, Compile(model, kDims, options));
  MGC_RETURN_IF_ERROR(ProvePlan(&plan));
  std::cout << ShowText(plan) << "\n";

  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions train;
  train.kernels = kernels;
  train.data_path = data;
  train.lr.style = LrDecayStyle::kConstant;
  train.lr.max_lr = 3e-3;
  MGC_ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(plan, train));
  for (int step = 0; step < 20; ++step) {
    MGC_ASSIGN_OR_RETURN(const StepRecord record, trainer->Step());
    std::cout << StepLine(record) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) {
  const absl::Status status = mgc::Train(argc > 1 ? argv[1] : "");
  if (!status.ok()) std::cerr << "error: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
