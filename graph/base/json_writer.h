// Writes one JSON text, member by member; commas and quotes are its business.

#ifndef MGC_GRAPH_BASE_JSON_WRITER_H_
#define MGC_GRAPH_BASE_JSON_WRITER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mgc {

// Blanks behind commas and colons, for texts that people read; or none, for lines and headers.
enum class JsonStyle { kSpaced, kCompact };

// Calls nest as the text does; a value inside of an object follows its Key.
class JsonWriter {
 public:
  explicit JsonWriter(JsonStyle style = JsonStyle::kSpaced)
      : blank_(style == JsonStyle::kSpaced ? " " : "") {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(absl::string_view key);

  JsonWriter& String(absl::string_view value);
  JsonWriter& Integer(int64_t value);
  JsonWriter& Number(double value);        // shortest exact form
  JsonWriter& Thousandths(int64_t value);  // value / 1000 with three decimals; value >= 0
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Null() { return Raw("null"); }
  JsonWriter& Integers(absl::Span<const int64_t> values);

  // A member of the open object.
  JsonWriter& String(absl::string_view key, absl::string_view value) {
    return Key(key).String(value);
  }
  JsonWriter& Integer(absl::string_view key, int64_t value) { return Key(key).Integer(value); }
  JsonWriter& Number(absl::string_view key, double value) { return Key(key).Number(value); }
  JsonWriter& Bool(absl::string_view key, bool value) { return Key(key).Bool(value); }

  // A new line before the next item, or before the end of what is open, to keep long texts readable
  // and repairable; `indent` blanks stand before the item.
  JsonWriter& NewLine(int indent = 0);

  // The text; or the text ended by a newline. Call one of them once, with everything closed.
  std::string Text() && { return std::move(text_); }
  std::string Finish() && { return std::move(text_.append("\n")); }

 private:
  JsonWriter& Raw(absl::string_view text);
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void Separate();

  absl::string_view blank_;
  std::string text_;
  bool first_ = true;  // nothing stands in the open object or array
  bool after_key_ = false;
  bool new_line_ = false;
  int indent_ = 0;  // of the new line
};

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_JSON_WRITER_H_
