#include "runtime/weights/write_in_turn.h"

#include <memory>

#include "graph/base/status.h"

namespace mgc {

absl::Status WriteInTurn(
    const std::string& path, absl::Span<const SafetensorsSpec> specs,
    absl::FunctionRef<absl::Status(size_t tensor, int64_t offset, SharedFile& file)> write) {
  MGC_ASSIGN_OR_RETURN(const SafetensorsLayout layout, SafetensorsLayout::Create(specs));
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<SharedFile> file,
                       SharedFile::Create(path, layout.file_bytes()));
  MGC_RETURN_IF_ERROR(file->Write(0, layout.header()));
  for (size_t t : layout.order()) {
    MGC_RETURN_IF_ERROR(write(t, layout.OffsetOf(t), *file));
    file->BeginSync();
  }
  MGC_RETURN_IF_ERROR(file->Sync());
  return file->Publish();
}

}  // namespace mgc
