// A library of all-reduces between processes that are objects of one process: for tests.

#ifndef MGC_RUNTIME_COMM_TESTING_HEAP_LIBRARY_H_
#define MGC_RUNTIME_COMM_TESTING_HEAP_LIBRARY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "runtime/comm/all_reduce_library.h"

namespace mgc {

// What the processes have in common.
class HeapSums {
 public:
  // A process brings a piece of a group's, by number. Each with as many elements of as many bytes.
  void Bring(const LibraryGroupKey& key, uint64_t number, int self, DType dtype, bool max,
             int64_t count, const char* from);
  // Writes the sum, added in descending order of processes; false while not all have brought it.
  bool Take(const LibraryGroupKey& key, uint64_t number, char* to);

 private:
  struct Piece {
    DType dtype = DType::kF32;
    bool max = false;
    int64_t count = 0;
    std::map<int, std::vector<char>> terms;  // by process
  };
  static std::tuple<int, int, uint64_t> NameOf(const LibraryGroupKey& key, uint64_t number) {
    return {key.a, key.b, number};
  }

  std::mutex mutex_;
  std::map<std::tuple<int, int, uint64_t>, Piece> pieces_;
};

class HeapLibrary : public AllReduceLibrary {
 public:
  HeapLibrary(HeapSums& sums, int self) : sums_(sums), self_(self) {}
  absl::Status Open(absl::Span<const LibraryGroupKey> groups) override;
  LibraryGroup& group(size_t place) override;
  absl::Status Poll() override { return absl::OkStatus(); }

 private:
  class Group;

  HeapSums& sums_;
  const int self_;
  std::vector<std::shared_ptr<Group>> groups_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_TESTING_HEAP_LIBRARY_H_
