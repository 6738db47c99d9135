#include "tools/tokens/tokenize_flags.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "frontends/tokenize/split_pattern.h"
#include "frontends/tokenize/train_bpe.h"
#include "runtime/data/tokens/token_format.h"

namespace mgc {
namespace {

constexpr size_t kMostInputs = size_t{1} << 20;
constexpr char kJsonLines[] = "jsonl";

}  // namespace

void AddTokenizeFlags(Flags* flags, TokenizeFlags* out) {
  flags->Arguments(1, kMostInputs, &out->inputs);
  flags->Section("Tokenizer");
  flags->Text("--tokenizer,--tokenizer-model", "DIR|FILE",
              "a tokenizer.json, a folder with one or with vocab.json and merges.txt, a "
              "tokenizer.model of SentencePiece or a folder with one, or `bytes`",
              &out->tokenizer);
  flags->Switch("--train", "make a tokenizer of the texts: a byte-level BPE vocabulary",
                &out->train);
  flags->Integer("--vocab-size", "tokens of the vocabulary to train",
                 {kLeastTrainedVocabulary, kMaxTokenId}, "F3", &out->vocab_size);
  flags->Choice("--pattern", SplitPatternNames(),
                "how texts fall into words, as the family of that name does it (default gpt2)",
                &out->pattern);
  flags->Section("Documents");
  flags->Choice("--documents", {"file", "line", kJsonLines},
                "what one is: a file, a line, or a string of the JSON object in a line; empty ones "
                "are left out (default file)",
                &out->documents);
  flags->Text("--json-key,--json-keys", "KEY", "the string's key (default text)", &out->json_key);
  flags->Text("--separator", "TEXT", "what stands between two documents, byte for byte",
              &out->separator);
  flags->Switch("--append-eod", "put the token that ends documents behind each", &out->append_eod);
  flags->Text(
      "--eod", "TOKEN",
      "which one that is (default: the eos_token of the folder's tokenizer_config.json, "
      "else <|endoftext|>, <|end_of_text|> or </s>; of SentencePiece, its end of a sentence)",
      &out->eod);
  flags->Section("Results");
  flags->Text("-o,--output,--output-prefix", "PREFIX",
              "write PREFIX.bin and PREFIX.idx; of --train, the tokenizer.json", &out->output);
  flags->Choice("--format", WrittenFormatNames(),
                "Megatron-LM's pair, or one file of nanoGPT or llm.c (default megatron)",
                &out->format);
  flags->Switch("--decode", "the other way: print the text of token files", &out->decode);
  flags->Integer("--workers", "threads (default: one for each processor)", {1, 4096}, "F3",
                 &out->workers);
  flags->Switch("--json", "say at the end in JSON what was written", &out->json);
}

Diagnostics CheckTokenizeFlags(const TokenizeFlags& flags) {
  Diagnostics violations;
  const auto add = [&](const char* label, std::string text, std::string hint) {
    violations.Add({label, std::move(text), std::move(hint)});
  };
  const auto alone = [&](const char* flag, bool given, bool wanted, const char* beside) {
    if (given && !wanted) {
      add("F7", absl::StrCat(flag, " means something with ", beside, " alone"), beside);
    }
  };
  if (flags.train && flags.decode) add("F7", "--train and --decode are both given", "one of both");
  if (flags.train && flags.tokenizer) {
    add("F7", "--train makes a tokenizer, and --tokenizer names one", "one of both");
  }
  if (!flags.train && !flags.tokenizer) {
    add("F6", "the tokenizer is missing", "--tokenizer DIR, or --train to make one");
  }
  if (!flags.decode && !flags.output) {
    add("F6", "the output is missing", flags.train ? "-o tokenizer.json" : "-o PREFIX");
  }
  if (flags.decode && flags.output) {
    add("F7", "--decode prints, and --output names a file", "one of both");
  }
  if (flags.train && !flags.vocab_size) {
    add("F6", "the size of the vocabulary is missing", "--vocab-size N");
  }
  alone("--vocab-size", flags.vocab_size.has_value(), flags.train, "--train");
  alone("--pattern", flags.pattern.has_value(), flags.train, "--train");
  alone("--eod", flags.eod.has_value(), flags.append_eod, "--append-eod");
  alone("--json-key", flags.json_key.has_value(), flags.documents == kJsonLines,
        "--documents jsonl");
  const bool writes = !flags.train && !flags.decode;
  for (const auto& [flag, given] : {std::make_pair("--append-eod", flags.append_eod),
                                    std::make_pair("--format", flags.format.has_value())}) {
    if (given && !writes) {
      add("F7", absl::StrCat(flag, " is of token files that are written"), "");
    }
  }
  if (flags.separator && flags.documents) {
    add("F7", "--separator and --documents both say what a document is", "one of both");
  }
  if (flags.separator && flags.separator->empty()) {
    add("F5", "--separator is empty", "--documents file");
  }
  return violations;
}

DocumentRule DocumentRuleOf(const TokenizeFlags& flags) {
  DocumentRule rule;
  rule.key = flags.json_key.value_or("text");
  if (flags.separator) {
    rule.kind = DocumentRule::Kind::kSeparator;
    rule.separator = *flags.separator;
  } else if (flags.documents == "line") {
    rule.kind = DocumentRule::Kind::kLine;
  } else if (flags.documents == kJsonLines) {
    rule.kind = DocumentRule::Kind::kJsonLine;
  }
  return rule;
}

}  // namespace mgc
