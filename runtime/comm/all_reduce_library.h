// All-reduces between processes that a library does and mgc does not: what is asked of the library.
//
// A group's processes bring pieces of the same sizes in the same order. A piece comes back as the
// sum, or the largest, of what all of them have brought: the same bits in all of them, added in an
// order that is the library's own. Nothing here blocks but Open: who finds no room or no result
// comes again.

#ifndef MGC_RUNTIME_COMM_ALL_REDUCE_LIBRARY_H_
#define MGC_RUNTIME_COMM_ALL_REDUCE_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/types/mesh.h"
#include "graph/types/tensor_type.h"
#include "runtime/comm/process_map.h"

namespace mgc {

inline constexpr int64_t kLibraryPieceBytes = int64_t{512} << 10;
inline constexpr int kLibraryPieces = 4;  // of a group that are under way at a time

// A group's processes, ascending, and its name, the same for all of them.
struct LibraryGroupKey {
  int a = 0;  // the set of axes
  int b = 0;  // its first rank
  std::vector<int> processes;
};

// A process's end of a group. One thread at a time uses it.
class LibraryGroup {
 public:
  virtual ~LibraryGroup() = default;
  // Where the next piece, of up to kLibraryPieceBytes, is to be written; null while there is no
  // room. The same place until Start.
  virtual char* Room() = 0;
  // Brings that piece: `count` elements as sums of tiles of `dtype` are made of
  // (runtime/comm/arithmetic.h). Another process may not have come to it yet.
  virtual void Start(DType dtype, bool max, int64_t count) = 0;
  // What the oldest piece has become; null while it has not. Valid until Release.
  virtual const char* Result() = 0;
  virtual void Release() = 0;
};

class AllReduceLibrary {
 public:
  virtual ~AllReduceLibrary() = default;
  // Makes the groups that this process is in, sorted by a and b. All processes call it, once, and
  // it waits for the members of each.
  virtual absl::Status Open(absl::Span<const LibraryGroupKey> groups) = 0;
  // By place in what Open was given.
  virtual LibraryGroup& group(size_t place) = 0;
  // The first error. Any thread.
  virtual absl::Status Poll() = 0;
};

// OK where all groups over the same axes are split among processes in the same way, so that a
// library, which sees no ranks, adds the same terms in the same order in each: else copies of a
// parameter that several groups sum would drift apart. With several axes that is where the ranks of
// each process are a box of the mesh. Else InvalidArgument [N1], with the nearest numbers of
// processes for which they are.
absl::Status CheckLibraryServes(const ProcessMap& map, const Mesh& mesh);

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_ALL_REDUCE_LIBRARY_H_
