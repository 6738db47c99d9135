#include "graph/text/machine_text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

TEST(MachineTextTest, PresetsReadBack) {
  for (const Machine& machine : MachinePresets()) {
    const std::string text = PrintMachine(machine);
    const absl::StatusOr<Machine> read = ParseMachine(text, "m");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, machine);
    EXPECT_EQ(PrintMachine(*read), text);
  }
}

TEST(MachineTextTest, PrintsOneFactALine) {
  EXPECT_EQ(PrintMachine(*FindMachinePreset("a100x8")),
            "machine @a100x8 {\n"
            "  memory 85899345920 bandwidth 2.039e+12 efficiency 0.85\n"
            "  overhead 4e-06\n"
            "  gpu\n"
            "  compute bf16 3.12e+14 efficiency 0.7 at 2.1e+09 efficiency 0.35 at 1.7e+10 "
            "efficiency 0.7\n"
            "  compute f16 3.12e+14 efficiency 0.7 at 2.1e+09 efficiency 0.35 at 1.7e+10 "
            "efficiency 0.7\n"
            "  compute tf32 1.56e+14 efficiency 0.69\n"
            "  compute f32 1.95e+13 efficiency 0.9\n"
            "  compute f64 1.95e+13 efficiency 0.9\n"
            "  tier nvlink ranks 8 bandwidth 3e+11 efficiency 0.78 latency 1.18e-05 hop 3.4e-06\n"
            "  tier infiniband ranks any bandwidth 2.5e+10 efficiency 0.96 latency 1.8e-05 hop "
            "9.6e-06\n"
            "}\n");
}

Machine Measured() {
  Machine machine = *FindMachinePreset("cpu-threads");
  machine.name = "calibrated";
  machine.cores = 2;
  machine.compute[0].points = {{1e6, 0.25}, {1e9, 0.875}};
  machine.ops = {{"gelu", "bf16", 4.5}, {"gelu", "f32", 1.25}};
  machine.tiers[0].points = {{4096, 0.125}};
  machine.tiers[0].hop = 5e-7;
  return machine;
}

TEST(MachineTextTest, AMeasuredMachineReadsBack) {
  const std::string text = PrintMachine(Measured());
  EXPECT_EQ(text,
            "machine @calibrated {\n"
            "  memory 8589934592 bandwidth 4.2e+10 efficiency 0.8\n"
            "  overhead 1e-06\n"
            "  cores 2\n"
            "  compute f32 2.1e+11 efficiency 0.9 at 1e+06 efficiency 0.25 at 1e+09 efficiency "
            "0.875\n"
            "  compute bf16 4.3e+11 efficiency 0.9\n"
            "  compute f64 1.05e+11 efficiency 0.9\n"
            "  op gelu bf16 times 4.5\n"
            "  op gelu f32 times 1.25\n"
            "  tier memory ranks any bandwidth 2e+10 efficiency 0.8 at 4096.0 efficiency 0.125 "
            "latency 1e-06 hop 5e-07\n"
            "}\n");
  const absl::StatusOr<Machine> read = ParseMachine(text, "m");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Measured());
}

TEST(MachineTextTest, OpsAreThoseThatThereAre) {
  std::string text = PrintMachine(Measured());
  text.replace(text.find("gelu bf16"), 4, "gelo");
  const absl::Status status = ParseMachine(text, "f").status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("f:8:11: no op is called `gelo` (did you mean gelu?) [text_c2]"));
}

TEST(MachineTextTest, ErrorsHavePlaces) {
  const std::string text =
      "machine @m {\n"
      "  memory 0 bandwidth 1e9\n"
      "  speed 3\n"
      "  tier x ranks some\n"
      "}\n";
  const absl::Status status = ParseMachine(text, "f.mgc").status();
  EXPECT_EQ(status.message(),
            "f.mgc:2:10: the memory in bytes must be between 1 and 9223372036854775807, not 0 "
            "[text_c2]\n"
            "f.mgc:3:3: expected `memory`, `overhead`, `cores`, `gpu`, `compute`, `op`, `tier` or "
            "`}`, found "
            "`speed` [text_c2]\n"
            "f.mgc:4:16: expected `any` or the ranks in a domain, found `some` [text_c2]");
}

TEST(MachineTextTest, APointOfATierIsComplete) {
  const std::string text =
      "machine @m {\n"
      "  memory 1 bandwidth 1e9\n"
      "  compute f32 1e9\n"
      "  tier x ranks any bandwidth 1e9 at small efficiency 0.5 latency 0\n"
      "  tier y ranks any bandwidth 1e9 at 1 latency 0\n"
      "  tier z ranks any bandwidth 1e9 latency 0 hop far\n"
      "}\n";
  const absl::Status status = ParseMachine(text, "f").status();
  EXPECT_EQ(status.message(),
            "f:4:37: expected the bytes of a message, found `small` [text_c2]\n"
            "f:5:39: expected `efficiency`, found `latency` [text_c2]\n"
            "f:6:48: expected seconds, found `far` [text_c2]");
}

TEST(MachineTextTest, ViolationsAreReportedAtTheMachine) {
  const absl::Status status = ParseMachine("machine @m {\n}", "f").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("f:1:1: machine: the memory"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("[machine_c5]"));
  EXPECT_FALSE(ParseMachine(PrintMachine(MachinePresets()[0]) + "x", "f").ok());
}

}  // namespace
}  // namespace mgc
