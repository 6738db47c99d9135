// Numbers for people.

#ifndef MGC_GRAPH_BASE_UNITS_H_
#define MGC_GRAPH_BASE_UNITS_H_

#include <cstdint>
#include <string>

namespace mgc {

// Binary units with one digit behind the point: `1023 B`, `1.5 KiB`, `5.0 PiB`. bytes >= 0.
std::string BytesText(int64_t bytes);

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_UNITS_H_
