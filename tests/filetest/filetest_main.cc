#include "tests/filetest/filetest_main.h"

#include <iostream>
#include <string>

#include "absl/strings/str_replace.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

class OneFile : public testing::Test {
 public:
  OneFile(std::string path, PassRunner passes)
      : path_(std::move(path)), passes_(std::move(passes)) {}

  void TestBody() override {
    const absl::StatusOr<std::string> text = ReadFile(path_);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(FileTest(*text, path_, passes_).Run(), "");
  }

 private:
  std::string path_;
  PassRunner passes_;
};

// Rewrites the expectations, and says what even those cannot make right.
bool UpdateFile(const std::string& path, const PassRunner& passes) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) {
    std::cerr << text.status().message() << "\n";
    return false;
  }
  const std::string updated = FileTest(*text, path, passes).Update();
  if (absl::Status status = WriteFileAtomically(path, updated); !status.ok()) {
    std::cerr << status.message() << "\n";
    return false;
  }
  const std::string problems = FileTest(updated, path, passes).Run();
  if (!problems.empty()) std::cerr << problems << "\n";
  return problems.empty();
}

}  // namespace

int FileTestMain(int argc, char** argv, const PassRunner& passes) {
  testing::InitGoogleTest(&argc, argv);
  const bool update = argc > 1 && std::string(argv[1]) == "--update";
  bool updated = true;
  for (int i = update ? 2 : 1; i < argc; ++i) {
    const std::string path = argv[i];
    if (update) {
      updated &= UpdateFile(path, passes);
      continue;
    }
    const std::string name = absl::StrReplaceAll(path, {{"/", "_"}, {".", "_"}, {"-", "_"}});
#ifndef __clang_analyzer__  // it takes what gtest keeps for a leak
    testing::RegisterTest("FileTest", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [path, passes]() -> OneFile* { return new OneFile(path, passes); });
#endif
  }
  if (update) return updated ? 0 : 1;
  if (argc < 2) {
    std::cerr << "no test files\n";
    return 1;
  }
  return RUN_ALL_TESTS();
}

}  // namespace mgc
