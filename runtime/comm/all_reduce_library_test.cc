#include "runtime/comm/all_reduce_library.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

Mesh MeshOf(int64_t tp, int64_t cp, int64_t dp, int64_t pp) {
  const std::vector<MeshAxis> axes = {{"tp", tp}, {"cp", cp}, {"dp", dp}, {"pp", pp}};
  return *Mesh::Create(axes);
}

// How each process has a part in a group, processes without one left out.
std::vector<int64_t> PatternOf(const ProcessMap& map, const std::vector<int64_t>& group) {
  std::vector<int64_t> counts(static_cast<size_t>(map.processes()));
  for (int64_t rank : group) ++counts[static_cast<size_t>(map.ProcessOf(rank))];
  counts.erase(std::remove(counts.begin(), counts.end(), 0), counts.end());
  return counts;
}

// What it is for, looked at in every group: all over the same axes are split alike.
bool AreSplitAlike(const ProcessMap& map, const Mesh& mesh) {
  for (uint32_t set = 1; set < 1u << mesh.num_axes(); ++set) {
    AxisSet axes;
    for (AxisId axis = 0; axis < mesh.num_axes(); ++axis) {
      if ((set >> axis & 1) != 0) axes.Add(axis);
    }
    const auto groups = mesh.Groups(axes);
    for (const auto& group : groups) {
      if (PatternOf(map, group) != PatternOf(map, groups[0])) return false;
    }
  }
  return true;
}

TEST(CheckLibraryServesTest, IsOkWhereGroupsAreSplitAlike) {
  int served = 0;
  for (const Mesh& mesh : {MeshOf(2, 1, 4, 1), MeshOf(2, 3, 2, 2), MeshOf(4, 1, 3, 2),
                           MeshOf(1, 1, 6, 1), MeshOf(1, 2, 1, 6)}) {
    const int64_t ranks = mesh.world_size();
    for (int64_t processes = 1; processes <= ranks; ++processes) {
      for (int64_t each : {int64_t{0}, (ranks + processes - 1) / processes}) {
        const auto map = ProcessMap::Create(ranks, processes, each);
        if (!map.ok()) continue;
        SCOPED_TRACE(absl::StrCat(mesh.ToString(), ", ", processes, " processes, ", each, " each"));
        const absl::Status status = CheckLibraryServes(*map, mesh);
        served += status.ok() ? 1 : 0;
        EXPECT_EQ(status.ok(), AreSplitAlike(*map, mesh)) << status;
      }
    }
  }
  EXPECT_GT(served, 40);
}

TEST(CheckLibraryServesTest, NamesTheNumbersOfProcessesThatAreLegal) {
  const absl::Status three = CheckLibraryServes(*ProcessMap::Create(8, 3), MeshOf(2, 1, 4, 1));
  EXPECT_EQ(three.message(),
            "--allreduce mpi: 3 processes, the first with 3 ranks, cut groups of mesh @m [tp=2, "
            "dp=4] in different ways, and copies of a parameter would drift apart [N1]; nearest "
            "legal: 2 or 4 processes with as many ranks each, or --allreduce ordered");
  const absl::Status four = CheckLibraryServes(*ProcessMap::Create(12, 4), MeshOf(2, 1, 6, 1));
  EXPECT_TRUE(absl::StrContains(four.message(), "nearest legal: 3 or 6 processes")) << four;
}

}  // namespace
}  // namespace mgc
