#include "runtime/data/input_files.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/vocabulary.h"

namespace mgc {
namespace {

std::string Shown(const DataInput& input) {
  return absl::StrCat("`", EscapeBytes(input.name), "` ", input.type.ToString());
}

class InputReader {
 public:
  InputReader(const Plan& plan, const TokenDataset* text, int64_t least_samples)
      : plan_(plan),
        text_(text),
        least_samples_(least_samples),
        inputs_(DataInputsOf(plan)),
        tensors_(inputs_.size()) {}

  absl::StatusOr<InputTensors> Run(absl::Span<const InputFile> files) {
    for (const InputFile& file : files) Take(file);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!tensors_[i].has_value() && !named_[i]) CheckFedByText(inputs_[i]);
    }
    if (violations_.empty()) return std::move(tensors_);
    std::vector<std::string> list;
    for (const DataInput& input : inputs_) list.push_back(Shown(input));
    Diagnostics all;
    all.Append(violations_);
    all.Add("", "", absl::StrCat("the model's data inputs: ", absl::StrJoin(list, ", ")));
    return all.ToStatus();
  }

 private:
  template <typename... Text>
  bool Require(bool holds, const Text&... text) {
    if (!holds) violations_.Add("", "", absl::StrCat(text...));
    return holds;
  }

  void Take(const InputFile& file) {
    const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&](const DataInput& i) { return i.name == file.input; });
    if (!Require(found != inputs_.end(), "the model has no data input `", EscapeBytes(file.input),
                 "`")) {
      return;
    }
    const size_t index = static_cast<size_t>(found - inputs_.begin());
    if (!Require(!named_[index], "data input `", EscapeBytes(file.input), "` is given twice")) {
      return;
    }
    named_[index] = true;
    absl::StatusOr<SampleTensor> tensor = ReadSampleTensor(file.place);
    if (!Require(tensor.ok(), "data input `", EscapeBytes(file.input),
                 "`: ", tensor.status().message())) {
      return;
    }
    const std::string given =
        absl::StrCat("data input ", Shown(*found), ": ", EscapeBytes(file.place.path), " holds ",
                     ToString(*tensor));
    if (!CheckType(*found, *tensor, given)) return;
    CheckSamples(*tensor, given);
    CheckIndices(*found, *tensor, given);
    tensors_[index] = *std::move(tensor);
  }

  bool CheckType(const DataInput& input, const SampleTensor& tensor, const std::string& given) {
    bool fits = tensor.dtype() == input.type.dtype &&
                tensor.shape.size() == static_cast<size_t>(input.type.ndim());
    for (size_t d = 1; fits && d < tensor.shape.size(); ++d) {
      fits = tensor.shape[d] == input.type.dims[d].size;
    }
    return Require(fits, given,
                   "; the element type and the dims behind the first must be the input's");
  }

  void CheckSamples(const SampleTensor& tensor, const std::string& given) {
    Require(tensor.samples() >= least_samples_, given, "; a step takes ", least_samples_,
            " samples");
    if (text_ != nullptr) {
      Require(tensor.samples() >= text_->samples_per_epoch(), given, "; the text has ",
              text_->samples_per_epoch(), " samples");
      return;
    }
    if (samples_ == 0) samples_ = tensor.samples();
    Require(tensor.samples() == samples_, given, "; another tensor holds ", samples_, " samples");
  }

  // What an index outside of a table would look up counts as zero, silently.
  void CheckIndices(const DataInput& input, const SampleTensor& tensor, const std::string& given) {
    const auto* indices = std::get_if<std::vector<int64_t>>(&tensor.values);
    const int64_t entries = VocabularyOf(plan_.model, input.name);
    const absl::optional<int64_t> ignored = IgnoredIndexOf(plan_.model, input.name);
    if (indices == nullptr || entries == 0) return;
    for (size_t i = 0; i < indices->size(); ++i) {
      const int64_t index = (*indices)[i];
      if ((index >= 0 && index < entries) || index == ignored) continue;
      const int64_t per_sample = static_cast<int64_t>(indices->size()) / tensor.samples();
      Require(false, given, "; in sample ", static_cast<int64_t>(i) / per_sample, " lies ", index,
              ", outside the ", entries, " entries it is looked up in");
      return;
    }
  }

  void CheckFedByText(const DataInput& input) {
    const DataFeed feed = FeedOf(input.name, input.type, plan_.seq_length);
    const bool fed = feed == DataFeed::kOnes || (IsOfText(feed) && text_ != nullptr);
    Require(fed, "nothing feeds data input ", Shown(input), ": --inputs ", EscapeBytes(input.name),
            "=FILE.npy", IsOfText(feed) ? ", or --data FILE" : "");
    if (text_ == nullptr) return;
    Require(!NeedsDocuments(feed) || text_->ends().has_value(), "data input ", Shown(input),
            " needs the id of the token that ends documents: --eod ID");
    const bool by_token =
        input.type.dims.size() == 2 && input.type.dims[1].size == plan_.seq_length;
    const bool masks = text_->ends().has_value() && text_->ends()->mask_loss;
    Require(feed != DataFeed::kOnes || by_token || !masks, "data input ", Shown(input),
            " counts samples, so that --eod-mask-loss cannot leave out tokens");
  }

  const Plan& plan_;
  const TokenDataset* const text_;
  const int64_t least_samples_;
  const std::vector<DataInput> inputs_;
  InputTensors tensors_;
  std::vector<bool> named_ = std::vector<bool>(inputs_.size(), false);
  int64_t samples_ = 0;  // of the first tensor
  Diagnostics violations_;
};

}  // namespace

absl::StatusOr<InputTensors> ReadInputs(const Plan& plan, absl::Span<const InputFile> files,
                                        const TokenDataset* text, int64_t least_samples) {
  return InputReader(plan, text, least_samples).Run(files);
}

}  // namespace mgc
