#include "frontends/tokenize/read_tokenizer.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "frontends/tokenize/bpe_lists.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/json_reader.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 30;
constexpr absl::string_view kGpt2End = "<|endoftext|>";
constexpr absl::string_view kUsualEnds[] = {kGpt2End, "<|end_of_text|>", "</s>"};

using Kind = JsonValue::Kind;

// Reads a tokenizer.json, part by part.
class TokenizerJson {
 public:
  TokenizerJson(const JsonValue& root, absl::string_view file) : root_(root), problems_(file) {}

  absl::StatusOr<Tokenizer> Read() {
    JsonObjectReader reader(root_, "", &problems_);
    reader.Ignore({"version", "truncation", "padding", "post_processor"}, nullptr);
    ReadAddedTokens(reader.TakeUnlessNull("added_tokens"));
    const bool nfc = ReadNormalizer(reader.TakeUnlessNull("normalizer"));
    const SplitPattern pattern = ReadPreTokenizer(&reader);
    if (const JsonValue* decoder = reader.TakeUnlessNull("decoder")) {
      RequireByteLevel(*decoder, "decoder.", /*use_regex=*/absl::nullopt);
    }
    const bool whole_words_first = ReadModel(&reader);
    reader.Finish();
    TokenizerParts parts;
    if (problems_.empty()) parts = lists_.Take(root_.place(), &problems_);
    MGC_RETURN_IF_ERROR(problems_.ToStatus());
    parts.pattern = pattern;
    parts.normalize_nfc = nfc;
    parts.whole_words_first = whole_words_first;
    return Tokenizer(std::move(parts));
  }

 private:
  static void Refuse(JsonObjectReader* reader, const char* key, absl::string_view what,
                     absl::string_view label) {
    reader->Problem(key, absl::StrCat(key, " ", what), label);
  }

  static std::string Text(JsonObjectReader* reader, const char* key) {
    const JsonValue* value = reader->Take(key);
    if (value != nullptr && value->kind == Kind::kString) return value->text;
    Refuse(reader, key, value == nullptr ? "is missing" : "must be a string",
           value == nullptr ? "J4" : "J2");
    return "";
  }

  void ReadAddedTokens(const JsonValue* tokens) {
    if (tokens == nullptr) return;
    if (tokens->kind != Kind::kArray) {
      problems_.Add(tokens->place(), "J2", "added_tokens must be an array");
      return;
    }
    for (const JsonValue& item : tokens->items) {
      JsonObjectReader reader(item, "added_tokens.", &problems_);
      AddedToken token;
      token.id = static_cast<TokenId>(reader.Integer("id", {0, kMaxTokenId}));
      token.content = Text(&reader, "content");
      token.single_word = reader.Bool("single_word", false);
      token.lstrip = reader.Bool("lstrip", false);
      token.rstrip = reader.Bool("rstrip", false);
      token.special = reader.Bool("special", false);
      token.normalized = reader.Bool("normalized", !token.special);
      reader.Finish();
      if (reader.Failed("id") || token.content.empty()) continue;
      lists_.Add(token, item.place(), &problems_);
    }
  }

  // Whether it is NFC; what is neither that nor nothing is a problem.
  bool ReadNormalizer(const JsonValue* normalizer) {
    if (normalizer == nullptr) return false;
    JsonObjectReader reader(*normalizer, "normalizer.", &problems_);
    const bool sequence = reader.Choice("type", {"NFC", "Sequence"}) == 1;
    bool nfc = !sequence;
    if (sequence) {
      const JsonValue* items = reader.Take("normalizers");
      if (items != nullptr && items->kind == Kind::kArray) {
        for (const JsonValue& item : items->items) nfc = ReadNormalizer(&item) || nfc;
      } else {
        Refuse(&reader, "normalizers", "must be an array", "J2");
      }
    }
    reader.Finish();
    return nfc;
  }

  // A component of the type ByteLevel that adds no blank, and splits as told.
  void RequireByteLevel(const JsonValue& value, absl::string_view prefix,
                        absl::optional<bool> use_regex) {
    JsonObjectReader reader(value, prefix, &problems_);
    reader.Choice("type", {"ByteLevel"});
    if (use_regex.has_value()) {
      reader.RequireBool("add_prefix_space", false);
      if (reader.Bool("use_regex", true) != *use_regex && !reader.Failed("use_regex")) {
        Refuse(&reader, "use_regex",
               *use_regex ? "must be true without a Split" : "must be false behind a Split", "J5");
      }
    }
    reader.Ignore({"add_prefix_space", "trim_offsets", "use_regex"}, nullptr);
    reader.Finish();
  }

