// Lets a model that a run has trained go on with a text: what `mgc-generate` does, as functions.
//   bazel run //examples:generate -- RUN TEXT
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/compile.h"
#include "runtime/generate/generator.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/checkpoint_dir.h"

namespace mgc {
namespace {

constexpr int64_t kKept = 96;    // tokens of the text, the prompt among them
constexpr int64_t kPrompt = 32;  // tokens of the prompt at most

// A plan for two ranks that share every layer, proved.
absl::StatusOr<Plan> PlanFor(const ModelConfig& config, NextToken next_token) {
  ModelOptions model;
  model.next_token = next_token;
  model.kept = kKept;
  CompileOptions options;
  options.parallel.world_size = options.parallel.tp = 2;
  options.parallel.seq_length = next_token == NextToken::kToken ? 1 : kPrompt;
  MGC_ASSIGN_OR_RETURN(options.machine, FindMachinePreset("cpu-threads"));
  MGC_ASSIGN_OR_RETURN(const Graph graph,
                       BuildModel(config, 1, options.parallel.seq_length, model));
  MGC_ASSIGN_OR_RETURN(Plan plan, Compile(graph, DimsOf(config), options));
  MGC_RETURN_IF_ERROR(ProvePlan(&plan));
  return plan;
}

absl::Status GoOn(const std::string& run, const std::string& text) {
  MGC_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelPreset("llama-tiny"));
  MGC_ASSIGN_OR_RETURN(const Plan prompt, PlanFor(config, NextToken::kPrompt));
  MGC_ASSIGN_OR_RETURN(const Plan token, PlanFor(config, NextToken::kToken));
  const std::vector<KernelEntry> kernels = CpuKernels();
  GenerateOptions options;
  options.executor.kernels = kernels;
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator,
                       Generator::Create(prompt, &token, options));
  MGC_ASSIGN_OR_RETURN(const std::string folder, FolderToLoad(run));
  MGC_RETURN_IF_ERROR(LoadCheckpoint(folder, generator->executor()).status());

  GenerateRequest request;
  for (const char byte : text) request.prompt.push_back(static_cast<uint8_t>(byte));
  request.most_tokens = 16;
  std::cout << text;
  const auto print = [](int64_t /*request*/, int32_t token) {
    std::cout << static_cast<char>(token) << std::flush;
  };
  MGC_RETURN_IF_ERROR(generator->Run({request}, print).status());
  std::cout << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: generate RUN TEXT\n";
    return 2;
  }
  const absl::Status status = mgc::GoOn(argv[1], argv[2]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
