#include "tools/cli/flags.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/base/json.h"
#include "graph/base/suggest.h"

namespace mgc {
namespace {

constexpr char kExitCodes[] =
    "Exit codes: 0 ok, 1 failed at run time, 2 usage, 3 infeasible configuration, 4 bad model or\n"
    "unreadable file, 5 verification mismatch.\n";

// A word of the command line in a message; violations are escaped as a whole when they are printed.
std::string Shown(absl::string_view text) { return std::string(text.empty() ? "empty" : text); }

// Digits with at most a sign: no blanks, no exponents, no other base.
bool LooksLikeInteger(absl::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// What a decimal number is made of; rules out `nan`, `inf`, hexadecimal and blanks.
bool LooksLikeReal(absl::string_view text) {
  return text.find_first_not_of("0123456789+-.eE") == absl::string_view::npos;
}

// The number in [low, high] nearest to what `text` seems to mean, a comma read as a point; none for
// what is no number at all.
absl::optional<double> Meant(absl::string_view text, double low, double high) {
  const std::string point = absl::StrReplaceAll(text, {{",", "."}});
  double value = 0;
  if (!LooksLikeReal(point) || !absl::SimpleAtod(point, &value)) return absl::nullopt;
  return std::clamp(value, low, high);
}

absl::optional<Diagnostic> SetInteger(const std::string& name, const IntegerBounds& bounds,
                                      const std::string& rule, const std::string& text,
                                      absl::optional<int64_t>* out) {
  if (!LooksLikeInteger(text)) {
    const auto meant =
        Meant(text, static_cast<double>(bounds.low), static_cast<double>(bounds.high));
    return Diagnostic{"F2",
                      absl::StrCat(name, " is ", Shown(text), ", not a whole number from ",
                                   bounds.low, " to ", bounds.high),
                      meant.has_value() ? absl::StrCat(std::llround(*meant)) : ""};
  }
  int64_t value = 0;
  const bool fits = absl::SimpleAtoi(text, &value);
  if (fits && value >= bounds.low && value <= bounds.high) {
    *out = value;
    return absl::nullopt;
  }
  const bool below = text[0] == '-' || (fits && value < bounds.low);
  return Diagnostic{rule,
                    absl::StrCat(name, " is ", text.size() > 40 ? "a very long number" : text,
                                 ", must be between ", bounds.low, " and ", bounds.high),
                    absl::StrCat(below ? bounds.low : bounds.high)};
}

absl::optional<Diagnostic> SetReal(const std::string& name, double low, double high,
                                   const std::string& text, absl::optional<double>* out) {
  double value = 0;
  if (!LooksLikeReal(text) || !absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
    const auto meant = Meant(text, low, high);
    return Diagnostic{"F2",
                      absl::StrCat(name, " is ", Shown(text), ", not a finite number from ",
                                   JsonNumber(low), " to ", JsonNumber(high)),
                      meant.has_value() ? JsonNumber(*meant) : ""};
  }
  if (value < low || value > high) {
    return Diagnostic{"F3",
                      absl::StrCat(name, " is ", text, ", must be between ", JsonNumber(low),
                                   " and ", JsonNumber(high)),
                      JsonNumber(value < low ? low : high)};
  }
  *out = value;
  return absl::nullopt;
}

absl::optional<Diagnostic> CheckChoice(const std::string& name,
                                       const std::vector<absl::string_view>& words,
                                       const std::string& text) {
  if (std::count(words.begin(), words.end(), text) > 0) return absl::nullopt;
  return Diagnostic{"F4", absl::StrCat(name, " is ", Shown(text), DidYouMean(text, words)),
                    absl::StrJoin(words, ", ")};
}

// The words of `text` in lines of at most `width`, each behind `indent` blanks.
std::string Wrapped(absl::string_view text, size_t indent, size_t width) {
  std::string lines;
  std::string line(indent, ' ');
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (line.size() > indent && line.size() + 1 + word.size() > width) {
      absl::StrAppend(&lines, line, "\n");
      line = std::string(indent, ' ');
    }
    absl::StrAppend(&line, line.size() > indent ? " " : "", word);
  }
  return absl::StrCat(lines, line, "\n");
}

}  // namespace

void Flags::Add(absl::string_view names, absl::string_view value, absl::string_view doc,
                std::function<absl::optional<Diagnostic>(const std::string&)> set) {
  flags_.push_back(
      {absl::StrSplit(names, ','), std::string(value), std::string(doc), section_, std::move(set)});
}

void Flags::Text(absl::string_view names, absl::string_view value, absl::string_view doc,
                 absl::optional<std::string>* out) {
  Add(names, value, doc, [out](const std::string& text) -> absl::optional<Diagnostic> {
    *out = text;
    return absl::nullopt;
  });
}

void Flags::Texts(absl::string_view names, absl::string_view value, absl::string_view doc,
                  std::vector<std::string>* out) {
  Add(names, value, doc, [out](const std::string& text) -> absl::optional<Diagnostic> {
    out->push_back(text);
    return absl::nullopt;
  });
  flags_.back().repeats = true;
}

void Flags::WeightedFiles(absl::string_view names, absl::string_view doc,
                          std::vector<std::string>* out) {
  Texts(names, "FILE|W FILE...", doc, out);
  flags_.back().weighted = true;
}

absl::optional<double> Flags::WeightIn(absl::string_view word) {
  double weight = 0;
  const bool begins =
      !word.empty() && (absl::ascii_isdigit(static_cast<unsigned char>(word[0])) || word[0] == '.');
  if (!begins || !absl::SimpleAtod(word, &weight)) return absl::nullopt;
  return weight;
}

std::vector<std::string> Flags::WeightedWords(std::vector<std::string>::const_iterator end,
                                              std::vector<std::string>::const_iterator* word) {
  std::vector<std::string> words;
  while (std::next(*word) != end) {
    words.push_back(*++*word);  // the file of the weight before
    if (std::next(*word) == end || !WeightIn(*std::next(*word)).has_value()) break;
    words.push_back(*++*word);
  }
  return words;
}

void Flags::Integer(absl::string_view names, absl::string_view doc, IntegerBounds bounds,
                    absl::string_view rule, absl::optional<int64_t>* out) {
  const std::string name(names.substr(0, names.find(',')));
  Add(names, "N", doc, [=, label = std::string(rule)](const std::string& text) {
    return SetInteger(name, bounds, label, text, out);
  });
}

void Flags::Real(absl::string_view names, absl::string_view doc, double low, double high,
                 absl::optional<double>* out) {
  const std::string name(names.substr(0, names.find(',')));
  Add(names, "X", doc,
      [=](const std::string& text) { return SetReal(name, low, high, text, out); });
}

void Flags::Choice(absl::string_view names, absl::Span<const absl::string_view> legal,
                   absl::string_view doc, absl::optional<std::string>* out) {
  const std::string name(names.substr(0, names.find(',')));
  const std::vector<absl::string_view> words(legal.begin(), legal.end());
  Add(names, absl::StrJoin(words, "|"), doc, [=](const std::string& text) {
    absl::optional<Diagnostic> error = CheckChoice(name, words, text);
    if (!error.has_value()) *out = text;
    return error;
  });
}

void Flags::Choices(absl::string_view names, absl::Span<const absl::string_view> legal,
                    absl::string_view doc, std::vector<std::string>* out) {
  const std::string name(names.substr(0, names.find(',')));
  const std::vector<absl::string_view> words(legal.begin(), legal.end());
  Add(names, absl::StrJoin(words, "|"), doc, [=](const std::string& text) {
    absl::optional<Diagnostic> error = CheckChoice(name, words, text);
    if (!error.has_value()) out->push_back(text);
    return error;
  });
  flags_.back().repeats = true;
}

void Flags::Switch(absl::string_view names, absl::string_view doc, bool* out) {
  Add(names, "", doc, [out](const std::string&) -> absl::optional<Diagnostic> {
    *out = true;
    return absl::nullopt;
  });
}

void Flags::Arguments(size_t min, size_t max, std::vector<std::string>* out) {
  min_arguments_ = min;
  max_arguments_ = max;
  arguments_ = out;
}

const Flags::Flag* Flags::Find(absl::string_view name) const {
  for (const Flag& flag : flags_) {
    if (std::count(flag.names.begin(), flag.names.end(), name) > 0) return &flag;
  }
  return nullptr;
}

void Flags::TakeFlag(const Flag& flag, const std::string& name, absl::optional<std::string> value,
                     std::vector<std::string>* given, ParsedFlags* out) {
  const auto refuse = [&](std::string what, std::string legal) {
    out->errors.Add({"F5", std::move(what), std::move(legal)});
    out->bad_flags.push_back(flag.names[0]);
  };
  const bool is_switch = flag.value.empty();
  if (is_switch && value.has_value()) {
    refuse(absl::StrCat(name, " takes no value, not ", Shown(*value)), name);
  } else if (!is_switch && !value.has_value()) {
    refuse(absl::StrCat(name, " is given without its value"), absl::StrCat(name, " ", flag.value));
  } else {
    given->push_back(value.value_or(""));
  }
}

Flags::Line Flags::Split(const std::vector<std::string>& words, ParsedFlags* out) const {
  Line line;
  line.values.resize(flags_.size());
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == "--") {
      line.arguments.insert(line.arguments.end(), std::next(word), words.end());
      break;
    }
    line.help = line.help || *word == "-h" || *word == "--help";
    line.version = line.version || *word == "--version";
    if (*word == "-h" || *word == "--help" || *word == "--version") continue;
    if (word->size() < 2 || (*word)[0] != '-') {
      line.arguments.push_back(*word);
      continue;
    }
    const size_t equals = word->find('=');
    const std::string name = word->substr(0, equals);
    const Flag* flag = Find(name);
    if (flag == nullptr) {
      line.unknown.push_back(*word);
      continue;
    }
    absl::optional<std::string> value;
    if (equals != std::string::npos) {
      value = word->substr(equals + 1);
    } else if (!flag->value.empty() && std::next(word) != words.end()) {
      value = *++word;
    }
    std::vector<std::string>& given = line.values[static_cast<size_t>(flag - flags_.data())];
    TakeFlag(*flag, name, value, &given, out);
    if (!flag->weighted || !value.has_value() || !WeightIn(*value).has_value()) continue;
    for (std::string& behind : WeightedWords(words.end(), &word))
      given.push_back(std::move(behind));
  }
  return line;
}

