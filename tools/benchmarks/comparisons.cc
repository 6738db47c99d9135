#include "tools/benchmarks/comparisons.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/types/tensor_type.h"
#include "passes/config/parallel_config.h"
#include "tools/benchmarks/child_side.h"
#include "tools/benchmarks/products.h"
#include "tools/benchmarks/training.h"

namespace mgc {
namespace {

constexpr int64_t kSequences = 4;
constexpr int64_t kPipelineSequences = 32;
constexpr int64_t kSequenceLength = 256;
constexpr int64_t kHeadLayers = 4;  // whose time the head takes
// Of the memory that PyTorch needs for the same step.
constexpr double kMostMemory = 0.6;

// One rank, one micro-batch.
ParallelConfig OneRank(DType type) {
  ParallelConfig config;
  config.micro_batch_size = config.global_batch_size = kSequences;
  config.seq_length = kSequenceLength;
  config.compute_type = type;
  return config;
}

// Two stages of about the same time.
std::string PipelineLayout(int64_t layers) {
  const int64_t first = std::min(layers, (layers + kHeadLayers) / 2);
  const int64_t last = layers - first;
  return absl::StrCat("Et*", first, "|", last > 0 ? absl::StrCat("t*", last) : "", "L");
}

// Many micro-batches of one sequence.
ParallelConfig ManyMicroBatches(DType type) {
  ParallelConfig config = OneRank(type);
  config.micro_batch_size = 1;
  config.global_batch_size = kPipelineSequences;
  return config;
}

class Builder {
 public:
  explicit Builder(BenchSetting setting) : setting_(std::move(setting)) {}

  int64_t layers() const { return setting_.model.layers; }

  void Start(absl::string_view name, const std::string& what, int64_t sequences) {
    comparison_ = {};
    comparison_.name = std::string(name);
    comparison_.title = absl::StrCat(what, ", ", sequences, " x ", kSequenceLength, " tokens");
    comparison_.tokens = sequences * kSequenceLength;
  }

  // Each returns the side's index.
  int Products(ProductsBy by, DType type) {
    const std::string name = absl::StrCat(
        "products, ", by == ProductsBy::kOneDnn ? "oneDNN" : "ours", ", ", NameOf(type));
    return Add(name, [=, setting = setting_] {
      return ProductRunner::Create(ProductsOfStep(setting.model, kSequences, kSequenceLength), by,
                                   type, setting.workers);
    });
  }
  int Training(absl::string_view layout, const ParallelConfig& parallel) {
    const std::string name =
        absl::StrCat("training, ", layout, ", ", NameOf(parallel.compute_type));
    return Add(name, [=, setting = setting_]() -> absl::StatusOr<std::unique_ptr<BenchSide>> {
      return TrainingSteps::Create(setting.model, parallel, setting.machine, setting.workers);
    });
  }
  int Torch(DType type, bool compile) {
    std::vector<std::string> command = setting_.torch;
    const auto give = [&](absl::string_view flag, const auto& value) {
      command.push_back(std::string(flag));
      command.push_back(absl::StrCat(value));
    };
    give("--layers", setting_.model.layers);
    give("--batch", kSequences);
    give("--seq", kSequenceLength);
    give("--threads", setting_.workers);
    give("--dtype", NameOf(type));
    if (compile) command.emplace_back("--compile");
    return Add(absl::StrCat("PyTorch, ", compile ? "compiled" : "eager", ", ", NameOf(type)),
               [command] { return ChildSide::Create(command); });
  }
  void Expect(std::vector<int> sides, std::vector<int> peers, double least) {
    comparison_.claims.push_back({std::move(sides), std::move(peers), least});
  }
  void ExpectMemory(int side, int peer) {
    comparison_.memory_claims.push_back({side, peer, kMostMemory});
  }
  Comparison Take() { return std::move(comparison_); }

 private:
  int Add(std::string name, std::function<absl::StatusOr<std::unique_ptr<BenchSide>>()> make) {
    comparison_.sides.push_back({std::move(name), std::move(make)});
    return static_cast<int>(comparison_.sides.size()) - 1;
  }

