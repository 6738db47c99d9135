#include "runtime/comm/team_file.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

using File = std::unique_ptr<SharedFile>;

absl::StatusOr<File> CreateFor(const Team& team, const std::string& path, int64_t bytes) {
  MGC_ASSIGN_OR_RETURN(File file, SharedFile::Create(path, bytes));
  if (team.size() == 1 || !file->temporary().empty()) return file;
  return absl::InvalidArgumentError(
      absl::StrCat("cannot write ", EscapeBytes(path), " from ", team.size(),
                   " processes: it is a device or a pipe, not a file"));
}

}  // namespace

absl::StatusOr<TeamFile> TeamFile::Begin(Team& team, const std::string& path, int64_t bytes) {
  absl::StatusOr<File> file = File();
  if (team.is_lead()) file = CreateFor(team, path, bytes);
  MGC_RETURN_IF_ERROR(team.Agree(file.status()));
  MGC_ASSIGN_OR_RETURN(const std::string temporary,
                       team.TakeFromLead(team.is_lead() ? (*file)->temporary() : ""));
  if (!team.is_lead()) file = SharedFile::Open(temporary, path);
  MGC_RETURN_IF_ERROR(team.Agree(file.status()));
  return TeamFile(*std::move(file));
}

absl::Status TeamFile::End(Team& team, const absl::Status& written) {
  MGC_RETURN_IF_ERROR(team.Agree(written));
  return team.Agree(team.is_lead() ? file_->Publish() : absl::OkStatus());
}

}  // namespace mgc