void Flags::TakeUnknown(const std::vector<std::string>& unknown, ParsedFlags* out) const {
  std::vector<absl::string_view> names = {"--help", "--version"};
  for (const Flag& flag : flags_) names.insert(names.end(), flag.names.begin(), flag.names.end());
  for (const std::string& word : unknown) {
    const std::string name = word.substr(0, word.find('='));
    out->errors.Add(
        {"F1", absl::StrCat("unknown flag ", Shown(name), DidYouMean(name, names)), ""});
  }
}

void Flags::TakeArguments(const std::vector<std::string>& given, ParsedFlags* out) const {
  if (given.size() < min_arguments_) {
    out->errors.Add({"F6", absl::StrCat("missing argument: ", text_.arguments), ""});
  }
  for (size_t i = max_arguments_; i < given.size(); ++i) {
    out->errors.Add({"F6", absl::StrCat("unexpected argument ", Shown(given[i])), ""});
  }
  if (arguments_ != nullptr) *arguments_ = given;
}

absl::optional<Diagnostic> Flags::Set(const Flag& flag, const std::vector<std::string>& given) {
  if (given.size() > 1 && !flag.value.empty() && !flag.repeats) {
    return Diagnostic{"F5", absl::StrCat(flag.names[0], " is given ", given.size(), " times"),
                      "once"};
  }
  for (const std::string& text : given) {
    if (absl::optional<Diagnostic> error = flag.set(text)) return error;
  }
  return absl::nullopt;
}