  const BenchSetting setting_;
  Comparison comparison_;
};

// Training beside its limit, the faster of two ways to do its products alone.
Comparison OneRankBesideProducts(Builder b) {
  b.Start(kOneRank, "one rank", kSequences);
  int training[2] = {};
  for (const DType type : {DType::kF32, DType::kBF16}) {
    const bool is_narrow = type == DType::kBF16;
    const int one_dnn = b.Products(ProductsBy::kOneDnn, type);
    const int own = b.Products(ProductsBy::kOwn, type);
    training[is_narrow] = b.Training("one rank", OneRank(type));
    b.Expect({training[is_narrow]}, {one_dnn, own}, is_narrow ? 0.75 : 0.98);
  }
  b.Expect({training[1]}, {training[0]}, 1.8);
  return b.Take();
}

Comparison OneRankBesideTorch(Builder b, DType type) {
  b.Start(kOneRank, absl::StrCat("one rank beside PyTorch, ", NameOf(type)), kSequences);
  const int training = b.Training("one rank", OneRank(type));
  const int eager = b.Torch(type, /*compile=*/false);
  const int compiled = b.Torch(type, /*compile=*/true);
  b.Expect({training}, {eager, compiled}, 1.35);
  b.ExpectMemory(training, eager);
  b.ExpectMemory(training, compiled);
  return b.Take();
}

Comparison TwoRanks(Builder b, DType type) {
  b.Start(kTwoRanks, absl::StrCat("two ranks, ", NameOf(type)), kSequences);
  const double least = type == DType::kBF16 ? 0.93 : 0.97;
  ParallelConfig data = OneRank(type), tensor = data;
  data.world_size = tensor.world_size = tensor.tp = 2;
  data.micro_batch_size = kSequences / 2;
  ParallelConfig pieces = data;
  pieces.zero = 1;
  const int one_rank = b.Training("one rank", OneRank(type));
  const int data_parallel[] = {b.Training("dp 2", data), b.Training("dp 2, ZeRO-1", pieces)};
  const int tensor_parallel = b.Training("tp 2", tensor);
  b.Expect({data_parallel[0], data_parallel[1]}, {one_rank}, least);
  b.Expect({tensor_parallel}, {one_rank}, least);
  return b.Take();
}

Comparison Pipeline(Builder b, DType type) {
  b.Start(kPipeline, absl::StrCat("a pipeline, ", NameOf(type)), kPipelineSequences);
  ParallelConfig pipeline = ManyMicroBatches(type);
  pipeline.world_size = pipeline.pp = 2;
  ParallelConfig by_hand = pipeline;
  by_hand.layout.layout = PipelineLayout(b.layers());
  const int one_rank = b.Training("one rank", ManyMicroBatches(type));
  const int even = b.Training("pp 2", pipeline);
  const int laid_out = b.Training(absl::StrCat("pp 2, ", *by_hand.layout.layout), by_hand);
  b.Expect({even, laid_out}, {one_rank}, type == DType::kBF16 ? 0.88 : 0.92);
  return b.Take();
}

Comparison EightRanks(Builder b) {
  b.Start(kEightRanks, "eight ranks", kSequences);
  ParallelConfig eight = OneRank(DType::kF32);
  eight.world_size = 8;
  eight.tp = eight.pp = 2;
  eight.micro_batch_size = 1;
  const int one_rank = b.Training("one rank", OneRank(DType::kF32));
  b.Expect({b.Training("tp 2, pp 2, dp 2", eight)}, {one_rank}, 0.75);
  return b.Take();
}

}  // namespace

std::vector<Comparison> ComparisonsNamed(absl::string_view name, const BenchSetting& setting) {
  const Builder builder(setting);
  if (name == kEightRanks) return {EightRanks(builder)};
  std::vector<Comparison> comparisons;
  if (name == kOneRank) comparisons.push_back(OneRankBesideProducts(builder));
  if (name == kOneRank && setting.torch.empty()) return comparisons;
  const auto make = name == kOneRank ? OneRankBesideTorch : name == kTwoRanks ? TwoRanks : Pipeline;
  for (const DType type : {DType::kF32, DType::kBF16}) comparisons.push_back(make(builder, type));
  return comparisons;
}

}  // namespace mgc
