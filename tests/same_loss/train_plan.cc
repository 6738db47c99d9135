#include "tests/same_loss/train_plan.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontends/families.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/ir/vocabulary.h"
#include "graph/plan/data_input.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/data/input_files.h"
#include "runtime/data/safetensors.h"
#include "runtime/train/trainer.h"
#include "tests/same_loss/shared_layers.h"

namespace mgc {
namespace {

constexpr int64_t kSeqLength = 32;

// Text-like bytes: words from a small list in a fixed pseudo-random order.
std::string Text() {
  constexpr const char* kWords[] = {"in ",    "the ",     "beginning ", "was ", "word ", "and ",
                                    "light ", "shineth ", "darkness ",  "not ", ".\n",   "unto "};
  std::string text;
  uint32_t state = 1;
  while (text.size() < 20000) {
    state = state * 1664525u + 1013904223u;
    text += kWords[(state >> 16) % 12];
  }
  return text;
}

absl::StatusOr<Tensors> ReadTensors(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Read(path));
  Tensors tensors;
  for (const auto& [name, entry] : file.entries()) {
    MGC_ASSIGN_OR_RETURN(tensors[name], file.Floats(name));
  }
  unlink(path.c_str());
  return tensors;
}

std::string TempFile(const char* what) {
  return absl::StrCat(testing::TempDir(), "/same_loss_", getpid(), "_", what);
}

// Element i of an index input, `row` of them to a sample: a mask ends in padding of another length
// in every sample, and four fifths are ignored where the model ignores any.
int64_t IndexAt(const Plan& plan, const std::string& name, int64_t i, int64_t row) {
  if (name == "mask") return i % row < row - i / row % 7 ? 1 : 0;
  if (i * 7 % 5 != 0) {
    if (const auto ignored = IgnoredIndexOf(plan.model, name)) return *ignored;
  }
  return i * i * 3 % std::max<int64_t>(VocabularyOf(plan.model, name), 2);
}

// A file with one data input of `samples` samples.
InputFile MakeInput(const Plan& plan, const DataInput& input, int64_t samples) {
  std::vector<int64_t> shape = SizesOf(input.type);
  shape[0] = samples;
  const int64_t count = NumElements(shape);
  std::vector<int64_t> indices;
  std::vector<float> reals;
  const bool is_index = input.type.dtype == DType::kI64;
  for (int64_t i = 0; i < count; ++i) {
    if (is_index) indices.push_back(IndexAt(plan, input.name, i, count / samples));
    if (!is_index) reals.push_back(std::sin(0.37f * static_cast<float>(i % 9973)));
  }
  InputFile file = {input.name, {TempFile(input.name.c_str()) + ".safetensors", input.name}};
  const SafetensorsView view = is_index ? ViewOf(input.name, shape, absl::MakeConstSpan(indices))
                                        : ViewOf(input.name, shape, absl::MakeConstSpan(reals));
  EXPECT_EQ(WriteSafetensors(file.place.path, {view}), absl::OkStatus());
  return file;
}

// Files for all data inputs but `weights` of a model that a text alone does not feed; none for
// others.
std::vector<InputFile> MakeInputs(const Plan& plan, int64_t samples) {
  const std::vector<DataInput> inputs = DataInputsOf(plan);
  const bool is_text = std::all_of(inputs.begin(), inputs.end(), [](const DataInput& input) {
    return input.name == "tokens" || input.name == "targets" || input.name == "weights";
  });
  std::vector<InputFile> files;
  for (const DataInput& input : inputs) {
    if (!is_text && input.name != "weights") files.push_back(MakeInput(plan, input, samples));
  }
  return files;
}

}  // namespace

TrainOptions OptionsFor(const Plan& plan, const TrainCase& c, int64_t steps, int workers,
                        const KernelList& kernels) {
  TrainOptions options;
  options.kernels = kernels;
  options.workers = workers;
  options.inputs = MakeInputs(plan, steps * c.parallel.global_batch_size);
  if (options.inputs.empty()) {
    options.data = *TokenDataset::FromBytes(Text(), kSeqLength, "text");
  }
  options.lr.style = LrDecayStyle::kCosine;
  options.lr.max_lr = 3e-3;
  options.lr.min_lr = 1e-4;
  options.lr.warmup_samples = 2 * c.parallel.global_batch_size;
  options.lr.decay_samples = steps * c.parallel.global_batch_size;
  options.loss_scale.initial = 1024;
  options.weight_decay.start = options.weight_decay.end = 0.01;
  return options;
}