ParsedFlags Flags::Parse(const std::vector<std::string>& arguments) {
  ParsedFlags parsed;
  const Line line = Split(arguments, &parsed);
  if (line.help || line.version) {
    parsed.text = line.help ? Help() : VersionText();
    return parsed;
  }
  TakeUnknown(line.unknown, &parsed);
  for (size_t i = 0; i < flags_.size(); ++i) {
    absl::optional<Diagnostic> error = Set(flags_[i], line.values[i]);
    if (!error.has_value()) continue;
    parsed.errors.Add(*std::move(error));
    parsed.bad_flags.push_back(flags_[i].names[0]);
  }
  // The value of an unknown flag reads as an argument: no further error then.
  if (line.unknown.empty()) TakeArguments(line.arguments, &parsed);
  return parsed;
}

std::string Flags::Help() const {
  std::string help = absl::StrCat(text_.name, ": ", text_.summary, "\n\nExamples:\n");
  for (const std::string& example : text_.examples) absl::StrAppend(&help, "  ", example, "\n");
  absl::StrAppend(&help, "\nUsage: ", text_.name, text_.arguments.empty() ? "" : " ",
                  text_.arguments, " [flags]\n");
  std::string section;
  for (const Flag& flag : flags_) {
    if (flag.section != section) {
      section = flag.section;
      absl::StrAppend(&help, "\n", section, ":\n");
    }
    absl::StrAppend(&help, "  ", absl::StrJoin(flag.names, ", "), flag.value.empty() ? "" : " ",
                    flag.value, "\n", Wrapped(flag.doc, 6, 100));
  }
  absl::StrAppend(&help, "\nAlways:\n  -h, --help\n      this text\n  --version\n");
  if (!text_.notes.empty()) absl::StrAppend(&help, "\n", text_.notes, "\n");
  return absl::StrCat(help, "\n", kExitCodes);
}

std::string Flags::ShortHelp() const {
  std::string help = absl::StrCat("usage: ", text_.name, text_.arguments.empty() ? "" : " ",
                                  text_.arguments, " [flags]\n");
  if (!text_.examples.empty()) absl::StrAppend(&help, "for example: ", text_.examples[0], "\n");
  return absl::StrCat(help, "all flags: ", text_.name, " --help\n");
}

std::string VersionText() { return "mgc 0.1.0\n"; }

}  // namespace mgc
