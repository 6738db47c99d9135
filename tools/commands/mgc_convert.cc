// mgc-convert: the parameters of a checkpoint as a file of weights or as a model directory, and a
// checkpoint from either.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/weights/begin_checkpoint.h"
#include "runtime/weights/export_weights.h"
#include "tools/cli/command.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/models/model_dir.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-convert";
constexpr absl::string_view kSuffix = ".safetensors";
constexpr absl::string_view kTypes[] = {"f32", "bf16", "f16"};

struct ConvertFlags {
  Words from;
  absl::optional<std::string> output, dtype, like, shard_size;
  bool adapter_only = false;
};

CommandText About() {
  return {kCommand,
          "CHECKPOINT|DIR|FILE.safetensors|MODELDIR",
          "write the parameters of a checkpoint as weights, or make a checkpoint of weights",
          {"mgc-convert checkpoints -o weights.safetensors --dtype bf16",
           "mgc-convert weights.safetensors -o start",
           "mgc-run model.plan --data text.txt --load start --save checkpoints",
           "mgc-convert checkpoints --like gpt2-tiny -o trained",
           "mgc-convert checkpoints --like gpt2-tiny --adapter-only -o adapter"},
          "Of the folder of a run, the checkpoint that it would go on from. Names and shapes are "
          "those of docs/parameters.md, in checkpoints and in files; in model directories, which "
          "have a config.json, those of its family (docs/weights.md)."};
}

std::string Wrote(int64_t elements, const std::string& path) {
  return absl::StrCat("wrote ", elements, " parameters to ", EscapeBytes(path), "\n");
}

SafetensorsType TypeOf(const ConvertFlags& flags) {
  if (flags.dtype == "bf16") return SafetensorsType::kBF16;
  return flags.dtype == "f16" ? SafetensorsType::kF16 : SafetensorsType::kF32;
}

int ToWeights(const ConvertFlags& flags) {
  const absl::StatusOr<std::string> folder = FolderToLoad(flags.from[0]);
  if (!folder.ok()) return Fail(folder.status(), kExitBadModel);
  const absl::StatusOr<int64_t> elements = ExportFile(*folder, TypeOf(flags), *flags.output);
  return elements.ok() ? Finish(Wrote(*elements, *flags.output))
                       : Fail(elements.status(), kExitBadModel);
}

// A folder with a run in it is not to get another beginning.
absl::Status CheckEmpty(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListSteps(path));
  if (steps.empty()) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(EscapeBytes(path), " has checkpoints; give weights a folder of their own"));
}

absl::StatusOr<int64_t> ReadInto(const std::string& from, const CheckpointDir& dir) {
  const std::string version(absl::StripSuffix(VersionText(), "\n"));
  if (!IsModelDir(from)) return BeginWithFile(from, dir, version);
  MGC_ASSIGN_OR_RETURN(const ModelDir model, OpenModelDir(from));
  PrintNotes(model.notes);
  return BeginWithModel(model.files, dir, version);
}

// `5GB`, `200MB`, `4096`: in powers of ten, as in huggingface_hub.
absl::optional<int64_t> ParseShardSize(absl::string_view text) {
  constexpr std::pair<absl::string_view, int64_t> kUnits[] = {
      {"GB", 1000000000}, {"MB", 1000000}, {"KB", 1000}, {"", 1}};
  for (const auto& [unit, bytes] : kUnits) {
    if (!absl::EndsWith(text, unit)) continue;
    int64_t count = 0;
    const bool reads = absl::SimpleAtoi(absl::StripSuffix(text, unit), &count);
    const bool fits = reads && count > 0 && count <= (int64_t{1} << 60) / bytes;
    return fits ? absl::make_optional(count * bytes) : absl::nullopt;
  }
  return absl::nullopt;
}

int ToModelDir(const ConvertFlags& flags) {
  const absl::StatusOr<std::string> folder = FolderToLoad(flags.from[0]);
  if (!folder.ok()) return Fail(folder.status(), kExitBadModel);
  ExportRequest request{*folder, *flags.like, absl::nullopt, absl::nullopt, *flags.output};
  if (flags.dtype) request.type = TypeOf(flags);
  if (flags.shard_size) request.shard_bytes = ParseShardSize(*flags.shard_size);
  request.adapter_only = flags.adapter_only;
  const absl::StatusOr<int64_t> elements = ExportModelDir(request);
  if (elements.ok()) return Finish(Wrote(*elements, *flags.output));
  return Fail(elements.status(),
              absl::IsAlreadyExists(elements.status()) ? kExitFailed : kExitBadModel);
}

