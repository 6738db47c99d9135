#include "tests/generate/tiny_texts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/eval/eval.h"
#include "graph/eval/models/scalar.h"
#include "graph/ir/step_names.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/compile.h"
#include "passes/graph/quantize.h"
#include "runtime/generate/read_result.h"

namespace mgc {

std::string NameOf(const Layout& layout) {
  return absl::StrCat("tp", layout.tp, "pp", layout.pp, "dp", layout.dp, layout.stages);
}

ModelConfig ConfigOf(const std::string& preset) {
  ModelConfig config = *LoadModelPreset(preset);
  config.initializer_range = 0.2;  // logits far apart
  return config;
}

Graph GraphOf(const ModelConfig& config, NextToken next_token) {
  ModelOptions model;
  model.next_token = next_token;
  model.kept = kWholeTokens;
  const int64_t seq = next_token == NextToken::kToken    ? 1
                      : next_token == NextToken::kPrompt ? kPromptTokens
                                                         : kWholeTokens;
  return *BuildModel(config, kRequests, seq, model);
}

absl::StatusOr<Plan> PlanFor(const ModelConfig& config, NextToken next_token, const Layout& layout,
                             DType type, Weights weights) {
  Graph graph = GraphOf(config, next_token);
  if (weights == Weights::kWholeNumbers) {
    MGC_ASSIGN_OR_RETURN(graph, Quantize(graph));
  }
  CompileOptions options;
  ParallelConfig& parallel = options.parallel;
  parallel.tp = layout.tp;
  parallel.pp = layout.pp;
  parallel.world_size = layout.tp * layout.pp * layout.dp;
  parallel.global_batch_size = kRequests;
  parallel.micro_batch_size = kRequests / layout.dp;
  parallel.compute_type = type;
  parallel.seq_length = graph.type(graph.FindValue(kTokensInput)).dims[1].size;
  if (!layout.stages.empty()) parallel.layout.layout = layout.stages;
  options.machine = *FindMachinePreset("cpu-threads");
  MGC_ASSIGN_OR_RETURN(Plan plan, Compile(graph, DimsOf(config), options));
  MGC_RETURN_IF_ERROR(ProvePlan(&plan));
  return plan;
}

std::vector<GenerateRequest> Requests(double temperature) {
  std::vector<GenerateRequest> requests(kRequests);
  requests[0].prompt = {7, 100, 3};
  for (int64_t i = 0; i < kPromptTokens; ++i) {
    requests[1].prompt.push_back(static_cast<int32_t>((i * i + 5) % 250));
  }
  for (size_t r = 0; r < requests.size(); ++r) {
    requests[r].most_tokens = kNewTokens - 4 * static_cast<int64_t>(r);
    requests[r].sampling.temperature = temperature;
    requests[r].sampling.seed = r;
  }
  return requests;
}

GenerateOptions OnCpu() {
  static const std::vector<KernelEntry>& kernels = *new std::vector<KernelEntry>(CpuKernels());
  GenerateOptions options;
  options.executor.kernels = kernels;
  return options;
}

absl::StatusOr<Texts> TextsOf(const Plan& first, const Plan* next,
                              const std::vector<std::vector<GenerateRequest>>& runs) {
  GenerateOptions options = OnCpu();
  options.executor.workers = 2;
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator,
                       Generator::Create(first, next, options));
  InitializeParameters(kSeed, generator->executor());
  Texts texts;
  for (const std::vector<GenerateRequest>& requests : runs) {
    MGC_ASSIGN_OR_RETURN(const std::vector<GeneratedText> made, generator->Run(requests));
    for (const GeneratedText& text : made) {
      texts.tokens.insert(texts.tokens.end(), text.tokens.begin(), text.tokens.end());
    }
    if (requests[0].sampling.temperature > 0) continue;
    MGC_ASSIGN_OR_RETURN(texts.logits, ReadResult(generator->executor(), kLogitsResult));
  }
  auto parameters = GatherTensors(generator->executor(), TensorRole::kParam);
  if (!absl::IsFailedPrecondition(parameters.status())) {
    MGC_ASSIGN_OR_RETURN(texts.parameters, std::move(parameters));
  }
  return texts;
}

std::vector<double> LogitsInDouble(const Graph& graph, const Texts& texts) {
  using Values = HostTensor<double>;
  GraphEvaluator<DoubleModel> evaluator(graph, DoubleModel(), 0);
  for (const GraphInput& input : graph.inputs()) {
    evaluator.SetZero(input.value);
    for (const LogicalTensor& parameter : texts.parameters) {
      if (parameter.name != graph.value(input.value).name) continue;
      auto values = Values::Make(parameter.shape, false);
      values.real.assign(parameter.values.begin(), parameter.values.end());
      evaluator.Set(input.value, values);
    }
  }
  std::vector<int32_t> text = Requests(0)[0].prompt;
  text.insert(text.end(), texts.tokens.begin(), texts.tokens.begin() + kNewTokens - 1);
  auto tokens = Values::Make({kRequests, kWholeTokens}, true);
  auto rows = Values::Make({kRequests, kWholeTokens}, false);
  std::copy(text.begin(), text.end(), tokens.index.begin());
  rows.real[text.size() - 1] = 1;
  evaluator.Set(graph.FindValue(kTokensInput), tokens);
  evaluator.Set(graph.FindValue(kRowInput), rows);
  evaluator.Run({Phase::kForward}, 0);
  for (const GraphOutput& output : graph.outputs()) {
    if (output.name == kLogitsResult) return evaluator.Whole(output.value).real;
  }
  return {};
}

}  // namespace mgc
