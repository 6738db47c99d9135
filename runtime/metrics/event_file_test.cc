#include "runtime/metrics/event_file.h"

#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

// Records that TensorBoard's own RecordWriter made of its own messages.
TEST(EventFile, RecordsAreThoseOfTensorBoard) {
  EXPECT_EQ(absl::BytesToHexString(VersionEvent(1.5)),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  EXPECT_EQ(absl::BytesToHexString(RestartEvent(1.5, 301)),
            "100000000000000095fbfe1809000000000000f83f10ad023a020801d17949d4");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(absl::BytesToHexString(ScalarsEvent(
                1700000000.25, 300,
                {{"train/loss", 2.5}, {"perf/tflops", nan}, {"perf/tokens_per_second", 1e6}})),
            "54000000000000005f5145870900001040fc54d94110ac022a460a110a0a747261696e2f6c6f737315"
            "000020400a120a0b706572662f74666c6f7073150000c07f0a1d0a16706572662f746f6b656e735f70"
            "65725f7365636f6e641500247449f0f97ec8");
}

TEST(EventFile, TagsNameWhatARecordHas) {
  StepRecord record;
  record.loss = 4;
  record.other_losses = {{"router", 0.5}};
  record.peak_bytes = int64_t{3} << 29;
  record.flops_per_second = 2e12;
  const TaggedScalars scalars = ScalarsOf(record);
  EXPECT_THAT(scalars,
              ::testing::IsSupersetOf({std::make_pair(std::string("train/loss"), 4.0),
                                       std::make_pair(std::string("train/loss_router"), 0.5),
                                       std::make_pair(std::string("perf/tflops"), 2.0),
                                       std::make_pair(std::string("memory/peak_gib"), 1.5)}));
  for (const auto& [tag, value] : scalars) EXPECT_NE(tag, "train/loss_scale");
  EXPECT_EQ(ScalarsOf(EvalRecord{10, 4.25, 8, 256}), (TaggedScalars{{"valid/loss", 4.25}}));
}

TEST(EventFile, EveryRunHasAFileOfItsOwn) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/events.", getpid(), "/deep");
  for (const int64_t step : {0, 7}) {
    EventFile file = EventFile::Create(folder, step).value();
    EXPECT_TRUE(file.Add(step + 1, {{"a", 1}}).ok());
  }
  std::vector<uintmax_t> sizes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_THAT(entry.path().filename().string(), HasSubstr("events.out.tfevents."));
    sizes.push_back(entry.file_size());
  }
  const auto bytes = [](const std::string& text) { return uintmax_t{text.size()}; };
  const uintmax_t fresh = bytes(VersionEvent(1)) + bytes(ScalarsEvent(1, 1, {{"a", 1}}));
  EXPECT_THAT(sizes, testing::UnorderedElementsAre(fresh, fresh + bytes(RestartEvent(1, 8))));
  std::filesystem::remove_all(std::filesystem::path(folder).parent_path());
}

TEST(EventFile, ErrorsNameThePath) {
  EXPECT_THAT(EventFile::Create("/dev/null/x\n", 0).status().message(),
              HasSubstr("cannot write /dev/null/x\\x0A"));
}

}  // namespace
}  // namespace mgc
