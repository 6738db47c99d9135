#include "tools/launch/member.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "runtime/run/host.h"

namespace mgc {
namespace {

std::vector<int> OwnProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int p = 0; p < CPU_SETSIZE; ++p) {
    if (CPU_ISSET(p, &set)) processors.push_back(p);
  }
  return processors;
}

bool IsBelow(const Member& a, const Member& b) { return a.simd_level < b.simd_level; }

}  // namespace

Member OwnMember(int board, uint64_t board_key, SimdLevel simd_level) {
  return {getpid(), board, board_key, simd_level, HostName(), OwnProcessors()};
}

std::string PackMember(const Member& member) {
  std::string text = absl::StrCat(member.pid, " ", member.board, " ", member.board_key, " ",
                                  WordOf(member.simd_level), " ", member.host, " ");
  for (int processor : member.processors) absl::StrAppend(&text, processor, ",");
  return text;
}

Member UnpackMember(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  Member member;
  if (words.size() != 6 || !absl::SimpleAtoi(words[0], &member.pid) ||
      !absl::SimpleAtoi(words[1], &member.board) ||
      !absl::SimpleAtoi(words[2], &member.board_key)) {
    return member;
  }
  for (SimdLevel level : AllSimdLevels()) {
    if (WordOf(level) == words[3]) member.simd_level = level;
  }
  member.host = words[4];
  for (absl::string_view word : absl::StrSplit(words[5], ',', absl::SkipEmpty())) {
    int processor = 0;
    if (absl::SimpleAtoi(word, &processor)) member.processors.push_back(processor);
  }
  return member;
}

int WorkersOf(const std::vector<Member>& members, size_t self) {
  const Member& own = members[self];
  int sharing = 0;
  for (const Member& other : members) {
    const bool overlaps =
        other.host == own.host &&
        std::find_first_of(own.processors.begin(), own.processors.end(), other.processors.begin(),
                           other.processors.end()) != own.processors.end();
    sharing += overlaps ? 1 : 0;
  }
  return std::max(1, static_cast<int>(own.processors.size()) / std::max(1, sharing));
}

SimdLevel CommonLevel(const std::vector<Member>& members) {
  return std::min_element(members.begin(), members.end(), IsBelow)->simd_level;
}

absl::optional<std::string> CommonLevelNote(const std::vector<Member>& members) {
  const auto [least, most] = std::minmax_element(members.begin(), members.end(), IsBelow);
  if (least->simd_level == most->simd_level) return absl::nullopt;
  return absl::StrCat("kernels are of ", NameOf(least->simd_level),
                      ", the most that all processes have (process ", least - members.begin(),
                      ", host ", EscapeBytes(least->host), "; process ", most - members.begin(),
                      ", host ", EscapeBytes(most->host), ", has ", NameOf(most->simd_level), ")");
}

}  // namespace mgc
