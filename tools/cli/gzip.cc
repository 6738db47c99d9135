#include "tools/cli/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int kGzipWindow = 15 + 16;  // of deflateInit2: the largest window, in gzip's frame
constexpr int kMemoryLevel = 8;       // zlib's default
constexpr size_t kPieceBytes = size_t{1} << 16;

}  // namespace

absl::StatusOr<std::string> Gzip(absl::string_view content) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to compress a file");
  }
  const absl::Cleanup end = [&stream] { deflateEnd(&stream); };
  std::string compressed;
  std::array<Bytef, kPieceBytes> piece;
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const size_t bytes = std::min(content.size(), size_t{std::numeric_limits<uInt>::max()});
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
      stream.avail_in = static_cast<uInt>(bytes);
      content.remove_prefix(bytes);
    }
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    result = deflate(&stream, content.empty() ? Z_FINISH : Z_NO_FLUSH);
    if (result == Z_STREAM_ERROR) return absl::InternalError("zlib does not compress");
    compressed.append(reinterpret_cast<const char*>(piece.data()), piece.size() - stream.avail_out);
  }
  return compressed;
}

absl::StatusOr<std::string> AsNamed(const std::string& path, std::string content) {
  if (!absl::EndsWith(path, ".gz")) return content;
  return Gzip(content);
}

}  // namespace mgc
