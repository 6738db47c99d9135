#include "tools/benchmarks/comparison_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "tools/benchmarks/child_side.h"
#include "tools/benchmarks/collectives.h"
#include "tools/benchmarks/process_side.h"
#include "tools/benchmarks/sums.h"
#include "tools/benchmarks/training.h"

namespace mgc {
namespace {

// Of the memory that PyTorch needs for the same step.
constexpr double kMostMemory = 0.6;

// Words for a command: a flag and its value.
template <class Value>
void Give(absl::string_view flag, const Value& value, std::vector<std::string>* command) {
  command->push_back(std::string(flag));
  command->push_back(absl::StrCat(value));
}

}  // namespace

void ComparisonBuilder::Start(absl::string_view name, const std::string& what, int64_t sequences) {
  comparison_ = {};
  comparison_.name = std::string(name);
  comparison_.title = what;
  if (sequences > 0) {
    absl::StrAppend(&comparison_.title, ", ", sequences, " x ", kSequenceLength, " tokens");
  }
  comparison_.tokens = sequences * kSequenceLength;
}

void ComparisonBuilder::StartTexts(absl::string_view name, const GenerationCase& generation) {
  const int64_t each =
      generation.part == TextPart::kPrompt ? generation.prompt_tokens : generation.new_tokens;
  comparison_ = {};
  comparison_.name = std::string(name);
  comparison_.title =
      absl::StrCat(generation.part == TextPart::kPrompt ? "prompts, " : "tokens behind prompts, ",
                   generation.texts, " x ", each, " tokens");
  comparison_.tokens = generation.tokens();
}

int ComparisonBuilder::Products(ProductsBy by, DType type) {
  const std::string name =
      absl::StrCat("products, ", by == ProductsBy::kOneDnn ? "oneDNN" : "ours", ", ", NameOf(type));
  return Add(name, [=, setting = setting_] {
    return ProductRunner::Create(ProductsOfStep(setting.model, kSequences, kSequenceLength), by,
                                 type, setting.workers);
  });
}

int ComparisonBuilder::Training(absl::string_view layout, const ParallelConfig& parallel) {
  const std::string name = absl::StrCat("training, ", layout, ", ", NameOf(parallel.compute_type));
  return Add(name, [=, setting = setting_]() -> absl::StatusOr<std::unique_ptr<BenchSide>> {
    return TrainingSteps::Create(setting.model, parallel, setting.machine, setting.workers);
  });
}

int ComparisonBuilder::ProcessTraining(absl::string_view layout, const ParallelConfig& parallel) {
  const std::string name = absl::StrCat("processes, ", layout, ", ", NameOf(parallel.compute_type));
  return Add(name, [=, setting = setting_]() -> absl::StatusOr<std::unique_ptr<BenchSide>> {
    MGC_ASSIGN_OR_RETURN(const Plan plan, CompileModel(setting.model, parallel, setting.machine));
    const auto make = [=](World& world) -> absl::StatusOr<std::unique_ptr<BenchSide>> {
      const int workers = std::max(1, setting.workers / world.map.processes());
      return TrainingSteps::Create(setting.model, parallel, setting.machine, workers, &world);
    };
    return ProcessSide::Create(name, plan, make);
  });
}

int ComparisonBuilder::Torch(absl::string_view name, DType type, absl::string_view layout,
                             const std::vector<std::string>& flags) {
  std::vector<std::string> command = setting_.torch;
  Give("--layers", setting_.model.layers, &command);
  Give("--seq", kSequenceLength, &command);
  Give("--threads", setting_.workers, &command);
  Give("--dtype", NameOf(type), &command);
  Give("--layout", layout, &command);
  command.insert(command.end(), flags.begin(), flags.end());
  return Add(absl::StrCat("PyTorch, ", name, ", ", NameOf(type)),
             [command] { return ChildSide::Create(command); });
}

int ComparisonBuilder::Checkpoint(const std::string& name, CheckpointWork work,
                                  const ParallelConfig& parallel) {
  return Add(name, [=, setting = setting_] {
    return CheckpointSide(work, setting.model, parallel, setting.machine, setting.workers);
  });
}

int ComparisonBuilder::Generation(const GenerationCase& generation, DType type) {
  const absl::string_view weights = generation.int8 ? "int8" : NameOf(type);
  return Add(absl::StrCat("generation, ", weights), [=, setting = setting_] {
    return GenerationSide(generation, setting.model, type, setting.machine, setting.workers);
  });
}

int ComparisonBuilder::Transformers(const GenerationCase& generation, DType type) {
  std::vector<std::string> command = setting_.transformers;
  Give("--layers", setting_.model.layers, &command);
  Give("--threads", setting_.workers, &command);
  Give("--dtype", NameOf(type), &command);
  Give("--part", NameOf(generation.part), &command);
  Give("--batch", generation.texts, &command);
  Give("--prompt", generation.prompt_tokens, &command);
  Give("--tokens", generation.new_tokens, &command);
  return Add(absl::StrCat("transformers, ", NameOf(type)),
             [command] { return ChildSide::Create(command); });
}

int ComparisonBuilder::SumsByProcesses(int64_t bytes) {
  return Add("two processes", [bytes] { return SumsOfProcesses(bytes); });
}

int ComparisonBuilder::SumsByThreads(int64_t bytes) {
  return Add("threads",
             [bytes, workers = setting_.workers] { return SumsOfThreads(bytes, workers); });
}

int ComparisonBuilder::In(MemoryKind kind, MakeInMemory* make) {
  return Add(std::string(NameOf(kind)),
             [kind, make, workers = setting_.workers] { return make(kind, workers); });
}

int ComparisonBuilder::Collective(absl::string_view op, DType type) {
  return Add(absl::StrCat(op, ", ", NameOf(type)),
             [op, type, elements = GradientElements(), workers = setting_.workers] {
               return CollectiveRunner::Create(op, elements, type, workers);
             });
}

int ComparisonBuilder::Copies(absl::string_view op, DType type) {
  return Add(absl::StrCat("copies, as much as ", op, ", ", NameOf(type)),
             [op, type, elements = GradientElements(), workers = setting_.workers] {
               return CopyRunner::Create(op, elements, type, workers);
             });
}

void ComparisonBuilder::Expect(std::vector<int> sides, std::vector<int> peers, double least) {
  comparison_.claims.push_back({std::move(sides), std::move(peers), least});
}

void ComparisonBuilder::ExpectMemory(int side, int peer) {
  comparison_.memory_claims.push_back({side, peer, kMostMemory});
}

void ComparisonBuilder::ExpectBesideTorch(int side, int torch) {
  Expect({side}, {torch}, kBesideTorch);
  ExpectMemory(side, torch);
}

int64_t ComparisonBuilder::GradientElements() const {
  const ModelConfig& model = setting_.model;
  const int64_t heads = 2 * (model.heads + model.kv_heads) * model.head_dim;
  return model.layers * model.hidden * (heads + 2 * model.ffn);
}

int ComparisonBuilder::SumsUnderMpi(std::string name, int64_t bytes,
                                    const std::vector<std::string>& flags) {
  std::vector<std::string> command = setting_.mpi;
  command.push_back(absl::StrCat(bytes));
  command.push_back(absl::StrCat(SumsOfStep(bytes)));
  command.insert(command.end(), flags.begin(), flags.end());
  return Add(std::move(name), [command] { return ChildSide::Create(command); });
}

int ComparisonBuilder::Add(std::string name,
                           std::function<absl::StatusOr<std::unique_ptr<BenchSide>>()> make) {
  comparison_.sides.push_back({std::move(name), std::move(make)});
  return static_cast<int>(comparison_.sides.size()) - 1;
}

}  // namespace mgc
