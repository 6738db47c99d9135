#include "examples/write_model.h"

#include <iostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/random.h"
#include "graph/base/status.h"
#include "graph/ir/vocabulary.h"
#include "graph/text/printer.h"
#include "runtime/data/safetensors.h"

namespace mgc {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 20;  // no model of an example is meant to be larger
constexpr int64_t kSamples = 64;
constexpr uint64_t kSeed = 1;

struct Samples {
  std::string name;
  std::vector<int64_t> shape = {kSamples};
  std::vector<float> reals;
  std::vector<int64_t> indices;
};

// Weights are 1, other reals between -1 and 1, indices inside of what they are looked up in. What
// is looked up nowhere is a mask: every other sample ends in a quarter of padding.
Samples MakeSamples(const Graph& model, const Value& input) {
  Samples made;
  made.name = input.name;
  int64_t row = 1;
  for (size_t d = 1; d < input.type.dims.size(); ++d) {
    made.shape.push_back(input.type.dims[d].size);
    row *= input.type.dims[d].size;
  }
  const int64_t entries = VocabularyOf(model, input.name);
  for (int64_t i = 0; i < kSamples * row; ++i) {
    const double uniform = RandomUniform(kSeed, StreamOf(input.name), static_cast<uint64_t>(i));
    if (input.type.dtype != DType::kI64) {
      made.reals.push_back(input.name == "weights" ? 1.0f : static_cast<float>(2 * uniform - 1));
    } else if (entries > 0) {
      made.indices.push_back(static_cast<int64_t>(uniform * static_cast<double>(entries)));
    } else {
      const bool padding = i / row % 2 == 1 && i % row >= row - row / 4;
      made.indices.push_back(padding ? 0 : 1);
    }
  }
  return made;
}

absl::Status WriteSamples(const Graph& model, const std::string& path) {
  std::vector<Samples> all;
  for (const GraphInput& input : model.inputs()) {
    if (input.kind == InputKind::kData) all.push_back(MakeSamples(model, model.value(input.value)));
  }
  std::vector<SafetensorsView> views;
  for (const Samples& made : all) {
    views.push_back(made.indices.empty()
                        ? ViewOf(made.name, made.shape, absl::MakeConstSpan(made.reals))
                        : ViewOf(made.name, made.shape, absl::MakeConstSpan(made.indices)));
  }
  return WriteSafetensors(path, std::move(views));
}

// Sets what the flags say; the last of a name counts.
absl::Status ReadFlags(int argc, char** argv, const std::vector<SizeFlag>& flags,
                       std::string* samples) {
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--samples" && !value.empty()) {
      *samples = value;
      continue;
    }
    int64_t* size = nullptr;
    for (const SizeFlag& known : flags) {
      if (flag == absl::StrCat("--", known.name)) size = known.value;
    }
    if (size == nullptr) return absl::InvalidArgumentError(absl::StrCat("no flag ", flag));
    if (!absl::SimpleAtoi(value, size) || *size < 1 || *size > kLargestSize) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " is not from 1 to ", kLargestSize, ": `", value, "`"));
    }
  }
  return absl::OkStatus();
}

int Fail(int code, const absl::Status& status) {
  std::cerr << "error: " << status.message() << "\n";
  return code;
}

}  // namespace

int WriteModel(int argc, char** argv, const std::vector<SizeFlag>& flags,
               const std::function<absl::StatusOr<Graph>()>& build) {
  const auto shown = [](std::string* out, const SizeFlag& flag) {
    absl::StrAppend(out, "--", flag.name, " ", *flag.value);
  };
  const std::string known = absl::StrJoin(flags, " ", shown);
  std::string samples;
  const absl::Status read = ReadFlags(argc, argv, flags, &samples);
  if (!read.ok()) {
    Fail(2, read);
    std::cerr << "flags, with what they are without: " << known << " [--samples FILE]\n";
    return 2;
  }
  const absl::StatusOr<Graph> model = build();
  if (!model.ok()) return Fail(4, model.status());
  if (!samples.empty()) {
    const absl::Status written = WriteSamples(*model, samples);
    if (!written.ok()) return Fail(1, written);
  }
  std::cout << PrintGraph(*model) << std::flush;
  return std::cout.good() ? 0 : Fail(1, absl::DataLossError("cannot write to stdout"));
}

}  // namespace mgc
