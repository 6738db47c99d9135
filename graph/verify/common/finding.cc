#include "graph/verify/common/finding.h"

#include <string>

#include "absl/strings/match.h"

namespace mgc {

Diagnostic FindingOf(const absl::Status& status, absl::string_view place,
                     absl::string_view otherwise) {
  Diagnostic finding{std::string(otherwise), std::string(status.message()), "", std::string(place)};
  const size_t at = finding.text.rfind(" [");
  if (at == std::string::npos || finding.text.back() != ']') return finding;
  const std::string label = finding.text.substr(at + 2, finding.text.size() - at - 3);
  const absl::string_view part = otherwise.substr(0, otherwise.find('_') + 1);
  if (!absl::StartsWith(label, part)) return finding;
  finding.label = label;
  finding.text.resize(at);
  return finding;
}

}  // namespace mgc
