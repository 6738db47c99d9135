#include "graph/base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"

namespace mgc {
namespace {

constexpr size_t kMaxDepth = 64;

// Walks over the text for the parser and tells how far it has read; copies share that position.
class CountingIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

// Receives the parser's events and builds the tree. A token starts at the first byte after the
// previous token that is neither space nor punctuation between values; a number's event comes one
// byte late, and that byte is always one of these.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(absl::string_view text, absl::string_view file)
      : text_(text), errors_(file), reached_(text.data()), token_end_(text.data()) {
    if (absl::StartsWith(text, "\xEF\xBB\xBF")) token_end_ += 3;
  }

  absl::StatusOr<JsonValue> Parse() {
    // The library takes a zero byte for the end of the text.
    size_t zero = text_.find('\0');
    if (zero != absl::string_view::npos) {
      auto [line, column] = Locate(text_.data() + zero);
      ReportAt(line, column, "a zero byte");
      return errors_.ToStatus();
    }
    const char* end = text_.data() + text_.size();
    bool complete = nlohmann::json::sax_parse(CountingIterator(text_.data(), &reached_),
                                              CountingIterator(end, &reached_), this);
    if (!complete || !errors_.empty()) {
      return errors_.ToStatus();
    }
    return std::move(root_);
  }

  bool null() override { return Add(JsonValue::Kind::kNull) != nullptr; }
  bool boolean(bool value) override {
    JsonValue* added = Add(JsonValue::Kind::kBool);
    added->boolean = value;
    return true;
  }
  bool number_integer(number_integer_t value) override {
    JsonValue* added = Add(JsonValue::Kind::kInteger);
    added->integer = value;
    added->number = static_cast<double>(value);
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<number_unsigned_t>(INT64_MAX)) {
      return number_integer(static_cast<number_integer_t>(value));
    }
    return number_float(static_cast<double>(value), "");
  }
  bool number_float(number_float_t value, const string_t&) override {
    Add(JsonValue::Kind::kNumber)->number = value;
    return true;
  }
  bool string(string_t& value) override {
    Add(JsonValue::Kind::kString)->text = std::move(value);
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(JsonValue::Kind::kObject); }
  bool start_array(size_t) override { return Open(JsonValue::Kind::kArray); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& value) override {
    JsonMember member;
    std::tie(member.line, member.column) = TakeToken();
    if (!open_.back().keys.insert(value).second) {
      ReportAt(member.line, member.column,
               absl::StrCat("the key ", JsonQuote(value), " is given twice"));
    }
    member.key = std::move(value);
    open_.back().value->members.push_back(std::move(member));
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    absl::string_view message = error.what();
    // The library writes "[...] parse error at line 1, column 2: what"; only the last part is kept.
    size_t column = message.find("column ");
    if (column != absl::string_view::npos) message.remove_prefix(message.find(": ", column) + 2);
    size_t bracket = message.find("] ");
    if (absl::StartsWith(message, "[json") && bracket != absl::string_view::npos) {
      message.remove_prefix(bracket + 2);
    }
    size_t offset = position == 0 ? 0 : std::min(position - 1, text_.size());
    auto [line, col] = Locate(text_.data() + offset);
    ReportAt(line, col, EscapeBytes(message));
    return false;
  }

 private:
  struct OpenValue {
    JsonValue* value;
    std::set<std::string> keys;
  };

  // Line and column of a byte. Tokens come in order, so each line is counted once.
  std::pair<int, int> Locate(const char* at) {
    for (; scanned_ < static_cast<size_t>(at - text_.data()); ++scanned_) {
      if (text_[scanned_] == '\n') {
        ++line_;
        line_start_ = scanned_ + 1;
      }
    }
    return {line_, static_cast<int>(at - text_.data() - line_start_) + 1};
  }

  std::pair<int, int> TakeToken() {
    const char* start = token_end_;
    while (start < reached_ && absl::StrContains(" \t\r\n,:", *start)) ++start;
    token_end_ = reached_;
    return Locate(start);
  }

  JsonValue* Add(JsonValue::Kind kind) {
    JsonValue* added = &root_;
    if (!open_.empty()) {
      JsonValue* parent = open_.back().value;
      if (parent->kind == JsonValue::Kind::kObject) {
        added = &parent->members.back().value;
      } else {
        parent->items.emplace_back();
        added = &parent->items.back();
      }
    }
    added->kind = kind;
    std::tie(added->line, added->column) = TakeToken();
    return added;
  }

  bool Open(JsonValue::Kind kind) {
    JsonValue* added = Add(kind);
    if (open_.size() == kMaxDepth) {
      ReportAt(added->line, added->column,
               absl::StrCat("values are nested deeper than ", kMaxDepth));
      return false;
    }
    open_.push_back({added, {}});
    return true;
  }

  bool Close() {
    TakeToken();
    open_.pop_back();
    return true;
  }

  void ReportAt(int line, int column, absl::string_view what) {
    errors_.Add({line, column}, "", what);
  }

  absl::string_view text_;
  FileDiagnostics errors_;
  const char* reached_;
  const char* token_end_;
  size_t scanned_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  JsonValue root_;
  std::vector<OpenValue> open_;
};

}  // namespace

const JsonValue* JsonValue::Find(absl::string_view key) const {
  for (const JsonMember& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

absl::StatusOr<JsonValue> ParseJson(absl::string_view text, absl::string_view file) {
  return TreeBuilder(text, file).Parse();
}

absl::string_view KindName(JsonValue::Kind kind) {
  switch (kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBool:
      return "true or false";
    case JsonValue::Kind::kInteger:
      return "an integer";
    case JsonValue::Kind::kNumber:
      return "a number";
    case JsonValue::Kind::kString:
      return "a string";
    case JsonValue::Kind::kArray:
      return "an array";
    case JsonValue::Kind::kObject:
      return "an object";
  }
  return "a value";
}

std::string JsonQuote(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonNumber(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  static_cast<void>(error);  // no shortest double needs more than 24 bytes
  return std::string(buffer, end);
}

}  // namespace mgc
