// Files of text to a file of tokens, by several threads, and back.

#ifndef MGC_TOOLS_TOKENS_TOKENIZE_FILES_H_
#define MGC_TOOLS_TOKENS_TOKENIZE_FILES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "frontends/tokenize/text_tokenizer.h"
#include "frontends/tokenize/train_bpe.h"
#include "runtime/data/tokens/token_file.h"
#include "runtime/data/tokens/token_file_writer.h"
#include "tools/tokens/documents.h"

namespace mgc {

// How far it has come.
struct TokenizeProgress {
  int64_t documents = 0;
  int64_t bytes = 0;  // of text
  int64_t tokens = 0;
};
using OnTokenizeProgress = std::function<void(const TokenizeProgress&)>;

struct TokenizeOptions {
  DocumentRule rule;
  int workers = 1;                   // threads, at least 1
  absl::optional<TokenId> end_with;  // behind every document
  OnTokenizeProgress on_progress;    // or null; called now and then, and at the end
  // Text between two times that the writer saves; 0: never. Of a writer with a mark.
  int64_t save_bytes = 0;
  int64_t round_bytes = int64_t{4} << 20;  // gathered for each worker before they start
};

// Appends the documents of `paths` to `writer`, in order: what is written does not depend on the
// workers. Documents that the writer has already are passed over; FailedPrecondition when they are
// others. `writer` is not finished. Errors of ForEachDocument and of writing.
absl::Status TokenizeFiles(const std::vector<std::string>& paths, const TextTokenizer& tokenizer,
                           const TokenizeOptions& options, TokenFileWriter* writer);

// Counts the words of all documents.
absl::Status CountWords(const std::vector<std::string>& paths, const DocumentRule& rule,
                        const OnTokenizeProgress& on_progress, WordCounts* counts);

// Hands the text of all tokens to `write`, piece by piece, or where the tokenizer asks for it
// document by document, as far as the file knows of them; errors of it and of reading, and
// InvalidArgument for an id outside the tokenizer's vocabulary.
absl::Status DecodeFile(const TokenFile& file, const TextTokenizer& tokenizer,
                        absl::FunctionRef<absl::Status(absl::string_view)> write);

}  // namespace mgc

#endif  // MGC_TOOLS_TOKENS_TOKENIZE_FILES_H_
