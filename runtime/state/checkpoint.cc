#include "runtime/state/checkpoint.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/results.h"
#include "runtime/state/carried.h"
#include "runtime/state/tensor_file.h"

namespace mgc {
namespace {

struct FileOfRole {
  const char* name;
  TensorRole role;
};
constexpr FileOfRole kFiles[] = {
    {kParametersFile, TensorRole::kParam},
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

absl::Status ZeroTensors(TensorRole role, Executor& executor) {
  MGC_ASSIGN_OR_RETURN(const std::vector<HeldTensor> held,
                       HeldTensors(executor.plan(), role, Holders::kAll));
  const auto zero = [](int64_t, absl::Span<float> values, bool) {
    std::fill(values.begin(), values.end(), 0.0f);
    return absl::OkStatus();
  };
  for (const HeldTensor& tensor : held) {
    MGC_RETURN_IF_ERROR(FillRunsHere(tensor, executor, zero));
  }
  return absl::OkStatus();
}

// Null where neither the checkpoint nor the plan has such tensors. States of other parameters are
// those of another optimizer; a plan that trains nothing leaves all states where they are.
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
  if (IsAsked(plan.model)) return nullptr;
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

absl::StatusOr<int64_t> WrittenHere(const Executor& executor) {
  int64_t values = 0;
  for (const FileOfRole& file : kFiles) {
    MGC_ASSIGN_OR_RETURN(const std::vector<HeldTensor> tensors,
                         HeldTensors(executor.plan(), file.role));
    for (const HeldTensor& tensor : tensors) values += CountValuesHere(executor, tensor);
  }
  return values;
}

absl::StatusOr<std::unique_ptr<PendingCheckpoint>> PendingCheckpoint::Begin(
    const Executor& executor, const CheckpointDir* dir, TrainingState state) {
  std::unique_ptr<PendingCheckpoint> pending(new PendingCheckpoint(executor, dir));
  const int64_t step = state.step;
  MGC_RETURN_IF_ERROR(
      Annotate(pending->Open(std::move(state)), absl::StrCat("no checkpoint of step ", step)));
  return pending;
}

absl::Status PendingCheckpoint::Open(TrainingState state) {
  Team& team = executor_.team();
  manifest_.state = std::move(state);
  absl::StatusOr<std::string> begun = std::string();
  if (team.is_lead()) begun = dir_->Begin(manifest_.state.step);
  if (begun.ok()) folder_ = *begun;
  MGC_RETURN_IF_ERROR(team.Agree(begun.status()));
  MGC_ASSIGN_OR_RETURN(folder_, team.TakeFromLead(*begun));
  for (const FileOfRole& file : kFiles) {
    MGC_ASSIGN_OR_RETURN(const std::set<std::string> kept, NamesOf(executor_.plan(), file.role));
    if (kept.empty()) continue;
    MGC_ASSIGN_OR_RETURN(
        std::unique_ptr<TensorStore> store,
        TensorStore::Begin(executor_, file.role, absl::StrCat(folder_, "/", file.name)));
    manifest_.files.push_back({file.name, {}});
    stores_.push_back(std::move(store));
  }
  MGC_ASSIGN_OR_RETURN(const CarriedNumbers carried, GetCarried(executor_));
  manifest_.state.carried.assign(carried.begin(), carried.end());
  return absl::OkStatus();
}

PendingCheckpoint::~PendingCheckpoint() {
  stores_.clear();
  if (executor_.team().is_lead() && !published_ && !folder_.empty()) dir_->Abandon(folder_);
}

void PendingCheckpoint::Copy(Parallel& parallel, absl::Span<float> room) {
  for (const std::unique_ptr<TensorStore>& store : stores_) {
    room.remove_prefix(static_cast<size_t>(store->Copy(parallel, room)));
  }
}

void PendingCheckpoint::Write(absl::FunctionRef<void()> comes_on) {
  written_ = absl::OkStatus();
  for (const std::unique_ptr<TensorStore>& store : stores_) {
    if (written_.ok()) written_ = store->Write(comes_on);
  }
}

absl::Status PendingCheckpoint::Finish() {
  Team& team = executor_.team();
  for (size_t i = 0; i < stores_.size(); ++i) {
    MGC_ASSIGN_OR_RETURN(manifest_.files[i].tensors, stores_[i]->End(written_));
  }
  MGC_RETURN_IF_ERROR(
      team.Agree(team.is_lead() ? dir_->Publish(folder_, manifest_) : absl::OkStatus()));
  published_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::string> PendingCheckpoint::End() {
  MGC_RETURN_IF_ERROR(Annotate(Finish(), absl::StrCat("no checkpoint of step ", step())));
  Team& team = executor_.team();
  return team.TakeFromLead(team.is_lead() ? absl::StrCat(dir_->path(), "/", StepName(step())) : "");
}

absl::StatusOr<LoadedState> LoadCheckpoint(const std::string& folder, Executor& executor) {
  Team& team = executor.team();
  MGC_ASSIGN_OR_RETURN(const std::string named, team.TakeFromLead(folder));
  MGC_ASSIGN_OR_RETURN(Manifest manifest, ShareManifest(named, team));
  LoadedState loaded;
  for (const FileOfRole& file : kFiles) {
    if (manifest.IsOfWeights() && file.role != TensorRole::kParam) {
      MGC_RETURN_IF_ERROR(ZeroTensors(file.role, executor));
      continue;
    }
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
