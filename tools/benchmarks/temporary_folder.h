// A place for the files of a measurement.

#ifndef MGC_TOOLS_BENCHMARKS_TEMPORARY_FOLDER_H_
#define MGC_TOOLS_BENCHMARKS_TEMPORARY_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace mgc {

// A new folder in the system's one for temporary files, removed with all in it at the end. Where it
// could not be made, what is written there fails.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_((std::filesystem::temp_directory_path() / "mgc-bench-XXXXXX").string()) {
    made_ = mkdtemp(path_.data()) != nullptr;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (made_) std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool made_ = false;
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_TEMPORARY_FOLDER_H_
