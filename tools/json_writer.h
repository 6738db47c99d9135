// Writes one JSON text, member by member; commas and quotes are its business.

#ifndef MGC_TOOLS_JSON_WRITER_H_
#define MGC_TOOLS_JSON_WRITER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mgc {

// Calls nest as the text does; a value inside of an object follows its Key.
class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(absl::string_view key);

  JsonWriter& String(absl::string_view value);
  JsonWriter& Integer(int64_t value);
  JsonWriter& Number(double value);  // shortest exact form
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Null() { return Raw("null"); }
  JsonWriter& Integers(absl::Span<const int64_t> values);

  // A member of the open object.
  JsonWriter& String(absl::string_view key, absl::string_view value) {
    return Key(key).String(value);
  }
  JsonWriter& Integer(absl::string_view key, int64_t value) { return Key(key).Integer(value); }

  // A new line before the next item, to keep long texts readable and repairable.
  JsonWriter& NewLine();

  // The text, ended by a newline. Call it once, with everything closed.
  std::string Finish() && { return std::move(text_.append("\n")); }

 private:
  JsonWriter& Raw(absl::string_view text);
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void Separate();

  std::string text_;
  bool first_ = true;  // nothing stands in the open object or array
  bool after_key_ = false;
  bool new_line_ = false;
};

}  // namespace mgc

#endif  // MGC_TOOLS_JSON_WRITER_H_
