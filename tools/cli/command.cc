#include "tools/cli/command.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include "passes/compile.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"

namespace mgc {
namespace {

// Takes no memory: there may be none.
void Say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// Says which exception is being handled.
void SayException() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    Say("error: out of memory\n");
  } catch (const std::system_error& error) {
    // The only calls of ours that throw it are those that start and join threads.
    Say("error: cannot start a thread: ");
    Say(error.what());
    Say("\n");
  } catch (const std::exception& error) {
    Say("error: ");
    Say(error.what());
    Say("\n");
  }
}

// An exception that no one catches: one of a thread, or one that crosses a function without
// exceptions. There is none where memory did not even suffice for it.
[[noreturn]] void EndWithException() {
  if (std::current_exception() == nullptr) {
    Say("error: out of memory\n");
  } else {
    SayException();
  }
  _exit(kExitFailed);
}

// Where there is no memory. Nothing is unwound: Abseil's tables are no longer sound when one could
// not grow, and would free what was never theirs.
[[noreturn]] void EndWithoutMemory() {
  Say("error: out of memory\n");
  _exit(kExitFailed);
}

// Makes the stack as large as a command needs while there is memory: a stack that cannot grow later
// ends a program without a word.
void GrowStack() {
  constexpr size_t kStackBytes = size_t{256} << 10;
  constexpr size_t kPage = size_t{4} << 10;
  volatile char stack[kStackBytes];
  for (size_t at = kStackBytes; at > 0; at -= kPage) stack[at - 1] = 0;
  static_cast<void>(stack[0]);
}

}  // namespace

int RunMain(int argc, char** argv, int (*command)(const Words& arguments)) {
  std::set_terminate(EndWithException);
  std::set_new_handler(EndWithoutMemory);
  GrowStack();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of who writes it
  try {
    return command(Words(argv + std::min(argc, 1), argv + argc));
  } catch (const std::exception&) {
    SayException();
    return kExitFailed;
  }
}

absl::optional<int> ParseOrEnd(Flags* flags, const Words& arguments, ParsedFlags* parsed) {
  if (arguments.empty()) {
    std::cerr << flags->ShortHelp();
    return kExitUsage;
  }
  *parsed = flags->Parse(arguments);
  if (parsed->text.has_value()) return Finish(*parsed->text);
  return absl::nullopt;
}

absl::optional<int> ParseStrictly(Flags* flags, const Words& arguments, absl::string_view command) {
  ParsedFlags parsed;
  if (absl::optional<int> code = ParseOrEnd(flags, arguments, &parsed)) return code;
  if (!parsed.errors.empty()) return Refuse(parsed.errors, {}, command);
  return absl::nullopt;
}

int FailToCompile(const absl::Status& status) {
  return Fail(status, IsRefusal(status) ? kExitInfeasible : kExitFailed);
}

}  // namespace mgc
