#include "tools/cli/machine_source.h"

#include "graph/text/machine_text.h"
#include "tools/cli/output.h"

namespace mgc {

absl::StatusOr<Machine> LoadMachine(const std::string& name) {
  absl::StatusOr<Machine> preset = FindMachinePreset(name);
  if (preset.ok()) return preset;
  const absl::StatusOr<std::string> text = ReadInput(name);
  if (absl::IsNotFound(text.status())) return preset.status();
  if (!text.ok()) return text.status();
  return ParseMachine(*text, name == "-" ? "stdin" : name);
}

}  // namespace mgc
