#include "runtime/data/tokens/token_paths.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "runtime/data/tokens/token_format.h"

namespace mgc {
namespace {

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

std::vector<std::string> FilesBehind(const std::string& path) {
  const std::string prefix = PrefixOf(path);
  const bool is_either =
      absl::EndsWith(path, ".idx") || (absl::EndsWith(path, ".bin") && Exists(prefix + ".idx"));
  const bool is_begin = !Exists(path) && (Exists(path + ".bin") || Exists(path + ".idx"));
  if (is_either) return {prefix + ".bin", prefix + ".idx"};
  if (is_begin) return {path + ".bin", path + ".idx"};
  return {path};
}

}  // namespace mgc
