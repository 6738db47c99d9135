#include "graph/base/diagnostic.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/file.h"

namespace mgc {
namespace {

// Unlike EscapeBytes it changes nothing that has been escaped before, nor the ends of lines.
void AppendPrintable(absl::string_view bytes, std::string* out) {
  for (unsigned char byte : bytes) {
    if ((byte >= 0x20 && byte < 0x7f) || byte == '\n') {
      out->push_back(static_cast<char>(byte));
    } else {
      absl::StrAppendFormat(out, "\\x%02X", byte);
    }
  }
}

// The same of what is one line.
void AppendLine(absl::string_view bytes, std::string* out) {
  for (size_t end; (end = bytes.find('\n')) != bytes.npos; bytes.remove_prefix(end + 1)) {
    AppendPrintable(bytes.substr(0, end), out);
    out->append("\\x0A");
  }
  AppendPrintable(bytes, out);
}

}  // namespace

std::string ToString(const Diagnostic& diagnostic) {
  std::string text;
  AppendLine(diagnostic.place, &text);
  if (!diagnostic.place.empty()) text.append(": ");
  AppendLine(diagnostic.text, &text);
  if (!diagnostic.label.empty()) absl::StrAppend(&text, " [", diagnostic.label, "]");
  if (!diagnostic.hint.empty()) text.append("; nearest legal: ");
  AppendLine(diagnostic.hint, &text);
  if (!diagnostic.detail.empty()) text.push_back('\n');
  AppendPrintable(diagnostic.detail, &text);
  return text;
}

void Diagnostics::Add(Diagnostic diagnostic) {
  const auto same = [&](const Diagnostic& other) {
    return !other.label.empty() && other.label == diagnostic.label;
  };
  if (full() || static_cast<size_t>(std::count_if(begin(), end(), same)) >= most_of_a_label_) {
    ++left_out_;
  } else {
    list_.push_back(std::move(diagnostic));
  }
}

void Diagnostics::Append(const Diagnostics& more) {
  for (const Diagnostic& diagnostic : more) Add(diagnostic);
  left_out_ += more.left_out_;
}

bool Diagnostics::Has(absl::string_view label) const {
  return std::any_of(begin(), end(), [&](const Diagnostic& other) { return other.label == label; });
}

std::string Diagnostics::ToString() const {
  std::string text;
  for (const Diagnostic& diagnostic : list_) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", mgc::ToString(diagnostic));
  }
  if (left_out_ > 0)
    absl::StrAppend(&text, text.empty() ? "" : "\n", "... and ", left_out_, " more");
  return text;
}

absl::Status Diagnostics::ToStatus(absl::StatusCode code) const {
  return empty() ? absl::OkStatus() : absl::Status(code, ToString());
}

FileDiagnostics::FileDiagnostics(absl::string_view file) : file_(EscapeBytes(file)) {}

std::string FileDiagnostics::At(TextPlace place) const {
  return absl::StrCat(file_, ":", place.line, ":", place.column);
}

void FileDiagnostics::Add(TextPlace place, absl::string_view label, absl::string_view text) {
  if (left_out_ > 0 || found_.size() == Diagnostics::kMost) {
    ++left_out_;
    return;
  }
  Diagnostic diagnostic{std::string(label), std::string(text)};
  diagnostic.place = At(place);
  found_.push_back({place, std::move(diagnostic)});
}

void FileDiagnostics::Note(absl::string_view text) {
  if (found_.empty() || left_out_ > 0) return;
  std::string& detail = found_.back().diagnostic.detail;
  absl::StrAppend(&detail, detail.empty() ? "" : "\n", "  note: ", text);
}

void FileDiagnostics::Note(TextPlace place, absl::string_view text) {
  Note(absl::StrCat(text, " at ", At(place)));
}

absl::Status FileDiagnostics::ToStatus() const {
  std::vector<Found> sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Found& a, const Found& b) {
    return std::make_pair(a.place.line, a.place.column) <
           std::make_pair(b.place.line, b.place.column);
  });
  Diagnostics all(Diagnostics::kMost, Diagnostics::kNoLimit);
  for (Found& found : sorted) all.Add(std::move(found.diagnostic));
  all.LeaveOut(left_out_);
  return all.ToStatus();
}

}  // namespace mgc
