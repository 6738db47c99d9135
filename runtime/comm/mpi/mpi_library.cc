#include "runtime/comm/mpi/mpi_library.h"

#include "absl/strings/str_cat.h"

namespace mgc {

absl::Status ToStatus(int code, absl::string_view what) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return absl::UnavailableError(absl::StrCat(what, ": MPI error ", code, length > 0 ? ": " : "",
                                             absl::string_view(text, length)));
}

}  // namespace mgc
