// The flags of mgc-tokenize, under Megatron-LM's names where it has them.

#ifndef MGC_TOOLS_TOKENS_TOKENIZE_FLAGS_H_
#define MGC_TOOLS_TOKENS_TOKENIZE_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "graph/base/diagnostic.h"
#include "tools/cli/flags.h"
#include "tools/tokens/documents.h"

namespace mgc {

struct TokenizeFlags {
  std::vector<std::string> inputs;
  absl::optional<std::string> tokenizer, output;
  absl::optional<std::string> documents, json_key, separator, eod, format, pattern;
  absl::optional<int64_t> workers, vocab_size;
  bool append_eod = false;
  bool train = false;
  bool decode = false;
  bool json = false;
};

void AddTokenizeFlags(Flags* flags, TokenizeFlags* out);

// F6: no tokenizer, no output, no size of a vocabulary.
// F7: flags of two things to do at a time; a flag that means something beside another alone.
Diagnostics CheckTokenizeFlags(const TokenizeFlags& flags);

DocumentRule DocumentRuleOf(const TokenizeFlags& flags);

}  // namespace mgc

#endif  // MGC_TOOLS_TOKENS_TOKENIZE_FLAGS_H_
