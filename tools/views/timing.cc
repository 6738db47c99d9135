#include "tools/views/timing.h"

#include "graph/base/json_writer.h"
#include "tools/views/format.h"

namespace mgc {

std::string TimingText(const std::vector<PassTime>& times) {
  std::vector<std::vector<std::string>> rows = {{"pass", "time"}};
  int64_t sum = 0;
  for (const PassTime& time : times) {
    rows.push_back({time.name, DurationText(time.ns)});
    sum += time.ns;
  }
  rows.push_back({"together", DurationText(sum)});
  return TableText(rows, {false, true});
}

void WriteTiming(const std::vector<PassTime>& times, JsonWriter* json) {
  json->BeginArray();
  for (const PassTime& time : times) {
    json->NewLine().BeginObject().String("pass", time.name).Integer("ns", time.ns).EndObject();
  }
  json->NewLine().EndArray();
}

}  // namespace mgc