int ToCheckpoint(const ConvertFlags& flags) {
  const absl::Status empty = CheckEmpty(*flags.output);
  if (!empty.ok()) return Fail(empty, kExitFailed);
  const auto dir = CheckpointDir::Open(*flags.output);
  if (!dir.ok()) return Fail(dir.status(), kExitFailed);
  const absl::StatusOr<int64_t> elements = ReadInto(flags.from[0], **dir);
  return elements.ok() ? Finish(Wrote(*elements, *flags.output))
                       : Fail(elements.status(), kExitBadModel);
}

bool IsWeightsFile(const std::string& path) { return absl::EndsWith(path, kSuffix); }

// Whether what is read are weights, of which a checkpoint is to be made.
bool IsBeginning(const ConvertFlags& flags) {
  return IsWeightsFile(flags.from[0]) || IsModelDir(flags.from[0]);
}

Diagnostics CheckUsage(const ConvertFlags& flags) {
  Diagnostics usage;
  const bool beginning = IsBeginning(flags);
  const bool to_folder = beginning || flags.like;
  const char* const legal = to_folder ? "-o DIR" : "-o weights.safetensors";
  if (!flags.output) {
    usage.Add({"F6", "-o is not given", legal});
  } else if (to_folder == IsWeightsFile(*flags.output)) {
    usage.Add({"F6",
               absl::StrCat(EscapeBytes(flags.from[0]), " and ", EscapeBytes(*flags.output),
                            " are both ", IsWeightsFile(flags.from[0]) ? "files" : "folders"),
               flags.like ? "-o DIR" : absl::StrCat(legal, beginning ? "" : ", or --like MODEL")});
  }
  if (beginning && flags.like) {
    usage.Add({"F6", "--like is given, and what is read is no checkpoint", "no --like"});
  }
  if (beginning && flags.dtype) {
    usage.Add({"F6", "--dtype is given, and a checkpoint holds f32", "no --dtype"});
  }
  if (flags.shard_size && !flags.like) {
    usage.Add(
        {"F6", "--max-shard-size is given, and no model directory is written", "--like MODEL"});
  }
  if (flags.adapter_only && !flags.like) {
    usage.Add({"F6", "--adapter-only is given, and nothing says of which model", "--like MODEL"});
  }
  if (flags.adapter_only && flags.shard_size) {
    usage.Add({"F7", "--max-shard-size is of a model's files, and an adapter has one",
               "one of --adapter-only and --max-shard-size"});
  }
  if (flags.shard_size && !ParseShardSize(*flags.shard_size)) {
    usage.Add({"F4",
               absl::StrCat("--max-shard-size ", EscapeBytes(*flags.shard_size), " is no size"),
               "a number of bytes, as 5GB, 200MB or 4096"});
  }
  return usage;
}

int Main(const Words& arguments) {
  Flags parser(About());
  ConvertFlags flags;
  parser.Arguments(1, 1, &flags.from);
  parser.Text("-o,--output", "FILE.safetensors|DIR", "where weights, or the checkpoint, go",
              &flags.output);
  parser.Choice("--dtype", kTypes,
                "of the weights written (default f32, as trained; of a model directory as --like "
                "has them)",
                &flags.dtype);
  parser.Text("--like", "MODEL",
              "write a model directory of the configuration, names and other files that this one "
              "has; a configuration file or a preset has no files",
              &flags.like);
  parser.Text("--max-shard-size", "BYTES",
              "of a file of a model directory, as 200MB (default 5GB); what is more goes into "
              "several",
              &flags.shard_size);
  parser.Switch("--adapter-only",
                "with --like, of a run with --lora-rank: write the adapter alone, as peft reads it "
                "(default: what it adds is added to the weights)",
                &flags.adapter_only);
  if (const auto code = ParseStrictly(&parser, arguments, kCommand)) return *code;
  const Diagnostics usage = CheckUsage(flags);
  if (!usage.empty()) return Refuse(usage, {}, kCommand);
  if (flags.like) return ToModelDir(flags);
  return IsBeginning(flags) ? ToCheckpoint(flags) : ToWeights(flags);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
