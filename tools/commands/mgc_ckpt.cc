// mgc-ckpt: looks at checkpoints, compares, checks and removes them.

#include <array>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "graph/base/file.h"
#include "graph/base/json_writer.h"
#include "graph/base/status.h"
#include "graph/base/suggest.h"
#include "graph/base/units.h"
#include "graph/types/tensor_type.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/checkpoint_dir.h"
#include "tools/cli/command.h"
#include "tools/cli/output.h"

namespace mgc {
namespace {

int64_t NumElementsOf(const StoredFile& file) {
  int64_t elements = 0;
  for (const StoredTensor& tensor : file.tensors) elements += NumElements(tensor.shape);
  return elements;
}

// Of all tensors.
int64_t BytesOf(const Manifest& manifest) {
  int64_t bytes = 0;
  for (const StoredFile& file : manifest.files) {
    bytes += NumElementsOf(file) * static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

std::string LineOf(const Manifest& manifest) {
  return absl::StrFormat("step %d | sample %d | %s\n", manifest.state.step, manifest.state.samples,
                         BytesText(BytesOf(manifest)));
}

void AddTexts(absl::string_view what, const NamedTexts& texts, std::string* out) {
  for (const auto& [name, value] : texts) {
    absl::StrAppend(out, what, " ", EscapeBytes(name), ": ", EscapeBytes(value), "\n");
  }
}

std::string WholeText(const Manifest& manifest) {
  std::string text = LineOf(manifest);
  absl::StrAppend(&text, "written by ", EscapeBytes(manifest.state.version), "\n");
  AddTexts("option", manifest.state.options, &text);
  AddTexts("data", manifest.state.data, &text);
  for (const auto& [name, value] : manifest.state.carried) {
    absl::StrAppend(&text, "carried ", EscapeBytes(name), ": ", value, "\n");
  }
  for (const StoredFile& file : manifest.files) {
    absl::StrAppendFormat(&text, "%s: %d tensors, %d elements\n", EscapeBytes(file.name),
                          file.tensors.size(), NumElementsOf(file));
  }
  return text;
}

// Every checkpoint of a run, the one that it would go on from first; of one that does not read,
// why.
std::string ListText(const std::string& path, const std::vector<int64_t>& steps) {
  std::string text;
  for (int64_t step : steps) {
    const auto manifest = ReadManifest(absl::StrCat(path, "/", StepName(step)));
    absl::StrAppend(&text, manifest.ok() ? LineOf(*manifest)
                                         : absl::StrFormat("step %d | %s\n", step,
                                                           manifest.status().message()));
  }
  return text;
}

int Show(const Words& arguments) {
  Flags flags({"mgc-ckpt show",
               "DIR|CHECKPOINT",
               "a run's checkpoints, or what one of them stands for",
               {"mgc-ckpt show checkpoints", "mgc-ckpt show checkpoints/step-00000100",
                "mgc-ckpt show checkpoints/step-00000100 --json"},
               ""});
  Words paths;
  bool json = false;
  flags.Arguments(1, 1, &paths);
  flags.Switch("--json", "the manifest, as it stands in the folder", &json);
  if (const auto code = ParseStrictly(&flags, arguments, "mgc-ckpt show")) return *code;
  const absl::StatusOr<std::vector<int64_t>> steps = ListSteps(paths[0]);
  if (!steps.ok()) return Fail(steps.status(), kExitBadModel);
  if (!json && !steps->empty()) return Finish(ListText(paths[0], *steps));
  const absl::StatusOr<std::string> folder = FolderToLoad(paths[0]);
  if (!folder.ok()) return Fail(folder.status(), kExitBadModel);
  const absl::StatusOr<Manifest> manifest = ReadManifest(*folder);
  if (!manifest.ok()) return Fail(manifest.status(), kExitBadModel);
  return Finish(json ? ManifestText(*manifest) : WholeText(*manifest));
}

int Verify(const Words& arguments) {
  Flags flags({"mgc-ckpt verify",
               "DIR|CHECKPOINT...",
               "read all of a checkpoint and compare it with its hashes; of a run all checkpoints",
               {"mgc-ckpt verify checkpoints", "mgc-ckpt verify checkpoints/step-00000100"},
               ""});
  Words paths;
  flags.Arguments(1, 1000, &paths);
  if (const auto code = ParseStrictly(&flags, arguments, "mgc-ckpt verify")) return *code;
  int code = kExitOk;
  std::string text;
  for (const std::string& path : paths) {
    const absl::StatusOr<std::vector<int64_t>> steps = ListSteps(path);
    if (!steps.ok()) return Fail(steps.status(), kExitBadModel);
    Words folders;
    for (int64_t step : *steps) folders.push_back(absl::StrCat(path, "/", StepName(step)));
    if (folders.empty()) folders.push_back(path);
    for (const std::string& folder : folders) {
      const absl::StatusOr<int64_t> bytes = VerifyCheckpoint(folder);
      if (bytes.ok()) {
        absl::StrAppend(&text, EscapeBytes(folder), ": whole, ", BytesText(*bytes), "\n");
      } else {
        code = Fail(bytes.status(), kExitBadModel);
      }
    }
  }
  const int printed = Finish(text);
  return code == kExitOk ? printed : code;
}

using TensorsByName = std::map<std::string, StoredTensor>;

TensorsByName TensorsOf(const Manifest& manifest) {
  TensorsByName tensors;
  for (const StoredFile& file : manifest.files) {
    for (const StoredTensor& tensor : file.tensors) {
      tensors[absl::StrCat(file.name, ": ", tensor.name)] = tensor;
    }
  }
  return tensors;
}

void AddDifferences(const NamedTexts& a, const NamedTexts& b, absl::string_view what,
                    std::string* out) {
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const auto& [name, value] : a) values[name].first = value;
  for (const auto& [name, value] : b) values[name].second = value;
  for (const auto& [name, both] : values) {
    if (both.first == both.second) continue;
    absl::StrAppend(out, what, " ", EscapeBytes(name), ": ", EscapeBytes(both.first), " | ",
                    EscapeBytes(both.second), "\n");
  }
}

std::string DifferencesText(const Manifest& a, const Manifest& b) {
  std::string text;
  const auto numbers = [](const Manifest& m) {
    NamedTexts texts = {{"step", absl::StrCat(m.state.step)},
                        {"samples", absl::StrCat(m.state.samples)}};
    for (const auto& [name, value] : m.state.carried) texts.emplace_back(name, absl::StrCat(value));
    return texts;
  };
  AddDifferences(numbers(a), numbers(b), "state", &text);
  AddDifferences(a.state.options, b.state.options, "option", &text);
  AddDifferences(a.state.data, b.state.data, "data", &text);
  const TensorsByName in_a = TensorsOf(a);
  const TensorsByName in_b = TensorsOf(b);
  const auto add = [&](const std::string& name, const char* how) {
    absl::StrAppend(&text, EscapeBytes(name), ": ", how, "\n");
  };
  for (const auto& [name, tensor] : in_a) {
    const auto other = in_b.find(name);
    if (other == in_b.end()) {
      add(name, "in the first one only");
    } else if (tensor.shape != other->second.shape) {
      add(name, "other shapes");
    } else if (tensor.hash != other->second.hash) {
      add(name, "other values");
    }
  }
  for (const auto& [name, tensor] : in_b) {
    if (in_a.count(name) == 0) add(name, "in the second one only");
  }
  return text;
}

// Exits as diff(1).
int Diff(const Words& arguments) {
  constexpr int kSame = 0, kDifferent = 1, kTrouble = 2;
  Flags flags({"mgc-ckpt diff",
               "CHECKPOINT CHECKPOINT",
               "what tells two checkpoints apart, by their hashes; exits as diff(1)",
               {"mgc-ckpt diff checkpoints/step-00000050 checkpoints/step-00000100"},
               "Whatever plan has written them: files depend on none."});
  Words paths;
  flags.Arguments(2, 2, &paths);
  if (const auto code = ParseStrictly(&flags, arguments, "mgc-ckpt diff")) {
    return *code == kExitOk ? kSame : kTrouble;
  }
  std::vector<Manifest> manifests;
  for (const std::string& path : paths) {
    const absl::StatusOr<std::string> folder = FolderToLoad(path);
    if (!folder.ok()) return Fail(folder.status(), kTrouble);
    absl::StatusOr<Manifest> manifest = ReadManifest(*folder);
    if (!manifest.ok()) return Fail(manifest.status(), kTrouble);
    manifests.push_back(*std::move(manifest));
  }
  const std::string text = DifferencesText(manifests[0], manifests[1]);
  if (Finish(text) != kExitOk) return kTrouble;
  return text.empty() ? kSame : kDifferent;
}

int Prune(const Words& arguments) {
  Flags flags({"mgc-ckpt prune",
               "DIR",
               "remove all but the last checkpoints of a run that does not run",
               {"mgc-ckpt prune checkpoints --keep 2"},
               "Those behind the one that the run would go on from stay too: it went back."});
  Words paths;
  absl::optional<int64_t> keep;
  flags.Arguments(1, 1, &paths);
  flags.Integer("--keep", "how many stay (default 1)", {1, int64_t{1} << 32}, "F3", &keep);
  if (const auto code = ParseStrictly(&flags, arguments, "mgc-ckpt prune")) return *code;
  const absl::StatusOr<std::vector<int64_t>> before = ListSteps(paths[0]);
  if (!before.ok()) return Fail(before.status(), kExitBadModel);
  if (before->empty()) {
    return Fail(
        absl::NotFoundError(absl::StrCat("there is no checkpoint in ", EscapeBytes(paths[0]))),
        kExitBadModel);
  }
  const auto dir = CheckpointDir::Open(paths[0]);
  if (!dir.ok()) return Fail(dir.status(), kExitFailed);
  const absl::Status pruned = (*dir)->Prune((*before)[0], keep.value_or(1));
  if (!pruned.ok()) return Fail(pruned, kExitFailed);
  const absl::StatusOr<std::vector<int64_t>> after = ListSteps(paths[0]);
  if (!after.ok()) return Fail(after.status(), kExitFailed);
  return Finish(absl::StrCat("removed ", before->size() - after->size(), " of ", before->size(),
                             " checkpoints\n"));
}

struct Subcommand {
  const char* name;
  const char* summary;
  int (*run)(const Words&);
};

constexpr std::array<Subcommand, 4> kSubcommands = {{
    {"show", "a run's checkpoints, or what one of them stands for", Show},
    {"verify", "compare files with their hashes", Verify},
    {"diff", "what tells two checkpoints apart", Diff},
    {"prune", "remove old ones", Prune},
}};

std::string Overview() {
  std::string text = "mgc-ckpt: look at checkpoints\n\nUsage: mgc-ckpt SUBCOMMAND ...\n\n";
  for (const Subcommand& subcommand : kSubcommands) {
    absl::StrAppend(&text, "  ", subcommand.name, "\n      ", subcommand.summary, "\n");
  }
  return absl::StrCat(text, "\nFlags of each: mgc-ckpt SUBCOMMAND --help\n");
}

int Main(const Words& arguments) {
  if (arguments.empty()) {
    std::cerr << Overview();
    return kExitUsage;
  }
  const std::string& name = arguments[0];
  std::vector<absl::string_view> names;
  for (const Subcommand& subcommand : kSubcommands) {
    if (name == subcommand.name) return subcommand.run({arguments.begin() + 1, arguments.end()});
    names.push_back(subcommand.name);
  }
  if (name == "-h" || name == "--help") return Finish(Overview());
  if (name == "--version") return Finish(VersionText());
  std::cerr << "error: unknown subcommand " << EscapeBytes(name) << DidYouMean(name, names)
            << " [F1]\nall subcommands: mgc-ckpt --help\n";
  return kExitUsage;
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
