#include "graph/plan/proto/plan_difference.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include "absl/strings/str_cat.h"
#include "graph/plan/proto/plan_wire_internal.h"

namespace mgc {
namespace {

using google::protobuf::Message;
using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;

constexpr size_t kShown = 10;

class Collector : public MessageDifferencer::Reporter {
 public:
  using Path = std::vector<MessageDifferencer::SpecificField>;

  explicit Collector(std::vector<FieldDifference>* out) : out_(*out) {}

  void ReportAdded(const Message&, const Message& right, const Path& path) override {
    out_.push_back({Text(path), "", Value(right, path.back(), path.back().new_index)});
  }
  void ReportDeleted(const Message& left, const Message&, const Path& path) override {
    out_.push_back({Text(path), Value(left, path.back(), path.back().index), ""});
  }
  // A message that holds a difference is reported behind it: only the innermost counts.
  void ReportModified(const Message& left, const Message& right, const Path& path) override {
    if (path.back().field->message_type() != nullptr) return;
    out_.push_back({Text(path), Value(left, path.back(), path.back().index),
                    Value(right, path.back(), path.back().new_index)});
  }

 private:
  static std::string Text(const Path& path) {
    std::string text;
    for (const MessageDifferencer::SpecificField& step : path) {
      absl::StrAppend(&text, text.empty() ? "" : ".", step.field->name());
      if (step.field->is_repeated()) absl::StrAppend(&text, "[", step.index, "]");
    }
    return text;
  }
  static std::string Value(const Message& message, const MessageDifferencer::SpecificField& step,
                           int index) {
    TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    std::string text;
    printer.PrintFieldValueToString(message, step.field, step.field->is_repeated() ? index : -1,
                                    &text);
    return text;
  }

  std::vector<FieldDifference>& out_;
};

}  // namespace

std::vector<FieldDifference> FieldDifferences(const Plan& left, const Plan& right) {
  wire::Plan a;
  wire::Plan b;
  ToWire(left, &a);
  ToWire(right, &b);
  std::vector<FieldDifference> differences;
  Collector collector(&differences);
  MessageDifferencer differencer;
  differencer.ReportDifferencesTo(&collector);
  differencer.Compare(a, b);
  return differences;
}

std::string PlanDifference(const Plan& left, const Plan& right) {
  const std::vector<FieldDifference> differences = FieldDifferences(left, right);
  std::string text;
  for (size_t i = 0; i < differences.size() && i < kShown; ++i) {
    const FieldDifference& difference = differences[i];
    absl::StrAppend(&text, difference.field, ": ", difference.left, ", not ", difference.right,
                    "\n");
  }
  return text;
}

}  // namespace mgc
