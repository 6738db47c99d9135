// Which files a path means, as users give it.

#ifndef MGC_RUNTIME_DATA_TOKENS_TOKEN_PATHS_H_
#define MGC_RUNTIME_DATA_TOKENS_TOKEN_PATHS_H_

#include <string>
#include <vector>

namespace mgc {

// The .bin and the .idx of a pair of Megatron-LM's, where `path` is that of either (of the .bin
// only where the .idx is there) or their common begin and no file itself; else `path` alone.
std::vector<std::string> FilesBehind(const std::string& path);

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_TOKENS_TOKEN_PATHS_H_
