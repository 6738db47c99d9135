// How long ago something was, of times that a board has: it may be a file of anything.

#ifndef MGC_RUNTIME_WATCH_AGES_H_
#define MGC_RUNTIME_WATCH_AGES_H_

#include <cstdint>
#include <string>

namespace mgc {

// Nanoseconds from `time_ns` to `now_ns`, which is at least 0: 0 for a time to come, as much as it
// is since 0 for one before.
int64_t AgeAt(int64_t now_ns, int64_t time_ns);

// `64.0 s`, `29 ms`.
std::string Seconds(int64_t ns);

}  // namespace mgc

#endif  // MGC_RUNTIME_WATCH_AGES_H_
