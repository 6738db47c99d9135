// mgc-tokenize: texts to token files and back, and tokenizers from texts.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontends/pieces/piece_tokenizer.h"
#include "frontends/tokenize/read_tokenizer.h"
#include "frontends/tokenize/train_bpe.h"
#include "frontends/tokenize/write_tokenizer.h"
#include "graph/base/file.h"
#include "graph/base/json_writer.h"
#include "graph/base/random.h"
#include "graph/base/status.h"
#include "runtime/data/tokens/token_file.h"
#include "runtime/data/tokens/token_file_writer.h"
#include "runtime/run/host.h"
#include "tools/cli/command.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/tokens/progress_line.h"
#include "tools/tokens/tokenize_files.h"
#include "tools/tokens/tokenize_flags.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-tokenize";
constexpr char kBytes[] = "bytes";

CommandText About() {
  return {
      kCommand,
      "TEXT...",
      "texts to token files for mgc-run --data, and back",
      {"mgc-tokenize --train --vocab-size 512 text.txt -o tokenizer.json",
       "mgc-tokenize --tokenizer tokenizer.json text.txt -o tokens",
       "mgc-tokenize --tokenizer tokenizer.json --documents line --append-eod text.txt -o lines",
       "mgc-tokenize --tokenizer tokenizer.json --decode tokens.bin"},
      "Tokenizers are those of GPT-2, Llama 3 and Qwen 2, byte-level BPE, and SentencePiece's. "
      "TEXT - "
      "is stdin.\nFiles appear whole or not at all, and are the same whatever the number of "
      "threads."};
}

// Stdin is read as a file.
std::vector<std::string> PathsOf(const TokenizeFlags& flags) {
  std::vector<std::string> paths = flags.inputs;
  std::replace(paths.begin(), paths.end(), std::string("-"), std::string("/dev/stdin"));
  return paths;
}

// The files that are written.
std::vector<NamedPath> ResultsOf(const TokenizeFlags& flags) {
  if (!flags.output) return {};
  if (flags.train) return {{"--output", *flags.output}};
  const std::string prefix = PrefixOf(*flags.output);
  return {{"--output", prefix + ".bin"}, {"--output", prefix + ".idx"}};
}

absl::StatusOr<std::unique_ptr<TextTokenizer>> TokenizerOf(const TokenizeFlags& flags) {
  if (*flags.tokenizer == kBytes) return std::make_unique<Tokenizer>(ByteTokenizer());
  if (const auto model = PieceModelAt(*flags.tokenizer)) return ReadPieceModel(*model);
  MGC_ASSIGN_OR_RETURN(Tokenizer tokenizer, ReadTokenizer(*flags.tokenizer));
  return std::make_unique<Tokenizer>(std::move(tokenizer));
}

absl::StatusOr<absl::optional<TokenId>> EndOf(const TokenizeFlags& flags,
                                              const TextTokenizer& tokenizer) {
  if (!flags.append_eod) return absl::optional<TokenId>();
  const absl::optional<TokenId> end =
      flags.eod.has_value() ? tokenizer.Find(*flags.eod) : tokenizer.end_of_document();
  if (end.has_value()) return end;
  return absl::InvalidArgumentError(
      flags.eod.has_value()
          ? absl::StrCat("--eod ", EscapeBytes(*flags.eod), " is no token of ",
                         EscapeBytes(*flags.tokenizer))
          : absl::StrCat(EscapeBytes(*flags.tokenizer),
                         " does not say which token ends documents; --eod TOKEN does"));
}

std::string Report(const TokenFileWriter& writer, const TextTokenizer& tokenizer, bool as_json) {
  if (!as_json) {
    return absl::StrCat(EscapeBytes(writer.path()), ": ", writer.documents(), " documents, ",
                        writer.tokens(), " tokens of ", NameOf(writer.type()), ", vocabulary ",
                        tokenizer.vocabulary_size(), "\n");
  }
  JsonWriter json(JsonStyle::kCompact);
  json.BeginObject().Integer("schema_version", 1).String("path", writer.path());
  json.Integer("documents", writer.documents()).Integer("tokens", writer.tokens());
  json.String("type", NameOf(writer.type())).Integer("vocabulary", tokenizer.vocabulary_size());
  json.EndObject();
  return std::move(json).Finish();
}

// How much text an interrupted run may have tokenized in vain.
constexpr int64_t kSaveBytes = int64_t{64} << 20;

// What tokens are made of and how, but for the texts: of the same line they are the same.
std::string MarkOf(const TokenizeFlags& flags, const DocumentRule& rule,
                   const absl::optional<TokenId>& end) {
  std::string mark = absl::StrCat("mgc-tokenize 1 ", flags.format.value_or("megatron"), " ",
                                  static_cast<int>(rule.kind), " ", end.value_or(kNoToken));
  std::vector<std::string> parts = {*flags.tokenizer, rule.key, rule.separator};
  for (const char* name :
       {"", "/tokenizer.json", "/tokenizer.model", "/vocab.json", "/merges.txt"}) {
    parts.push_back(ReadFile(absl::StrCat(*flags.tokenizer, name)).value_or(""));
  }
  for (const std::string& part : parts) absl::StrAppend(&mark, " ", absl::Hex(StreamOf(part)));
  return mark;
}

