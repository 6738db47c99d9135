#include "runtime/state/checkpoint.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "runtime/state/carried.h"
#include "runtime/state/tensor_file.h"

namespace mgc {
namespace {

struct FileOfRole {
  const char* name;
  TensorRole role;
};
constexpr FileOfRole kFiles[] = {
    {"parameters.safetensors", TensorRole::kParam},
    {"first_moments.safetensors", TensorRole::kFirstMoment},
    {"second_moments.safetensors", TensorRole::kSecondMoment},
};

// Of which parameters of the plan there is such a tensor: optimizers keep other states.
absl::StatusOr<std::set<std::string>> NamesOf(const Plan& plan, TensorRole role) {
  MGC_ASSIGN_OR_RETURN(const std::vector<HeldTensor> tensors, HeldTensors(plan, role));
  std::set<std::string> names;
  for (const HeldTensor& tensor : tensors) names.insert(tensor.name);
  return names;
}

absl::Status StoreFiles(const Executor& executor, const std::string& folder, Manifest* manifest) {
  for (const FileOfRole& file : kFiles) {
    MGC_ASSIGN_OR_RETURN(const std::set<std::string> kept, NamesOf(executor.plan(), file.role));
    if (kept.empty()) continue;
    MGC_ASSIGN_OR_RETURN(std::vector<StoredTensor> tensors,
                         StoreTensors(executor, file.role, absl::StrCat(folder, "/", file.name)));
    manifest->files.push_back({file.name, std::move(tensors)});
  }
  MGC_ASSIGN_OR_RETURN(const CarriedNumbers carried, GetCarried(executor));
  manifest->state.carried.assign(carried.begin(), carried.end());
  return absl::OkStatus();
}

// The first process's manifest, in all.
absl::StatusOr<Manifest> ShareManifest(const std::string& folder, Team& team) {
  absl::StatusOr<Manifest> manifest = Manifest();
  if (team.is_lead()) manifest = ReadManifest(folder);
  MGC_RETURN_IF_ERROR(team.Agree(manifest.status()));
  if (team.size() == 1) return manifest;
  MGC_ASSIGN_OR_RETURN(const std::string text,
                       team.TakeFromLead(team.is_lead() ? ManifestText(*manifest) : ""));
  return ParseManifest(text, folder);
}

// Null where neither the checkpoint nor the plan has such tensors. States of other parameters are
// those of another optimizer.
absl::StatusOr<const StoredFile*> FindFile(const Manifest& manifest, const std::string& folder,
                                           const FileOfRole& file, const Plan& plan) {
  const auto found = std::find_if(manifest.files.begin(), manifest.files.end(),
                                  [&](const StoredFile& f) { return f.name == file.name; });
  const StoredFile* const stored = found == manifest.files.end() ? nullptr : &*found;
  const std::string place = absl::StrCat(EscapeBytes(folder), "/", kManifestName);
  if (file.role == TensorRole::kParam) {
    if (stored != nullptr) return stored;
    return absl::InvalidArgumentError(absl::StrCat(place, ": names no file ", file.name));
  }
  MGC_ASSIGN_OR_RETURN(const std::set<std::string> kept, NamesOf(plan, file.role));
  std::set<std::string> names;
  if (stored != nullptr) {
    for (const StoredTensor& tensor : stored->tensors) names.insert(tensor.name);
  }
  if (names == kept) return stored;
  return absl::FailedPreconditionError(absl::StrCat(
      place, ": has ", file.name, " of ", names.size(),
      " parameters, and the plan's optimizer keeps such states of ", kept.size(),
      names.size() == kept.size() ? " others" : "", ": the checkpoint is of another optimizer"));
}

}  // namespace

absl::StatusOr<std::string> SaveCheckpoint(const Executor& executor, const CheckpointDir* dir,
                                           TrainingState state) {
  Team& team = executor.team();
  absl::StatusOr<std::string> begun = std::string();
  if (team.is_lead()) begun = dir->Begin(state.step);
  MGC_RETURN_IF_ERROR(team.Agree(begun.status()));
  MGC_ASSIGN_OR_RETURN(const std::string folder, team.TakeFromLead(*begun));
  Manifest manifest;
  manifest.state = std::move(state);
  absl::Status status = StoreFiles(executor, folder, &manifest);
  if (status.ok()) status = team.Agree(team.is_lead() ? dir->Publish(folder, manifest) : status);
  if (!status.ok()) {
    if (team.is_lead()) dir->Abandon(folder);
    return Annotate(status, absl::StrCat("no checkpoint of step ", manifest.state.step));
  }
  return team.TakeFromLead(
      team.is_lead() ? absl::StrCat(dir->path(), "/", StepName(manifest.state.step)) : "");
}

absl::StatusOr<LoadedState> LoadCheckpoint(const std::string& folder, Executor& executor) {
  Team& team = executor.team();
  MGC_ASSIGN_OR_RETURN(const std::string named, team.TakeFromLead(folder));
  MGC_ASSIGN_OR_RETURN(Manifest manifest, ShareManifest(named, team));
  LoadedState loaded;
  for (const FileOfRole& file : kFiles) {
    MGC_ASSIGN_OR_RETURN(const StoredFile* stored,
                         FindFile(manifest, named, file, executor.plan()));
    if (stored == nullptr) continue;
    MGC_ASSIGN_OR_RETURN(
        const int64_t bytes,
        RestoreTensors(file.role, absl::StrCat(named, "/", file.name), stored->tensors, executor));
    loaded.bytes += bytes;
  }
  loaded.state = std::move(manifest.state);
  return loaded;
}

absl::StatusOr<int64_t> VerifyCheckpoint(const std::string& folder) {
  MGC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(folder));
  int64_t bytes = 0;
  for (const StoredFile& file : manifest.files) {
    MGC_ASSIGN_OR_RETURN(const int64_t read,
                         VerifyTensors(absl::StrCat(folder, "/", file.name), file.tensors));
    bytes += read;
  }
  return bytes;
}

}  // namespace mgc