  SplitPattern ReadPreTokenizer(JsonObjectReader* root) {
    const JsonValue* value = root->TakeUnlessNull("pre_tokenizer");
    if (value == nullptr) {
      Refuse(root, "pre_tokenizer", "is missing: texts would not fall into words", "J4");
      return SplitPattern::kGpt2;
    }
    const JsonValue* type = value->Find("type");
    if (type == nullptr || type->text != "Sequence") {
      RequireByteLevel(*value, "pre_tokenizer.", /*use_regex=*/true);
      return SplitPattern::kGpt2;
    }
    JsonObjectReader reader(*value, "pre_tokenizer.", &problems_);
    reader.Ignore({"type"}, nullptr);
    SplitPattern pattern = SplitPattern::kGpt2;
    const JsonValue* items = reader.Take("pretokenizers");
    if (items != nullptr && items->kind == Kind::kArray && items->items.size() == 2) {
      pattern = ReadSplit(items->items[0]);
      RequireByteLevel(items->items[1], "pre_tokenizer.pretokenizers.", /*use_regex=*/false);
    } else {
      Refuse(&reader, "pretokenizers", "must be a Split and a ByteLevel", "J5");
    }
    reader.Finish();
    return pattern;
  }

  SplitPattern ReadSplit(const JsonValue& value) {
    JsonObjectReader reader(value, "pre_tokenizer.pretokenizers.", &problems_);
    reader.Choice("type", {"Split"});
    reader.Choice("behavior", {"Isolated"});
    reader.RequireBool("invert", false);
    const JsonValue* pattern = reader.Take("pattern");
    const JsonValue* regex = pattern == nullptr ? nullptr : pattern->Find("Regex");
    absl::optional<SplitPattern> known;
    if (regex != nullptr) known = SplitPatternOf(regex->text);
    if (!known.has_value()) {
      Refuse(&reader, "pattern",
             absl::StrCat("must be the regular expression of one of ",
                          absl::StrJoin(SplitPatternNames(), ", ")),
             "J5");
    }
    reader.Finish();
    return known.value_or(SplitPattern::kGpt2);
  }

  // Whether words that are tokens are taken whole.
  bool ReadModel(JsonObjectReader* root) {
    const JsonValue* value = root->Take("model");
    if (value == nullptr) {
      Refuse(root, "model", "is missing", "J4");
      return false;
    }
    JsonObjectReader reader(*value, "model.", &problems_);
    reader.Choice("type", {"BPE"}, size_t{0});
    reader.RequireNull("dropout", "tokens must not depend on chance");
    reader.RequireBool("byte_fallback", false);
    // Nothing is unknown: every byte has a token.
    reader.Ignore({"unk_token", "fuse_unk"}, nullptr);
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const JsonValue* affix = reader.TakeUnlessNull(key);
      if (affix != nullptr && (affix->kind != Kind::kString || !affix->text.empty())) {
        Refuse(&reader, key, "must be null or empty: tokens are bytes", "J5");
      }
    }
    const bool whole_words_first = reader.Bool("ignore_merges", false);
    const JsonValue* vocabulary = reader.Take("vocab");
    if (vocabulary != nullptr && vocabulary->kind == Kind::kObject) {
      lists_.AddVocabulary(*vocabulary, &problems_);
    } else {
      Refuse(&reader, "vocab", "must be an object", vocabulary == nullptr ? "J4" : "J2");
    }
    const JsonValue* merges = reader.Take("merges");
    if (merges != nullptr && merges->kind == Kind::kArray) {
      if (problems_.empty()) ReadMerges(*merges);
    } else {
      Refuse(&reader, "merges", "must be an array", merges == nullptr ? "J4" : "J2");
    }
    reader.Finish();
    return whole_words_first;
  }

  // Both forms: "a b" and ["a", "b"].
  void ReadMerges(const JsonValue& merges) {
    for (const JsonValue& merge : merges.items) {
      if (merge.kind == Kind::kArray && merge.items.size() == 2) {
        lists_.AddMerge(merge.items[0].text, merge.items[1].text, merge.place(), &problems_);
        continue;
      }
      const std::pair<absl::string_view, absl::string_view> sides =
          absl::StrSplit(merge.text, absl::MaxSplits(' ', 1));
      lists_.AddMerge(sides.first, sides.second, merge.place(), &problems_);
    }
  }

  const JsonValue& root_;
  FileDiagnostics problems_;
  BpeLists lists_;
};