int Tokenize(const TokenizeFlags& flags) {
  const absl::StatusOr<std::unique_ptr<TextTokenizer>> read = TokenizerOf(flags);
  if (!read.ok()) return Fail(read.status(), kExitBadModel);
  const TextTokenizer* const tokenizer = read->get();
  const absl::StatusOr<absl::optional<TokenId>> end = EndOf(flags, *tokenizer);
  if (!end.ok()) return Fail(end.status(), kExitInfeasible);
  const TokenFormat format = *TokenFormatNamed(flags.format.value_or("megatron"));
  if (!TypeFor(format, tokenizer->vocabulary_size()).has_value()) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
                    "ids of a vocabulary of ", tokenizer->vocabulary_size(),
                    " do not fit into files of ", NameOf(format), "; --format megatron takes any")),
                kExitInfeasible);
  }
  TokenizeOptions options;
  options.rule = DocumentRuleOf(flags);
  options.save_bytes = kSaveBytes;
  absl::StatusOr<std::unique_ptr<TokenFileWriter>> writer =
      TokenFileWriter::Create(PrefixOf(*flags.output), format, tokenizer->vocabulary_size(),
                              MarkOf(flags, options.rule, *end));
  if (!writer.ok()) return Fail(writer.status(), kExitFailed);
  if ((*writer)->documents() > 0) {
    PrintNotes({absl::StrCat("goes on behind the ", (*writer)->documents(),
                             " documents that an interrupted run has left")});
  }
  options.workers = static_cast<int>(flags.workers.value_or(ReadHost().processors));
  options.end_with = *end;
  absl::Status status;
  {
    ProgressLine line;
    options.on_progress = [&line](const TokenizeProgress& progress) { line.Show(progress); };
    status = TokenizeFiles(PathsOf(flags), *tokenizer, options, writer->get());
  }
  if (!status.ok()) return Fail(status, kExitBadModel);
  status = (*writer)->Finish();
  if (!status.ok()) return Fail(status, kExitFailed);
  return Finish(Report(**writer, *tokenizer, flags.json));
}

int Train(const TokenizeFlags& flags) {
  WordCounts counts(*SplitPatternNamed(flags.pattern.value_or("gpt2")));
  absl::Status status;
  {
    ProgressLine line;
    const auto show = [&line](const TokenizeProgress& progress) { line.Show(progress); };
    status = CountWords(PathsOf(flags), DocumentRuleOf(flags), show, &counts);
  }
  if (!status.ok()) return Fail(status, kExitBadModel);
  const Tokenizer tokenizer = TrainBpe(counts, *flags.vocab_size);
  status = WriteAll({{*flags.output, TokenizerJsonText(tokenizer)}});
  if (!status.ok()) return Fail(status, kExitFailed);
  if (tokenizer.vocabulary_size() < *flags.vocab_size) {
    PrintNotes({absl::StrCat("the texts give no more than ", tokenizer.vocabulary_size(),
                             " tokens: every word is one")});
  }
  return kExitOk;
}

int Decode(const TokenizeFlags& flags) {
  const absl::StatusOr<std::unique_ptr<TextTokenizer>> tokenizer = TokenizerOf(flags);
  if (!tokenizer.ok()) return Fail(tokenizer.status(), kExitBadModel);
  for (const std::string& path : flags.inputs) {
    const absl::StatusOr<std::shared_ptr<const TokenFile>> file = TokenFile::Open(path);
    if (!file.ok()) return Fail(file.status(), kExitBadModel);
    absl::Status written;
    const auto write = [&written](absl::string_view text) { return written = WriteStdout(text); };
    const absl::Status status = DecodeFile(**file, **tokenizer, write);
    if (!status.ok()) return Fail(status, written.ok() ? kExitBadModel : kExitFailed);
  }
  return kExitOk;
}

int Main(const Words& arguments) {
  TokenizeFlags flags;
  Flags parser(About());
  AddTokenizeFlags(&parser, &flags);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&parser, arguments, &parsed)) return *code;
  if (parsed.bad_flags.empty()) parsed.errors.Append(CheckTokenizeFlags(flags));
  std::vector<NamedPath> inputs;
  for (const std::string& input : flags.inputs) inputs.push_back({"TEXT", input});
  parsed.errors.Append(CheckPaths(inputs, ResultsOf(flags)));
  if (!parsed.errors.empty()) return Refuse(parsed.errors, Diagnostics(), kCommand);
  if (flags.train) return Train(flags);
  return flags.decode ? Decode(flags) : Tokenize(flags);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