std::string NameOf(const TrainCase& c) {
  const ParallelConfig& p = c.parallel;
  std::string name = absl::StrCat(
      c.preset, "_tp", p.tp, "_pp", p.pp, "_v", std::max<int64_t>(p.vp, 1), "_dp", c.dp,
      p.sequence_parallel ? "_sp" : "", "_zero", p.zero, "_", ToString(p.schedule), "_",
      ToString(p.recompute), "_mbs", p.micro_batch_size, "_vocab", c.vocab);
  if (p.cp > 1) absl::StrAppend(&name, "_cp", p.cp);
  if (p.zero_group > 0) absl::StrAppend(&name, "_group", p.zero_group);
  if (p.split_products > 1) absl::StrAppend(&name, "_split", p.split_products);
  if (p.gradient_sums != DType::kF32) absl::StrAppend(&name, "_", NameOf(p.gradient_sums), "_sums");
  if (c.vocab_multiple > 1) absl::StrAppend(&name, "by", c.vocab_multiple);
  if (c.kv_heads > 0) absl::StrAppend(&name, "_kv", c.kv_heads);
  if (c.layers > 0) absl::StrAppend(&name, "_layers", c.layers);
  if (!c.shared.empty()) absl::StrAppend(&name, "_", c.shared);
  if (p.layout.layout) absl::StrAppend(&name, "_layout");
  if (p.layout.decoder_first_layers)
    absl::StrAppend(&name, "_first", *p.layout.decoder_first_layers);
  for (char& ch : name) {
    if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
  }
  return name;
}

absl::StatusOr<CaseModel> ModelOf(const TrainCase& c) {
  MGC_ASSIGN_OR_RETURN(ModelConfig config, LoadModelPreset(c.preset));
  config.vocab = c.vocab;
  if (c.kv_heads > 0) config.kv_heads = c.kv_heads;
  if (c.layers > 0) config.layers = c.layers;
  if (c.heads > 0) {
    config.heads = c.heads;
    config.head_dim = c.head_dim;
  }
  if (c.stretched) config.rope_scaling = Llama3RopeScaling{4.0, 1.0, 4.0, 16};
  CompileOptions options;
  options.parallel = c.parallel;
  options.parallel.world_size = c.parallel.tp * c.parallel.cp * c.parallel.pp * c.dp;
  const bool images = TraitsOf(config.family).images;  // which have one length
  const int64_t seq = images ? config.seq_length : kSeqLength;
  options.parallel.seq_length = seq;
  MGC_ASSIGN_OR_RETURN(options.machine, FindMachinePreset("cpu-threads"));
  ModelOptions model_options;
  model_options.vocab_multiple = c.vocab_multiple;
  MGC_ASSIGN_OR_RETURN(Graph model,
                       BuildModel(config, c.parallel.micro_batch_size * c.dp, seq, model_options));
  if (!c.shared.empty()) {
    MGC_ASSIGN_OR_RETURN(model, ShareLayers(model, c.shared));
  }
  return CaseModel{std::move(model), DimsOf(config), std::move(options)};
}

absl::StatusOr<Plan> CompileCase(const TrainCase& c) {
  MGC_ASSIGN_OR_RETURN(const CaseModel made, ModelOf(c));
  return Compile(made.model, made.dims, made.options);
}

absl::StatusOr<TrainResult> TrainCaseFor(const TrainCase& c, int64_t steps, int workers) {
  MGC_ASSIGN_OR_RETURN(const Plan plan, CompileCase(c));
  return TrainPlan(plan, c, steps, workers);
}

absl::StatusOr<TrainResult> TrainPlan(const Plan& plan, const TrainCase& c, int64_t steps,
                                      int workers, uint64_t seed) {
  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions options = OptionsFor(plan, c, steps, workers, kernels);
  options.seed = seed;
  absl::StatusOr<TrainResult> result = TrainWith(plan, options, steps);
  for (const InputFile& file : options.inputs) unlink(file.place.path.c_str());
  return result;
}

absl::StatusOr<TrainResult> TrainWith(const Plan& plan, const TrainOptions& options,
                                      int64_t steps) {
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, Trainer::Create(plan, options));
  TrainResult result;
  const std::string gradients = TempFile("gradients");
  const std::string parameters = TempFile("parameters");
  for (int64_t step = 1; step <= steps; ++step) {
    MGC_ASSIGN_OR_RETURN(const StepRecord record, trainer->Step());
    result.losses.push_back(record.loss);
    result.grad_norms.push_back(record.grad_norm);
    result.sum_of_rates += record.lr;
    result.left_out += record.left_out ? 1 : 0;
    if (step == 1) MGC_RETURN_IF_ERROR(trainer->WriteGradients(gradients));
  }
  MGC_RETURN_IF_ERROR(trainer->WriteParameters(parameters));
  MGC_ASSIGN_OR_RETURN(result.gradients, ReadTensors(gradients));
  MGC_ASSIGN_OR_RETURN(result.parameters, ReadTensors(parameters));
  for (const PlanClass& made : plan.classes) {
    for (int64_t rank : RanksOfClass(plan, made.coordinate)) {
      result.planned_peaks.push_back(made.memory.peak);
      result.measured_peaks.push_back(trainer->executor().MeasuredPeak(rank));
    }
  }
  return result;
}

absl::StatusOr<Tensors> FirstParameters(const Plan& plan, const TrainOptions& options) {
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, Trainer::Create(plan, options));
  const std::string path = TempFile("first_parameters");
  MGC_RETURN_IF_ERROR(trainer->WriteParameters(path));
  return ReadTensors(path);
}

}  // namespace mgc
