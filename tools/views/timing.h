// How long the parts of a compilation took.

#ifndef MGC_TOOLS_VIEWS_TIMING_H_
#define MGC_TOOLS_VIEWS_TIMING_H_

#include <cstdint>
#include <string>
#include <vector>

namespace mgc {

class JsonWriter;

struct PassTime {
  std::string name;  // of a pass, or `proof`
  int64_t ns = 0;
};

// A line per part and their sum.
std::string TimingText(const std::vector<PassTime>& times);

// The value of a member: [{"pass": ..., "ns": ...}, ...].
void WriteTiming(const std::vector<PassTime>& times, JsonWriter* json);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_TIMING_H_
