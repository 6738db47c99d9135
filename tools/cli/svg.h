// Renders DOT text with Graphviz's `dot`, where it is installed.

#ifndef MGC_TOOLS_CLI_SVG_H_
#define MGC_TOOLS_CLI_SVG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/cli/output.h"

namespace mgc {

inline constexpr int kSvgSeconds = 30;

// NotFound when there is no `dot` in PATH, DeadlineExceeded when it took longer than `seconds` (it
// is then killed), Internal when it failed.
absl::StatusOr<std::string> RenderSvg(absl::string_view dot, int seconds = kSvgSeconds);

// Adds the drawing's SVG to `files`, or says why it cannot be made.
absl::Status AddSvg(absl::string_view dot, const std::string& path, std::vector<OutputFile>* files);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_SVG_H_
