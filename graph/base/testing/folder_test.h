// Tests with a folder of their own, which is empty when each begins and gone behind it.

#ifndef MGC_GRAPH_BASE_TESTING_FOLDER_TEST_H_
#define MGC_GRAPH_BASE_TESTING_FOLDER_TEST_H_

#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace mgc {

class FolderTest : public ::testing::Test {
 protected:
  FolderTest() { std::filesystem::create_directory(folder_); }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }

  const std::string& folder() const { return folder_; }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  int CountFiles() const {
    auto files = std::filesystem::directory_iterator(folder_);
    return static_cast<int>(std::distance(begin(files), end(files)));
  }

 private:
  static std::string NewName() {
    std::string name = ::testing::TempDir() + "/folder_test." + std::to_string(getpid());
    std::filesystem::remove_all(name);
    return name;
  }

  const std::string folder_ = NewName();
};

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_TESTING_FOLDER_TEST_H_