std::string Inside(const std::string& folder, absl::string_view name) {
  return absl::StrCat(folder, absl::EndsWith(folder, "/") ? "" : "/", name);
}

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

absl::StatusOr<Tokenizer> ReadJson(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  return ParseTokenizerJson(text, path);
}

absl::StatusOr<Tokenizer> ReadFolder(const std::string& folder) {
  const std::string json = Inside(folder, "tokenizer.json");
  const std::string vocabulary = Inside(folder, "vocab.json");
  const std::string merges = Inside(folder, "merges.txt");
  if (Exists(json)) return ReadJson(json);
  if (!Exists(vocabulary) || !Exists(merges)) {
    return absl::NotFoundError(absl::StrCat(EscapeBytes(folder),
                                            " has neither a tokenizer.json "
                                            "nor a vocab.json with a merges.txt"));
  }
  MGC_ASSIGN_OR_RETURN(const std::string vocabulary_text, ReadFile(vocabulary, kMaxFileBytes));
  MGC_ASSIGN_OR_RETURN(const std::string merges_text, ReadFile(merges, kMaxFileBytes));
  return ParseGpt2Files({vocabulary_text, vocabulary}, {merges_text, merges});
}

// The eos_token of a tokenizer_config.json: a string, or an object with the content.
absl::StatusOr<std::string> EndNamedBy(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  MGC_ASSIGN_OR_RETURN(const JsonValue root, ParseJson(text, path));
  const JsonValue* token = root.Find("eos_token");
  if (token != nullptr && token->kind == Kind::kObject) token = token->Find("content");
  return token == nullptr ? std::string() : token->text;
}

}  // namespace

absl::StatusOr<Tokenizer> ParseTokenizerJson(absl::string_view text, absl::string_view file) {
  MGC_ASSIGN_OR_RETURN(const JsonValue root, ParseJson(text, file));
  MGC_ASSIGN_OR_RETURN(Tokenizer tokenizer, TokenizerJson(root, file).Read());
  for (const absl::string_view end : kUsualEnds) {
    if (tokenizer.end_of_document().has_value()) break;
    tokenizer.EndDocumentsWith(tokenizer.Find(end));
  }
  return tokenizer;
}

absl::StatusOr<Tokenizer> ParseGpt2Files(const NamedText& vocabulary, const NamedText& merges) {
  MGC_ASSIGN_OR_RETURN(const JsonValue root, ParseJson(vocabulary.text, vocabulary.file));
  FileDiagnostics vocabulary_problems(vocabulary.file);
  FileDiagnostics merge_problems(merges.file);
  BpeLists lists;
  const JsonObjectReader check_object(root, "", &vocabulary_problems);
  lists.AddVocabulary(root, &vocabulary_problems);
  MGC_RETURN_IF_ERROR(vocabulary_problems.ToStatus());
  int number = 0;
  for (absl::string_view line : absl::StrSplit(merges.text, '\n')) {
    ++number;
    absl::ConsumeSuffix(&line, "\r");
    if (line.empty() || (number == 1 && absl::StartsWith(line, "#version"))) continue;
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    lists.AddMerge(sides.first, sides.second, {number, 1}, &merge_problems);
  }
  MGC_RETURN_IF_ERROR(merge_problems.ToStatus());
  lists.AddFromVocabulary(kGpt2End);
  TokenizerParts parts = lists.Take(root.place(), &vocabulary_problems);
  MGC_RETURN_IF_ERROR(vocabulary_problems.ToStatus());
  Tokenizer tokenizer(std::move(parts));
  tokenizer.EndDocumentsWith(tokenizer.Find(kGpt2End));
  return tokenizer;
}

absl::StatusOr<Tokenizer> ReadTokenizer(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return ReadJson(path);
  MGC_ASSIGN_OR_RETURN(Tokenizer tokenizer, ReadFolder(path));
  const std::string config = Inside(path, "tokenizer_config.json");
  if (!Exists(config)) return tokenizer;
  MGC_ASSIGN_OR_RETURN(const std::string end, EndNamedBy(config));
  if (!end.empty()) tokenizer.EndDocumentsWith(tokenizer.Find(end));
  return tokenizer;
}

}  // namespace mgc
