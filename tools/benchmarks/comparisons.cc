#include "tools/benchmarks/comparisons.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/units.h"
#include "graph/types/tensor_type.h"
#include "passes/config/parallel_config.h"
#include "tools/benchmarks/comparison_builder.h"
#include "tools/benchmarks/sums.h"

namespace mgc {
namespace {

constexpr int64_t kPipelineSequences = 32;
constexpr int64_t kHeadLayers = 4;  // whose time the head takes
// Of the speed of copies of as many bytes.
constexpr double kBesideCopies = 0.9;
// Of processes, of the speed of as many threads, of DDP, and of MPI's sums.
constexpr double kProcessesBesideThreads = 0.95;
constexpr double kProcessesBesideTorch = 1.3;
constexpr double kSumsBesideThreads = 0.67;
constexpr double kSumsBesideMpi = 5;
constexpr double kLibraryBesideMpi = 0.5;
// Of shared memory, of the speed of private memory.
constexpr double kSharedBesidePrivate = 0.95;
// Of saves, of the speed at which the disk takes as many bytes; and of a step, of the speed of what
// it is later for a save.
constexpr double kSaveBesideWriting = 0.8;
constexpr double kStallBesideStep = 10;
// Of the speed at which transformers goes on with the same texts.
constexpr double kBesideTransformers = 1.3;
constexpr int64_t kSumBytes[] = {4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20};

// One rank, one micro-batch.
ParallelConfig OneRank(DType type) {
  ParallelConfig config;
  config.micro_batch_size = config.global_batch_size = kSequences;
  config.seq_length = kSequenceLength;
  config.compute_type = type;
  return config;
}

// Layers of the first of two stages of about the same time.
int64_t FirstLayers(int64_t layers) { return std::min(layers, (layers + kHeadLayers) / 2); }

std::string PipelineLayout(int64_t layers) {
  const int64_t first = FirstLayers(layers);
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

// Training beside its limit, the faster of two ways to do its products alone.
Comparison OneRankBesideProducts(ComparisonBuilder b) {
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

Comparison OneRankBesideTorch(ComparisonBuilder b, DType type) {
  b.Start(kOneRank, absl::StrCat("one rank beside PyTorch, ", NameOf(type)), kSequences);
  const int training = b.Training("one rank", OneRank(type));
  const int eager = b.Torch("eager", type, "one");
  const int compiled = b.Torch("compiled", type, "one", {"--compile"});
  b.Expect({training}, {eager, compiled}, kBesideTorch);
  b.ExpectMemory(training, eager);
  b.ExpectMemory(training, compiled);
  return b.Take();
}

ParallelConfig DataParallel(DType type) {
  ParallelConfig config = OneRank(type);
  config.world_size = 2;
  config.micro_batch_size = kSequences / 2;
  return config;
}

ParallelConfig TensorParallel(DType type) {
  ParallelConfig config = OneRank(type);
  config.world_size = config.tp = 2;
  return config;
}

Comparison TwoRanks(ComparisonBuilder b, DType type) {
  b.Start(kTwoRanks, absl::StrCat("two ranks, ", NameOf(type)), kSequences);
  const double least = type == DType::kBF16 ? 0.93 : 0.97;
  ParallelConfig pieces = DataParallel(type);
  pieces.zero = 1;
  const int one_rank = b.Training("one rank", OneRank(type));
  const int data = b.Training("dp 2", DataParallel(type));
  const int in_pieces = b.Training("dp 2, ZeRO-1", pieces);
  const int tensor = b.Training("tp 2", TensorParallel(type));
  b.Expect({data, in_pieces}, {one_rank}, least);
  b.Expect({tensor}, {one_rank}, least);
  return b.Take();
}

ParallelConfig PipelineByHand(DType type, int64_t layers) {
  ParallelConfig config = ManyMicroBatches(type);
  config.world_size = config.pp = 2;
  config.layout.layout = PipelineLayout(layers);
  return config;
}

Comparison Pipeline(ComparisonBuilder b, DType type) {
  b.Start(kPipeline, absl::StrCat("a pipeline, ", NameOf(type)), kPipelineSequences);
  const ParallelConfig by_hand = PipelineByHand(type, b.layers());
  ParallelConfig pipeline = by_hand;
  pipeline.layout = {};
  const int one_rank = b.Training("one rank", ManyMicroBatches(type));
  const int even = b.Training("pp 2", pipeline);
  const int laid_out = b.Training(absl::StrCat("pp 2, ", *by_hand.layout.layout), by_hand);
  b.Expect({even, laid_out}, {one_rank}, type == DType::kBF16 ? 0.88 : 0.92);
  return b.Take();
}

// A layout of two ranks beside PyTorch's of the same name: apart from the others, since all at once
// would need too much memory.
Comparison DataBesideTorch(ComparisonBuilder b, DType type) {
  b.Start(kTwoRanks, absl::StrCat("dp 2 beside PyTorch, ", NameOf(type)), kSequences);
  const int own = b.Training("dp 2", DataParallel(type));
  b.ExpectBesideTorch(own, b.Torch("DDP", type, "dp2"));
  return b.Take();
}

Comparison TensorBesideTorch(ComparisonBuilder b, DType type) {
  b.Start(kTwoRanks, absl::StrCat("tp 2 beside PyTorch, ", NameOf(type)), kSequences);
  const int own = b.Training("tp 2", TensorParallel(type));
  b.ExpectBesideTorch(own, b.Torch("DTensor", type, "tp2"));
  return b.Take();
}

Comparison PipelineBesideTorch(ComparisonBuilder b, DType type) {
  b.Start(kPipeline, absl::StrCat("a pipeline beside PyTorch, ", NameOf(type)), kPipelineSequences);
  const ParallelConfig by_hand = PipelineByHand(type, b.layers());
  const std::string samples = absl::StrCat(kPipelineSequences);
  const int own = b.Training(absl::StrCat("pp 2, ", *by_hand.layout.layout), by_hand);
  const int torch = b.Torch("pipelining", type, "pp2",
                            {"--batch", samples, "--micro-batches", samples, "--first-layers",
                             absl::StrCat(FirstLayers(b.layers()))});
  b.ExpectBesideTorch(own, torch);
  return b.Take();
}

Comparison EightRanks(ComparisonBuilder b) {
  b.Start(kEightRanks, "eight ranks", kSequences);
  ParallelConfig eight = OneRank(DType::kF32);
  eight.world_size = 8;
  eight.tp = eight.pp = 2;
  eight.micro_batch_size = 1;
  const int one_rank = b.Training("one rank", OneRank(DType::kF32));
  b.Expect({b.Training("tp 2, pp 2, dp 2", eight)}, {one_rank}, 0.75);
  return b.Take();
}

Comparison Collectives(ComparisonBuilder b, DType type) {
  b.Start(kCollectives,
          absl::StrCat("collectives of two ranks, ", b.GradientElements(), " elements of ",
                       NameOf(type)),
          0);
  const int sums = b.Collective("all_reduce", type);
  const int copies = b.Copies("all_reduce", type);
  const int scatter = b.Collective("reduce_scatter", type);
  const int gather = b.Collective("all_gather", type);
  const int fewer_copies = b.Copies("all_gather", type);
  b.Expect({sums}, {copies}, kBesideCopies);
  b.Expect({scatter}, {fewer_copies}, kBesideCopies);
  b.Expect({gather}, {fewer_copies}, kBesideCopies);
  if (b.has_torch()) {
    b.Expect({sums},
             {b.Torch("gloo's all-reduce", type, "sums",
                      {"--elements", absl::StrCat(b.GradientElements())})},
             kBesideTorch);
  }
  return b.Take();
}

// Processes come first: they are forked, and what has threads is not to be.
Comparison Processes(ComparisonBuilder b) {
  b.Start(kProcesses, "two processes, f32", kSequences);
  const int processes = b.ProcessTraining("dp 2", DataParallel(DType::kF32));
  b.Expect({processes}, {b.Training("dp 2", DataParallel(DType::kF32))}, kProcessesBesideThreads);
  if (b.has_torch()) {
    b.Expect({processes}, {b.Torch("DDP", DType::kF32, "dp2")}, kProcessesBesideTorch);
  }
  return b.Take();
}

Comparison ProcessSums(ComparisonBuilder b, int64_t bytes) {
  b.Start(kProcessSums,
          absl::StrCat(SumsOfStep(bytes), " all-reduces of ", BytesText(bytes), ", f32"), 0);
  const bool is_large = bytes >= kSumBytes[std::size(kSumBytes) - 1];
  const int processes = b.SumsByProcesses(bytes);
  b.Expect({processes}, {b.SumsByThreads(bytes)}, kSumsBesideThreads);
  if (b.has_mpi()) {
    const int mpi = b.SumsByMpi(bytes);
    b.Expect({processes}, {mpi}, is_large ? kSumsBesideMpi : 1);
    b.Expect({b.SumsByLibrary(bytes)}, {mpi}, kLibraryBesideMpi);
  }
  return b.Take();
}

Comparison Memory(ComparisonBuilder b, const std::string& what,
                  ComparisonBuilder::MakeInMemory* make) {
  b.Start(kMemory, what, 0);
  const int own = b.In(MemoryKind::kPrivate, make);
  b.Expect({b.In(MemoryKind::kShared, make)}, {own}, kSharedBesidePrivate);
  return b.Take();
}

Comparison Texts(ComparisonBuilder b, absl::string_view name, DType type,
                 const GenerationCase& generation) {
  b.StartTexts(name, generation);
  const int own = b.Generation(generation, type);
  if (type != DType::kF32 || generation.int8) {
    GenerationCase wide = generation;
    wide.int8 = false;
    b.Generation(wide, DType::kF32);
  }
  if (b.has_transformers()) {
    b.Expect({own}, {b.Transformers(generation, type)}, kBesideTransformers);
  }
  return b.Take();
}

// `ranks` hold columns and rows of the tensors.
Comparison Saves(ComparisonBuilder b, int ranks) {
  b.Start(kCheckpoints, absl::StrCat("a checkpoint, tp ", ranks), 0);
  ParallelConfig parallel = OneRank(DType::kF32);
  parallel.world_size = parallel.tp = ranks;
  const int save = b.Checkpoint("a save", CheckpointWork::kSave, parallel);
  b.Expect({save}, {b.Checkpoint("plain writing", CheckpointWork::kWrite, parallel)},
           kSaveBesideWriting);
  return b.Take();
}

Comparison SavesInSteps(ComparisonBuilder b) {
  b.Start(kCheckpoints, "a step and a save in it", kSequences);
  const ParallelConfig parallel = OneRank(DType::kF32);
  const int stall = b.Checkpoint("its stall", CheckpointWork::kStall, parallel);
  b.Expect({stall}, {b.Checkpoint("a step", CheckpointWork::kStep, parallel)}, kStallBesideStep);
  return b.Take();
}

}  // namespace

std::vector<Comparison> ComparisonsNamed(absl::string_view name, const BenchSetting& setting) {
  const ComparisonBuilder builder(setting);
  if (name == kEightRanks) return {EightRanks(builder)};
  std::vector<Comparison> comparisons;
  const auto add = [&](auto make) {
    for (const DType type : {DType::kF32, DType::kBF16}) comparisons.push_back(make(builder, type));
  };
  if (name == kOneRank) comparisons.push_back(OneRankBesideProducts(builder));
  if (name == kTwoRanks) add(TwoRanks);
  if (name == kPipeline) add(Pipeline);
  if (name == kCollectives) add(Collectives);
  if (name == kProcesses) comparisons.push_back(Processes(builder));
  if (name == kMemory) {
    comparisons.push_back(Memory(builder, "12 products of 1024 x 768 x 3072, f32", ProductsIn));
    comparisons.push_back(Memory(builder, "20 copies of 64 MiB", CopiesIn));
  }
  if (name == kCheckpoints) {
    comparisons = {Saves(builder, 1), Saves(builder, 2), SavesInSteps(builder)};
  }
  if (name == kGeneration || name == kNarrowGeneration || name == kQuantizedGeneration) {
    const DType type = name == kNarrowGeneration ? DType::kBF16 : DType::kF32;
    for (const TextPart part : {TextPart::kPrompt, TextPart::kTokens}) {
      for (const int64_t texts : {1, 4}) {
        GenerationCase generation;
        generation.part = part;
        generation.texts = texts;
        generation.int8 = name == kQuantizedGeneration;
        comparisons.push_back(Texts(builder, name, type, generation));
      }
    }
  }
  if (name == kProcessSums) {
    for (const int64_t bytes : kSumBytes) comparisons.push_back(ProcessSums(builder, bytes));
  }
  if (!builder.has_torch()) return comparisons;
  if (name == kOneRank) add(OneRankBesideTorch);
  if (name == kTwoRanks) add(DataBesideTorch);
  if (name == kTwoRanks) add(TensorBesideTorch);
  if (name == kPipeline) add(PipelineBesideTorch);
  return comparisons;
}

}  // namespace mgc
