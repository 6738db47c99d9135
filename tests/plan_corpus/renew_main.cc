// renew FOLDER: writes the files of pins into a folder.

#include <cstdio>
#include <string>

#include "graph/base/file.h"
#include "tests/plan_corpus/pinned_plans.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: renew FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  const mgc::PinFiles files = mgc::MakePinFiles();
  for (const auto& [name, content] : {std::make_pair("summaries.txt", files.summaries),
                                      std::make_pair("losses.txt", files.losses),
                                      std::make_pair("text_hashes.txt", files.text_hashes)}) {
    const absl::Status status = mgc::WriteFileAtomically(folder + "/" + name, content);
    if (!status.ok()) {
      std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
      return 1;
    }
  }
  return 0;
}
