// Ranks on GPUs: which on which, and what cannot be.
#include "runtime/cuda/gpu_places.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/watch.h"

namespace mgc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int> Placed(const GpuPlaces& places) {
  const absl::StatusOr<std::vector<int>> placed = PlaceOnGpus(places);
  EXPECT_TRUE(placed.ok()) << placed.status();
  return placed.ok() ? *placed : std::vector<int>();
}

std::string Refused(const GpuPlaces& places) {
  const absl::Status status = PlaceOnGpus(places).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(GpuPlaces, OfOneProcessAreBlocks) {
  EXPECT_THAT(Placed({1, 0, 3}), ElementsAre(0, 0, 0));
  EXPECT_THAT(Placed({2, 0, 5}), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(Placed({8, 0, 4}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Placed({8, 3, 4}), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(GpusIn({0, 0, 1, 2}), ElementsAre(0, 1, 2));
}

TEST(GpuPlaces, OfSeveralProcessesAreTheRanksOwn) {
  EXPECT_THAT(Placed({8, 0, 2, 4, 2}), ElementsAre(2, 3));
  EXPECT_THAT(Placed({8, 4, 2, 2, 2}), ElementsAre(2, 3));
  // The launcher has given each process its GPUs.
  EXPECT_THAT(Placed({2, 0, 2, 4, 2}), ElementsAre(0, 1));
}

TEST(GpuPlaces, SayWhatIsLegal) {
  EXPECT_THAT(Refused({0, 0, 1}), HasSubstr("no GPU"));
  EXPECT_THAT(Refused({2, 3, 4}), HasSubstr("there are 2 here; nearest legal: 2"));
  EXPECT_THAT(Refused({8, 5, 4}), HasSubstr("of which there are 4; nearest legal: 4"));
  EXPECT_THAT(Refused({3, 0, 2, 2, 2}),
              HasSubstr("2 ranks here come behind 2 of other processes of this host, and 3 GPUs"));
  EXPECT_THAT(Refused({8, 2, 2, 2, 2}), HasSubstr("nearest legal: 2 ranks on this host"));
}

TEST(GpuPlaces, ReachEachOther) {
  cuda::emulator::SetDevices(3);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(LetReachEachOther({0, 1, 2}, true, 4), absl::OkStatus());
  }
  cuda::emulator::SetDevices(3, /*peer_access=*/false);
  EXPECT_EQ(LetReachEachOther({0, 1, 2}, false, 3), absl::OkStatus());
  EXPECT_EQ(LetReachEachOther({0}, true, 3), absl::OkStatus());
  EXPECT_THAT(std::string(LetReachEachOther({0, 1, 2}, true, 4).message()),
              HasSubstr("GPU 0 cannot reach that of GPU 1; nearest legal: 1 GPU, or 4"));
  cuda::emulator::SetDevices(8);
  EXPECT_EQ(cuda::emulator::TakeFault(), "");
}

}  // namespace
}  // namespace mgc
