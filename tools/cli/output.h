// What a command writes: results to stdout, files all or none.

#ifndef MGC_TOOLS_CLI_OUTPUT_H_
#define MGC_TOOLS_CLI_OUTPUT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/diagnostic.h"

namespace mgc {

struct OutputFile {
  std::string path;  // `-` is stdout
  std::string content;
};

// An input or a result of a command; `-` is stdin or stdout.
struct NamedPath {
  std::string name;  // as the command line has it: `--dot`
  std::string path;
};

// F6: two inputs from stdin, a result that would overwrite an input, two results in one file or on
// stdout. Files are told apart by what they are, not by their names: links and a file that stdin or
// stdout is redirected to are known.
Diagnostics CheckPaths(absl::Span<const NamedPath> inputs, absl::Span<const NamedPath> results);

// The error that writing `path` would end with, as far as it shows before: a folder, a folder that
// is missing or may not be written. stdout is always fine.
absl::Status CheckWritable(const std::string& path);

// Writes all files, each at once; after an error the files written before are as they were.
// InvalidArgument when two of them are the same path.
absl::Status WriteAll(absl::Span<const OutputFile> files);

// Writes to stdout and flushes it; an error when it cannot take all bytes.
absl::Status WriteStdout(absl::string_view text);

// The content of the file at `path`, of stdin for `-`.
absl::StatusOr<std::string> ReadInput(const std::string& path);

// Prints `note: ` and each of them to stderr.
void PrintNotes(absl::Span<const std::string> notes);

// Prints `error: ` and each of them to stderr.
void PrintErrors(const Diagnostics& errors);

// Prints `error: ` and the status' message, line by line, to stderr; returns `code`.
int Fail(const absl::Status& status, int code);

// Writes `text` to stdout; the exit code for a command that ends with it.
int Finish(absl::string_view text);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_OUTPUT_H_
