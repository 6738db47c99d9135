// Where the description of the machines comes from: a preset or a file.

#ifndef MGC_TOOLS_CLI_MACHINE_SOURCE_H_
#define MGC_TOOLS_CLI_MACHINE_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/types/machine.h"

namespace mgc {

// What plans are made for that name no machines.
inline constexpr char kDefaultMachine[] = "cpu-threads";

// A preset if there is one of this name, otherwise the machine text in the file; `-` is stdin.
// Errors are located in the file; a name that is neither is NotFound with the nearest preset.
absl::StatusOr<Machine> LoadMachine(const std::string& name);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_MACHINE_SOURCE_H_
