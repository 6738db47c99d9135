#include "tools/launch/launch_env.h"

#include <map>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

Environment Of(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> absl::optional<std::string> {
    const auto it = variables.find(name);
    if (it == variables.end()) return absl::nullopt;
    return it->second;
  };
}

TEST(FindLauncherTest, NobodyAndABatchScript) {
  EXPECT_FALSE(FindLauncher(Of({}))->has_value());
  // sbatch without srun: a number, but no step.
  EXPECT_FALSE(FindLauncher(Of({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}}))->has_value());
  EXPECT_FALSE(FindLauncher(Of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}))->has_value());
}

TEST(FindLauncherTest, MpirunInsideOfSlurmIsMpirun) {
  const auto by = FindLauncher(Of({{"SLURM_PROCID", "0"},
                                   {"SLURM_STEP_ID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "2"},
                                   {"OMPI_COMM_WORLD_RANK", "3"},
                                   {"OMPI_COMM_WORLD_SIZE", "4"}}));
  ASSERT_TRUE(by.ok() && by->has_value());
  EXPECT_EQ((*by)->launcher, "Open MPI");
  EXPECT_EQ((*by)->rank, 3);
  EXPECT_EQ((*by)->size, 4);
}

TEST(FindLauncherTest, AStepOfSlurm) {
  const auto by = FindLauncher(Of({{"SLURM_PROCID", "1"},
                                   {"SLURM_STEP_ID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "8"},
                                   {"PMIX_RANK", "1"}}));
  ASSERT_TRUE(by.ok() && by->has_value());
  EXPECT_EQ((*by)->launcher, "Slurm");
  EXPECT_EQ((*by)->size, 8);
}

// As srun without --mpi=pmix sets them, and with --mpi=pmi2.
TEST(FindLauncherTest, AStepOfSlurmWithoutPmix) {
  std::map<std::string, std::string> variables = {
      {"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}};
  for (const bool has_pmi2 : {false, true}) {
    if (has_pmi2) variables.insert({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
    const absl::Status status = FindLauncher(Of(variables)).status();
    EXPECT_TRUE(absl::StrContains(status.message(), "Slurm has started 2 processes")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "srun --mpi=pmix")) << status;
  }
  variables["SLURM_STEP_NUM_TASKS"] = variables["PMI_SIZE"] = "1";
  EXPECT_TRUE(FindLauncher(Of(variables)).ok());
}

TEST(FindLauncherTest, RefusesWhatItCannotBelieve) {
  const auto half = FindLauncher(Of({{"OMPI_COMM_WORLD_RANK", "1"}}));
  EXPECT_TRUE(absl::StrContains(half.status().message(), "OMPI_COMM_WORLD_SIZE is missing"));
  const auto odd = FindLauncher(Of({{"PMI_RANK", "1"}, {"PMI_SIZE", "many"}}));
  EXPECT_TRUE(absl::StrContains(odd.status().message(), "PMI_SIZE is `many`"));
  const auto torch = FindLauncher(Of({{"TORCHELASTIC_RUN_ID", "x"}, {"WORLD_SIZE", "2"}}));
  EXPECT_TRUE(absl::StrContains(torch.status().message(), "by mpirun or srun"));
}

}  // namespace
}  // namespace mgc
