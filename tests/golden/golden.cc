#include "tests/golden/golden.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

std::vector<double> Numbers(const JsonValue& array) {
  std::vector<double> numbers;
  for (const JsonValue& item : array.items) numbers.push_back(item.number);
  return numbers;
}

// All numbers of an array of arrays.
std::vector<double> AllNumbers(const JsonValue& array) {
  if (array.kind != JsonValue::Kind::kArray) return {array.number};
  std::vector<double> numbers;
  for (const JsonValue& item : array.items) {
    for (double number : AllNumbers(item)) numbers.push_back(number);
  }
  return numbers;
}

GoldenTensors Tensors(const JsonValue& object) {
  GoldenTensors tensors;
  for (const JsonMember& member : object.members) tensors[member.key] = Numbers(member.value);
  return tensors;
}

GoldenLoss Loss(const JsonValue& object) {
  return {object.Find("loss")->number, Tensors(*object.Find("gradients"))};
}

GoldenTraining Training(const JsonValue& object) {
  GoldenTraining training;
  training.lr = object.Find("lr")->number;
  training.beta1 = object.Find("beta1")->number;
  training.beta2 = object.Find("beta2")->number;
  training.eps = object.Find("eps")->number;
  training.weight_decay = object.Find("weight_decay")->number;
  training.clip_grad = object.Find("clip_grad")->number;
  training.losses = Numbers(*object.Find("losses"));
  training.grad_norms = Numbers(*object.Find("grad_norms"));
  training.parameters = Tensors(*object.Find("parameters"));
  return training;
}

bool IsNormWeight(absl::string_view name) {
  return absl::EndsWith(name, "norm") || absl::EndsWith(name, "norm1") ||
         absl::EndsWith(name, "norm2");
}

// Parameter number `k`, row-major.
std::vector<double> MakeParameter(absl::string_view name, int64_t k, int64_t size) {
  std::vector<double> values(size);
  for (int64_t i = 0; i < size; ++i) {
    values[i] = (IsNormWeight(name) ? 1.0 : 0.0) +
                0.1 * std::sin(1.3 * static_cast<double>(k) + 0.7 * static_cast<double>(i) +
                               0.01 * static_cast<double>(i * i % 97));
  }
  return values;
}

void MakeInputs(Golden* golden) {
  int64_t seq = golden->config.seq_length;
  auto token = [golden](int64_t b, int64_t t) {
    return (5 * b + 3 * t + t * t) % golden->config.vocab;
  };
  for (int64_t b = 0; b < golden->batch; ++b) {
    for (int64_t t = 0; t < seq; ++t) {
      golden->tokens.push_back(token(b, t));
      golden->targets.push_back(token(b, t + 1));
      golden->weights.push_back(0.5 * static_cast<double>((b * seq + t) % 4));
    }
  }
  int64_t k = 0;
  for (const auto& [name, shape] : golden->shapes) {
    int64_t size = 1;
    for (int64_t dim : shape) size *= dim;
    golden->parameters[name] = MakeParameter(name, k++, size);
  }
}

}  // namespace

absl::StatusOr<Golden> LoadGolden(absl::string_view name) {
  std::string path = absl::StrCat("tests/golden/", name, ".json");
  std::string text;
  MGC_ASSIGN_OR_RETURN(text, ReadFile(path));
  JsonValue root;
  MGC_ASSIGN_OR_RETURN(root, ParseJson(text, path));
  Golden golden;
  if (const JsonValue* example = root.Find("example")) {
    golden.example = example->text;
    golden.config.vocab = 13;
    golden.config.seq_length = static_cast<int64_t>(root.Find("tokens")->items[0].items.size()) - 1;
  } else {
    MGC_ASSIGN_OR_RETURN(golden.config, ParseModelConfig(*root.Find("config"), path));
  }
  golden.batch = static_cast<int64_t>(root.Find("tokens")->items.size());
  for (const JsonMember& member : root.Find("shapes")->members) {
    for (const JsonValue& dim : member.value.items)
      golden.shapes[member.key].push_back(dim.integer);
  }
  golden.sum = Loss(*root.Find("sum"));
  if (const JsonValue* weighted = root.Find("weighted")) golden.weighted = Loss(*weighted);
  if (const JsonValue* inputs = root.Find("inputs")) {
    for (const JsonMember& input : inputs->members)
      golden.inputs[input.key] = AllNumbers(input.value);
  }
  if (const JsonValue* adamw = root.Find("adamw")) golden.adamw = Training(*adamw);
  MakeInputs(&golden);
  if (golden.inputs.count("labels") > 0) golden.weights = AllNumbers(*root.Find("weights"));
  return golden;
}

}  // namespace mgc
