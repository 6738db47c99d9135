#include "graph/base/json_writer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/json.h"

namespace mgc {

void JsonWriter::Separate() {
  if (!first_ && !after_key_) absl::StrAppend(&text_, ",", new_line_ ? "" : blank_);
  if (new_line_ && !after_key_) absl::StrAppend(&text_, "\n", std::string(indent_, ' '));
  new_line_ = new_line_ && after_key_;
  first_ = false;
  after_key_ = false;
}

JsonWriter& JsonWriter::Raw(absl::string_view text) {
  Separate();
  absl::StrAppend(&text_, text);
  return *this;
}

JsonWriter& JsonWriter::Open(char bracket) {
  Separate();
  text_.push_back(bracket);
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  if (new_line_) text_.append("\n");
  text_.push_back(bracket);
  first_ = false;
  new_line_ = false;
  return *this;
}

JsonWriter& JsonWriter::Key(absl::string_view key) {
  Separate();
  absl::StrAppend(&text_, JsonQuote(key), ":", blank_);
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(absl::string_view value) { return Raw(JsonQuote(value)); }
JsonWriter& JsonWriter::Integer(int64_t value) { return Raw(absl::StrCat(value)); }
JsonWriter& JsonWriter::Number(double value) { return Raw(JsonNumber(value)); }

JsonWriter& JsonWriter::Thousandths(int64_t value) {
  return Raw(absl::StrFormat("%d.%03d", value / 1000, value % 1000));
}

JsonWriter& JsonWriter::Integers(absl::Span<const int64_t> values) {
  BeginArray();
  for (int64_t value : values) Integer(value);
  return EndArray();
}

JsonWriter& JsonWriter::NewLine(int indent) {
  new_line_ = true;
  indent_ = indent;
  return *this;
}

}  // namespace mgc
