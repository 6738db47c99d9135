// What the mains share: a command is a function from its arguments to its exit code.

#ifndef MGC_TOOLS_CLI_COMMAND_H_
#define MGC_TOOLS_CLI_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "tools/cli/flags.h"

namespace mgc {

// Arguments without the program's or the subcommand's name.
using Words = std::vector<std::string>;

// What a main is: runs `command` on the words behind the program's name. Memory or threads that run
// out, wherever that is, end the program with a line on stderr and kExitFailed; what was being
// written is as before (graph/base/file.h).
int RunMain(int argc, char** argv, int (*command)(const Words& arguments));

// Parses. Prints what the command line asks for or, to stderr, the short help when there are no
// arguments; then the exit code is set and the command is over. Errors are left to the caller.
absl::optional<int> ParseOrEnd(Flags* flags, const Words& arguments, ParsedFlags* parsed);

// The same, and any error of the command line ends the command.
absl::optional<int> ParseStrictly(Flags* flags, const Words& arguments, absl::string_view command);

// Prints the error of a compilation, or of what it begins with; its exit code: kExitInfeasible for
// a refusal, kExitFailed for a failure of ours.
int FailToCompile(const absl::Status& status);

// Subcommands of mgc-plan. These two also work from flags alone:
int GroupsCommand(const Words& arguments);
int ScheduleCommand(const Words& arguments);
int DotCommand(const Words& arguments);
int HtmlCommand(const Words& arguments);
int MemoryCommand(const Words& arguments);
int RooflineCommand(const Words& arguments);
// Of a model, not of a plan.
int DimsCommand(const Words& arguments);
int ExplainCommand(const Words& arguments);
int CutsCommand(const Words& arguments);
// Exits as diff(1): 0 the same, 1 different, 2 trouble.
int DiffCommand(const Words& arguments);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_COMMAND_H_
