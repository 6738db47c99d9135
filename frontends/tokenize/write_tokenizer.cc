#include "frontends/tokenize/write_tokenizer.h"

#include <utility>

#include "frontends/tokenize/byte_alphabet.h"
#include "graph/base/json_writer.h"

namespace mgc {
namespace {

void WriteAdded(const Tokenizer& tokenizer, JsonWriter* json) {
  json->Key("added_tokens").BeginArray();
  for (const AddedToken& token : tokenizer.added()) {
    json->NewLine(4).BeginObject().Integer("id", token.id).String("content", token.content);
    json->Bool("single_word", token.single_word).Bool("lstrip", token.lstrip);
    json->Bool("rstrip", token.rstrip).Bool("normalized", token.normalized);
    json->Bool("special", token.special).EndObject();
  }
  json->EndArray();
}

void WriteByteLevel(bool use_regex, JsonWriter* json) {
  json->BeginObject().String("type", "ByteLevel").Bool("add_prefix_space", false);
  json->Bool("trim_offsets", true).Bool("use_regex", use_regex).EndObject();
}

void WritePreTokenizer(SplitPattern pattern, JsonWriter* json) {
  json->Key("pre_tokenizer");
  if (pattern == SplitPattern::kGpt2) {
    WriteByteLevel(/*use_regex=*/true, json);
    return;
  }
  json->BeginObject().String("type", "Sequence").Key("pretokenizers").BeginArray();
  json->BeginObject().String("type", "Split");
  json->Key("pattern").BeginObject().String("Regex", RegexOf(pattern)).EndObject();
  json->String("behavior", "Isolated").Bool("invert", false).EndObject();
  WriteByteLevel(/*use_regex=*/false, json);
  json->EndArray().EndObject();
}

// How a token is written in the vocabulary: an added one as it is.
std::string SpellingIn(const Tokenizer& tokenizer, TokenId id) {
  for (const AddedToken& token : tokenizer.added()) {
    if (token.id == id) return token.content;
  }
  return SpellBytes(tokenizer.TextOf(id));
}

void WriteModel(const Tokenizer& tokenizer, JsonWriter* json) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  json->Key("model").BeginObject().String("type", "BPE");
  json->Key("dropout").Null().Key("unk_token").Null();
  json->Key("continuing_subword_prefix").Null().Key("end_of_word_suffix").Null();
  json->Bool("fuse_unk", false).Bool("byte_fallback", false);
  json->Bool("ignore_merges", tokenizer.whole_words_first());
  json->NewLine(4).Key("vocab").BeginObject();
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.TextOf(id).empty()) continue;
    json->NewLine(6).Integer(SpellingIn(tokenizer, id), id);
  }
  json->EndObject().NewLine(4).Key("merges").BeginArray();
  for (const Merge& merge : vocabulary.merges()) {
    json->NewLine(6).BeginArray();
    json->String(SpellBytes(vocabulary.BytesOf(merge.left)));
    json->String(SpellBytes(vocabulary.BytesOf(merge.right))).EndArray();
  }
  json->EndArray().EndObject();
}

}  // namespace

std::string TokenizerJsonText(const Tokenizer& tokenizer) {
  JsonWriter json;
  json.BeginObject().NewLine(2).String("version", "1.0");
  json.Key("truncation").Null().Key("padding").Null();
  json.NewLine(2);
  WriteAdded(tokenizer, &json);
  json.NewLine(2).Key("normalizer");
  if (tokenizer.normalizes()) {
    json.BeginObject().String("type", "NFC").EndObject();
  } else {
    json.Null();
  }
  json.NewLine(2);
  WritePreTokenizer(tokenizer.pattern(), &json);
  json.Key("post_processor").Null();
  json.NewLine(2).Key("decoder");
  WriteByteLevel(/*use_regex=*/true, &json);
  json.NewLine(2);
  WriteModel(tokenizer, &json);
  json.EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
