#include "frontends/tokenize/bpe_lists.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontends/tokenize/byte_alphabet.h"
#include "graph/base/file.h"

namespace mgc {
namespace {

std::string Quoted(absl::string_view token) { return absl::StrCat("`", EscapeBytes(token), "`"); }

}  // namespace

void BpeLists::Add(const AddedToken& token, TextPlace place, FileDiagnostics* problems) {
  const auto [entry, is_new] = holder_.try_emplace(token.id, token.content);
  const bool new_content = added_.try_emplace(token.content, token.id).second;
  if (!is_new || !new_content) {
    problems->Add(
        place, "K1",
        absl::StrCat("added token ", Quoted(token.content), " with id ", token.id,
                     is_new ? " has another id already"
                            : absl::StrCat(": the id is that of ", Quoted(entry->second))));
    return;
  }
  parts_.added.push_back(token);
}

bool BpeLists::CheckId(const JsonValue& id, absl::string_view token, FileDiagnostics* problems) {
  if (id.kind != JsonValue::Kind::kInteger) {
    problems->Add(
        id.place(), "J2",
        absl::StrCat("the id of ", Quoted(token), " must be an integer, not ", KindName(id.kind)));
    return false;
  }
  if (id.integer >= 0 && id.integer <= kMaxTokenId) return true;
  problems->Add(id.place(), "K1",
                absl::StrCat("the id ", id.integer, " of ", Quoted(token), " is not from 0 to ",
                             kMaxTokenId));
  return false;
}

void BpeLists::AddVocabulary(const JsonValue& vocabulary, FileDiagnostics* problems) {
  ids_.reserve(vocabulary.members.size());
  for (const JsonMember& member : vocabulary.members) {
    if (!CheckId(member.value, member.key, problems)) continue;
    const auto id = static_cast<TokenId>(member.value.integer);
    const auto added = added_.find(member.key);
    if (added != added_.end() && added->second == id) continue;
    const auto problem = [&](absl::string_view text) {
      problems->Add({member.line, member.column}, "K1",
                    absl::StrCat("token ", Quoted(member.key), " with id ", id, text));
    };
    absl::optional<std::string> bytes = BytesSpelled(member.key);
    if (!bytes.has_value() || bytes->empty()) {
      problem(" spells no bytes: this is no byte-level vocabulary");
      continue;
    }
    const auto [holder, is_new] = holder_.try_emplace(id, member.key);
    if (!is_new) {
      problem(absl::StrCat(": the id is that of ", Quoted(holder->second)));
      continue;
    }
    if (static_cast<size_t>(id) >= parts_.tokens.size()) {
      parts_.tokens.resize(static_cast<size_t>(id) + 1);
    }
    parts_.tokens[static_cast<size_t>(id)] = *bytes;
    ids_.emplace(*std::move(bytes), id);
  }
}

TokenId BpeLists::Find(absl::string_view bytes) const {
  const auto found = ids_.find(bytes);
  return found == ids_.end() ? kNoToken : found->second;
}

void BpeLists::AddMerge(absl::string_view left, absl::string_view right, TextPlace place,
                        FileDiagnostics* problems) {
  const std::string left_bytes = BytesSpelled(left).value_or("");
  const std::string right_bytes = BytesSpelled(right).value_or("");
  const Merge merge = {Find(left_bytes), Find(right_bytes), Find(left_bytes + right_bytes)};
  const auto problem = [&](absl::string_view text) {
    problems->Add(place, "K2",
                  absl::StrCat("the merge of ", Quoted(left), " and ", Quoted(right), text));
  };
  if (merge.left == kNoToken || merge.right == kNoToken) {
    problem(absl::StrCat(": ", Quoted(merge.left == kNoToken ? left : right), " is no token"));
  } else if (merge.merged == kNoToken) {
    problem(" gives no token");
  } else if (!merged_.insert({merge.left, merge.right}).second) {
    problem(" stands there twice");
  } else {
    parts_.merges.push_back(merge);
  }
}

void BpeLists::AddFromVocabulary(absl::string_view content) {
  const TokenId id = Find(content);
  if (id == kNoToken) return;
  AddedToken token;
  token.id = id;
  token.content = std::string(content);
  token.special = true;
  added_.emplace(token.content, id);
  parts_.added.push_back(std::move(token));
}

TokenizerParts BpeLists::Take(TextPlace place, FileDiagnostics* problems) {
  std::vector<std::string> missing;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    if (Find(bytes) == kNoToken) missing.push_back(EscapeBytes(bytes));
  }
  if (!missing.empty()) {
    const size_t count = missing.size();
    if (count > 8) missing.resize(8);
    problems->Add(place, "K1",
                  absl::StrCat("the vocabulary has no token for ", count, " of the 256 bytes: ",
                               absl::StrJoin(missing, ", "), count > 8 ? ", ..." : ""));
  }
  return std::move(parts_);
}

}  // namespace mgc
