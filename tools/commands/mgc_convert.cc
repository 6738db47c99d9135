// mgc-convert: the parameters of a checkpoint as a file of weights, and a checkpoint from such a
// file.

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/state/weights.h"
#include "tools/cli/command.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-convert";
constexpr absl::string_view kSuffix = ".safetensors";
constexpr absl::string_view kTypes[] = {"f32", "bf16", "f16"};

struct ConvertFlags {
  Words from;
  absl::optional<std::string> output, dtype;
};

CommandText About() {
  return {kCommand,
          "CHECKPOINT|DIR|FILE.safetensors",
          "write the parameters of a checkpoint as weights, or make a checkpoint of weights",
          {"mgc-convert checkpoints -o weights.safetensors --dtype bf16",
           "mgc-convert weights.safetensors -o start",
           "mgc-run model.plan --data text.txt --load start --save checkpoints"},
          "Of the folder of a run, the checkpoint that it would go on from. Names and shapes are "
          "those of docs/parameters.md, in both."};
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
  const absl::StatusOr<int64_t> elements = WriteWeights(*folder, *flags.output, TypeOf(flags));
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

int ToCheckpoint(const ConvertFlags& flags) {
  const absl::Status empty = CheckEmpty(*flags.output);
  if (!empty.ok()) return Fail(empty, kExitFailed);
  const auto dir = CheckpointDir::Open(*flags.output);
  if (!dir.ok()) return Fail(dir.status(), kExitFailed);
  const absl::StatusOr<int64_t> elements =
      ReadWeights(flags.from[0], **dir, std::string(absl::StripSuffix(VersionText(), "\n")));
  return elements.ok() ? Finish(Wrote(*elements, *flags.output))
                       : Fail(elements.status(), kExitBadModel);
}

int Main(const Words& arguments) {
  Flags parser(About());
  ConvertFlags flags;
  parser.Arguments(1, 1, &flags.from);
  parser.Text("-o,--output", "FILE.safetensors|DIR", "where weights, or the checkpoint, go",
              &flags.output);
  parser.Choice("--dtype", kTypes, "of the weights written (default f32, as trained)",
                &flags.dtype);
  if (const auto code = ParseStrictly(&parser, arguments, kCommand)) return *code;
  const bool from_file = absl::EndsWith(flags.from[0], kSuffix);
  const bool to_file = flags.output && absl::EndsWith(*flags.output, kSuffix);
  Diagnostics usage;
  if (!flags.output) {
    usage.Add({"F6", "-o is not given", from_file ? "-o DIR" : "-o weights.safetensors"});
  } else if (from_file == to_file) {
    usage.Add({"F6",
               absl::StrCat(EscapeBytes(flags.from[0]), " and ", EscapeBytes(*flags.output),
                            " are both ", from_file ? "files" : "folders"),
               from_file ? "-o DIR" : "-o weights.safetensors"});
  }
  if (from_file && flags.dtype) {
    usage.Add({"F6", "--dtype is given, and a checkpoint holds f32", "no --dtype"});
  }
  if (!usage.empty()) return Refuse(usage, {}, kCommand);
  return from_file ? ToCheckpoint(flags) : ToWeights(flags);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
