#include "tools/benchmarks/generation.h"

#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/compile.h"
#include "passes/graph/quantize.h"
#include "runtime/generate/generator.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

constexpr uint64_t kSeed = 1;

// Neighbours far apart in the vocabulary.
int32_t PromptToken(int64_t text, int64_t place, int64_t vocab) {
  return static_cast<int32_t>((place * 7919 + text * 104729 + 3) % vocab);
}

absl::StatusOr<Plan> CompileFor(NextToken next_token, const GenerationCase& generation,
                                const ModelConfig& config, DType type, const Machine& machine) {
  ModelOptions model;
  model.next_token = next_token;
  model.kept = generation.prompt_tokens + generation.new_tokens;
  CompileOptions options;
  options.machine = machine;
  ParallelConfig& parallel = options.parallel;
  parallel.compute_type = type;
  parallel.micro_batch_size = parallel.global_batch_size = generation.texts;
  parallel.seq_length = next_token == NextToken::kPrompt ? generation.prompt_tokens : 1;
  MGC_ASSIGN_OR_RETURN(Graph graph,
                       BuildModel(config, generation.texts, parallel.seq_length, model));
  if (generation.int8) {
    MGC_ASSIGN_OR_RETURN(graph, Quantize(graph));
  }
  return Compile(graph, DimsOf(config), options);
}

class Generation : public BenchSide {
 public:
  explicit Generation(const GenerationCase& generation) : generation_(generation) {}

  absl::Status Open(const ModelConfig& config, DType type, const Machine& machine, int workers) {
    MGC_ASSIGN_OR_RETURN(prompt_,
                         CompileFor(NextToken::kPrompt, generation_, config, type, machine));
    MGC_ASSIGN_OR_RETURN(token_, CompileFor(NextToken::kToken, generation_, config, type, machine));
    const std::vector<KernelEntry> kernels = CpuKernels();
    GenerateOptions options;
    options.executor.kernels = kernels;
    options.executor.workers = workers;
    MGC_ASSIGN_OR_RETURN(generator_, Generator::Create(prompt_, &token_, options));
    InitializeParameters(kSeed, generator_->executor());
    for (int64_t text = 0; text < generation_.texts; ++text) {
      GenerateRequest request;
      // The first comes with the prompt.
      request.most_tokens =
          1 + (generation_.part == TextPart::kTokens ? generation_.new_tokens : 0);
      for (int64_t place = 0; place < generation_.prompt_tokens; ++place) {
        request.prompt.push_back(PromptToken(text, place, config.vocab));
      }
      requests_.push_back(std::move(request));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<StepTime> Step() override {
    const Stopwatch watch;
    absl::optional<StepTime> prompt;
    const auto on_token = [&](int64_t /*request*/, int32_t /*token*/) {
      if (!prompt.has_value()) prompt = watch.Read();
    };
    MGC_RETURN_IF_ERROR(generator_->Run(requests_, on_token).status());
    StepTime time = watch.Read();
    if (generation_.part == TextPart::kTokens && prompt.has_value()) {
      time.seconds -= prompt->seconds;
      time.cpu_seconds -= prompt->cpu_seconds;
    }
    return time;
  }

  Profile profile() const override {
    Profile profile;
    profile.peak_bytes = generator_->executor().MeasuredPeak();
    return profile;
  }

 private:
  const GenerationCase generation_;
  Plan prompt_, token_;
  std::unique_ptr<Generator> generator_;
  std::vector<GenerateRequest> requests_;
};

}  // namespace

absl::string_view NameOf(TextPart part) { return part == TextPart::kPrompt ? "prompt" : "tokens"; }

absl::StatusOr<std::unique_ptr<BenchSide>> GenerationSide(const GenerationCase& generation,
                                                          const ModelConfig& config, DType type,
                                                          const Machine& machine, int workers) {
  auto side = std::make_unique<Generation>(generation);
  MGC_RETURN_IF_ERROR(side->Open(config, type, machine, workers));
  return side;
}

}  // namespace mgc
