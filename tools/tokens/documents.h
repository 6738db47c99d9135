// What a document is in a file of text.

#ifndef MGC_TOOLS_TOKENS_DOCUMENTS_H_
#define MGC_TOOLS_TOKENS_DOCUMENTS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace mgc {

struct DocumentRule {
  enum class Kind {
    kFile,       // all of it
    kLine,       // a line, without its end
    kJsonLine,   // a string of the JSON object in a line
    kSeparator,  // what stands between two separators
  };
  Kind kind = Kind::kFile;
  std::string key = {};        // of the string in an object
  std::string separator = {};  // not empty
};

// Hands the documents of the file or pipe at `path` to `take`, in order, those that are empty left
// out; one of them is in memory. Errors of ReadPieces (graph/base/file.h), the first one of `take`,
// and InvalidArgument, which names the line, for a document that is too long to be tokenized at
// once or for a line that is no JSON object with such a string.
absl::Status ForEachDocument(const std::string& path, const DocumentRule& rule,
                             absl::FunctionRef<absl::Status(std::string document)> take);

}  // namespace mgc

#endif  // MGC_TOOLS_TOKENS_DOCUMENTS_H_
