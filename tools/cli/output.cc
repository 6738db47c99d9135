#include "tools/cli/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "tools/cli/flags.h"

namespace mgc {
namespace {

// A written file and what was there before.
struct Written {
  std::string path;
  absl::optional<std::string> before;  // none: there was no file
};

bool IsRegularFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// Ends in a slash.
std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

absl::optional<std::string> RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  if (real == nullptr) return absl::nullopt;
  return std::string(real.get());
}

// Equal for two paths to one file, however it is linked; one that does not exist yet has the place
// where it will be. `stream` is the file that `-` stands for.
std::string PlaceOf(const std::string& path, int stream) {
  struct stat info;
  const bool exists = path == "-" ? fstat(stream, &info) == 0 : stat(path.c_str(), &info) == 0;
  if (exists && S_ISREG(info.st_mode)) return absl::StrCat(info.st_dev, ":", info.st_ino);
  if (path == "-") return stream == STDIN_FILENO ? "stdin" : "stdout";
  if (auto real = RealPath(path)) return *std::move(real);
  const auto folder = RealPath(FolderOf(path));
  if (!folder.has_value()) return path;
  return absl::StrCat(*folder, "/", path.substr(path.rfind('/') + 1));
}

// F6: results that would overwrite an input.
void CheckResultsAgainst(absl::Span<const NamedPath> inputs, absl::Span<const NamedPath> results,
                         Diagnostics* violations) {
  std::map<std::string, const NamedPath*> input_at;
  for (const NamedPath& input : inputs) {
    if (input.path == "-" || IsRegularFile(input.path)) {
      input_at[PlaceOf(input.path, STDIN_FILENO)] = &input;
    }
  }
  for (const NamedPath& result : results) {
    const auto input = input_at.find(PlaceOf(result.path, STDOUT_FILENO));
    if (input == input_at.end()) continue;
    const std::string& path = input->second->path;
    violations->Add({"F6",
                     absl::StrCat(result.name, " would overwrite ", input->second->name, " ",
                                  path == "-" ? "stdin" : path),
                     "another file"});
  }
}

void Restore(absl::Span<const Written> files) {
  for (const Written& file : files) {
    if (file.before.has_value()) {
      WriteFileAtomically(file.path, *file.before).IgnoreError();
    } else if (IsRegularFile(file.path)) {
      unlink(file.path.c_str());
    }
  }
}

absl::Status WriteOne(const OutputFile& file, std::vector<Written>* written) {
  if (file.path == "-") return WriteStdout(file.content);
  Written entry{file.path, absl::nullopt};
  if (IsRegularFile(file.path)) {
    MGC_ASSIGN_OR_RETURN(entry.before, ReadFile(file.path));
  }
  MGC_RETURN_IF_ERROR(WriteFileAtomically(file.path, file.content));
  written->push_back(std::move(entry));
  return absl::OkStatus();
}

// F6: results that go to one place.
void CheckResultsAgainstEachOther(absl::Span<const NamedPath> results, Diagnostics* violations) {
  std::map<std::string, std::vector<std::string>> names_at;
  for (const NamedPath& result : results) {
    names_at[PlaceOf(result.path, STDOUT_FILENO)].push_back(result.name);
  }
  for (const NamedPath& result : results) {
    const std::vector<std::string> names =
        std::exchange(names_at[PlaceOf(result.path, STDOUT_FILENO)], {});
    if (names.size() < 2) continue;
    violations->Add(
        {"F6",
         absl::StrCat("more than one result goes to ", result.path == "-" ? "stdout" : result.path,
                      ": ", absl::StrJoin(names, ", ")),
         "files for the others"});
  }
}

}  // namespace

Diagnostics CheckPaths(absl::Span<const NamedPath> inputs, absl::Span<const NamedPath> results) {
  Diagnostics violations;
  std::vector<std::string> from_stdin;
  for (const NamedPath& input : inputs) {
    if (input.path == "-") from_stdin.push_back(input.name);
  }
  if (from_stdin.size() > 1) {
    violations.Add({"F6",
                    absl::StrCat("more than one input is stdin: ", absl::StrJoin(from_stdin, ", ")),
                    "files for the others"});
  }
  CheckResultsAgainst(inputs, results, &violations);
  CheckResultsAgainstEachOther(results, &violations);
  return violations;
}

absl::Status CheckWritable(const std::string& path) {
  if (path == "-") return absl::OkStatus();
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  const auto error = [&path](int code) {
    return absl::ErrnoToStatus(code, absl::StrCat("cannot write ", EscapeBytes(path)));
  };
  if (path.empty()) return error(ENOENT);
  if (exists && S_ISDIR(info.st_mode)) return error(EISDIR);
  const bool replaced = !exists || S_ISREG(info.st_mode);
  const std::string written = replaced ? FolderOf(RealPath(path).value_or(path)) : path;
  return access(written.c_str(), W_OK) == 0 ? absl::OkStatus() : error(errno);
}

absl::Status WriteAll(absl::Span<const OutputFile> files) {
  std::vector<absl::string_view> paths;
  for (const OutputFile& file : files) {
    if (std::count(paths.begin(), paths.end(), file.path) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("two outputs to one file: ", EscapeBytes(file.path)));
    }
    paths.push_back(file.path);
  }
  std::vector<Written> written;
  // What goes to stdout cannot be taken back: it goes last.
  for (const bool to_stdout : {false, true}) {
    for (const OutputFile& file : files) {
      if ((file.path == "-") != to_stdout) continue;
      if (absl::Status status = WriteOne(file, &written); !status.ok()) {
        Restore(written);
        return status;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status WriteStdout(absl::string_view text) {
  const bool all = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) != 0 || !all) return absl::DataLossError("cannot write to stdout");
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadInput(const std::string& path) {
  if (path != "-") return ReadFile(path);
  std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  return text;
}

void PrintNotes(absl::Span<const std::string> notes) {
  for (const std::string& note : notes) std::cerr << "note: " << note << "\n";
}

void PrintErrors(const Diagnostics& errors) {
  for (const Diagnostic& error : errors) std::cerr << "error: " << ToString(error) << "\n";
  if (errors.left_out() > 0) std::cerr << "... and " << errors.left_out() << " more\n";
}

int Fail(const absl::Status& status, int code) {
  for (absl::string_view line : absl::StrSplit(status.message(), '\n', absl::SkipEmpty())) {
    const bool goes_on = absl::StartsWith(line, " ") || absl::StartsWith(line, "...");
    std::cerr << (goes_on ? "" : "error: ") << line << "\n";
  }
  return code;
}

int Finish(absl::string_view text) {
  const absl::Status status = WriteStdout(text);
  return status.ok() ? kExitOk : Fail(status, kExitFailed);
}

}  // namespace mgc
