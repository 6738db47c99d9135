// Command lines: flags are declared once with their names, range and rule, and everything that is
// wrong with a command line is found in one pass.
//
// Rules of a command line itself; what a flag's value breaks carries the label that its
// declaration gives:
//   F1  unknown flag          F4  not one of the legal words
//   F2  not a number          F5  given twice, without its value, or with one it does not take
//   F3  out of range          F6  a missing or unexpected argument
// and, of flags that mean the same, F7  two that contradict each other

#ifndef MGC_TOOLS_CLI_FLAGS_H_
#define MGC_TOOLS_CLI_FLAGS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "graph/base/diagnostic.h"

namespace mgc {

// What every command exits with; `mgc-plan diff` alone follows diff(1).
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,      // at run time
  kExitUsage = 2,       // an unknown flag, or a value that is wrong by itself
  kExitInfeasible = 3,  // values that do not go together
  kExitBadModel = 4,    // a bad model or an unreadable file
  kExitMismatch = 5,    // a plan that does not mean what the model means
  kExitStopped = 75,    // as asked, after a checkpoint: to be started again
};

// What a command says about itself.
struct CommandText {
  std::string name;       // `mgc-plan groups`
  std::string arguments;  // `PLAN`, as the usage line shows it
  std::string summary;
  std::vector<std::string> examples;  // whole command lines
  std::string notes;                  // behind the flags; may be empty
};

struct IntegerBounds {
  int64_t low = 1;
  int64_t high = int64_t{1} << 40;
};

struct ParsedFlags {
  // Set when only text is to be printed: --help, --version.
  absl::optional<std::string> text;
  // Everything wrong with the command line; in the order of the flags' declaration.
  Diagnostics errors;
  std::vector<std::string> bad_flags;  // first names of the flags concerned, `--tp`
};

// The flags of one command. Variables outlive the parser and are set only by values in range.
class Flags {
 public:
  explicit Flags(CommandText text) : text_(std::move(text)) {}

  // Starts a section of the help text.
  void Section(absl::string_view title) { section_ = std::string(title); }

  // `names`: all spellings, separated by commas, the one that messages use first: `--tp,--long`.
  // `rule` is the label for a value out of range. `doc` may say the default.
  void Text(absl::string_view names, absl::string_view value, absl::string_view doc,
            absl::optional<std::string>* out);
  // May be given several times.
  void Texts(absl::string_view names, absl::string_view value, absl::string_view doc,
             std::vector<std::string>* out);
  // FILE, or a weight before each of several: `0.3 A 0.7 B` is one value. May be given several
  // times. `out` has the words; a word is a weight where WeightIn says so and a file follows.
  void WeightedFiles(absl::string_view names, absl::string_view doc, std::vector<std::string>* out);
  // The number that a word is, if it begins with a digit or a point: a file of such a name is
  // written ./0.3.
  static absl::optional<double> WeightIn(absl::string_view word);
  void Integer(absl::string_view names, absl::string_view doc, IntegerBounds bounds,
               absl::string_view rule, absl::optional<int64_t>* out);
  // Finite numbers in [low, high].
  void Real(absl::string_view names, absl::string_view doc, double low, double high,
            absl::optional<double>* out);
  void Choice(absl::string_view names, absl::Span<const absl::string_view> legal,
              absl::string_view doc, absl::optional<std::string>* out);
  // May be given several times.
  void Choices(absl::string_view names, absl::Span<const absl::string_view> legal,
               absl::string_view doc, std::vector<std::string>* out);
  void Switch(absl::string_view names, absl::string_view doc, bool* out);
  // At least `min` and at most `max` arguments that are no flags.
  void Arguments(size_t min, size_t max, std::vector<std::string>* out);

  // `arguments` without the program's name. -h, --help and --version are known to every command.
  ParsedFlags Parse(const std::vector<std::string>& arguments);

  std::string Help() const;
  // A few lines for a command line without arguments.
  std::string ShortHelp() const;

 private:
  struct Flag {
    std::vector<std::string> names;
    std::string value;  // what the help calls it; empty for a switch
    std::string doc;
    std::string section;
    // Takes one value; returns what is wrong with it.
    std::function<absl::optional<Diagnostic>(const std::string&)> set;
    bool repeats = false;
    bool weighted = false;
  };
  static absl::optional<Diagnostic> Set(const Flag& flag, const std::vector<std::string>& given);
  void Add(absl::string_view names, absl::string_view value, absl::string_view doc,
           std::function<absl::optional<Diagnostic>(const std::string&)> set);
  const Flag* Find(absl::string_view name) const;
  // The words of a command line by what they are.
  struct Line {
    std::vector<std::vector<std::string>> values;  // of every flag; of a switch, empty ones
    std::vector<std::string> unknown, arguments;
    bool help = false;
    bool version = false;
  };
  Line Split(const std::vector<std::string>& words, ParsedFlags* out) const;
  // Adds the value to those `given` to the flag, unless a switch has one or another flag has none.
  static void TakeFlag(const Flag& flag, const std::string& name, absl::optional<std::string> value,
                       std::vector<std::string>* given, ParsedFlags* out);
  // The words behind a weight at `word`, up to the last file that has one; `word` is then there.
  static std::vector<std::string> WeightedWords(std::vector<std::string>::const_iterator end,
                                                std::vector<std::string>::const_iterator* word);
  void TakeUnknown(const std::vector<std::string>& unknown, ParsedFlags* out) const;
  void TakeArguments(const std::vector<std::string>& given, ParsedFlags* out) const;

  CommandText text_;
  std::string section_ = "Flags";
  std::vector<Flag> flags_;
  size_t min_arguments_ = 0;
  size_t max_arguments_ = 0;
  std::vector<std::string>* arguments_ = nullptr;
};

// `mgc 0.1.0` and a newline.
std::string VersionText();

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_FLAGS_H_
