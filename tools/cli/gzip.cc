#include "tools/cli/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int kGzipWindow = 15 + 16;  // of deflateInit2: the largest window, in gzip's frame
constexpr int kMemoryLevel = 8;       // zlib's default
constexpr size_t kPieceBytes = size_t{1} << 16;

// Gives zlib what comes next, as much as it can count.
void Feed(absl::string_view* rest, z_stream* stream) {
  const size_t bytes = std::min(rest->size(), size_t{std::numeric_limits<uInt>::max()});
  stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest->data()));
  stream->avail_in = static_cast<uInt>(bytes);
  rest->remove_prefix(bytes);
}

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
    if (stream.avail_in == 0) Feed(&content, &stream);
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    result = deflate(&stream, content.empty() ? Z_FINISH : Z_NO_FLUSH);
    if (result == Z_STREAM_ERROR) return absl::InternalError("zlib does not compress");
    compressed.append(reinterpret_cast<const char*>(piece.data()), piece.size() - stream.avail_out);
  }
  return compressed;
}

absl::StatusOr<std::string> AsRead(const std::string& path, std::string content,
                                   size_t most_bytes) {
  if (!absl::StartsWith(content, "\x1f\x8b")) return content;
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to read a compressed file");
  }
  const absl::Cleanup end = [&stream] { inflateEnd(&stream); };
  absl::string_view rest = content;
  std::string text;
  std::array<Bytef, kPieceBytes> piece;
  for (int result = Z_OK; result != Z_STREAM_END;) {
    if (stream.avail_in == 0) Feed(&rest, &stream);
    const bool fed = stream.avail_in > 0;
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    result = inflate(&stream, Z_NO_FLUSH);
    const size_t bytes = piece.size() - stream.avail_out;
    if ((result != Z_OK && result != Z_STREAM_END) || (!fed && bytes == 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(EscapeBytes(path), ": a compressed file that is damaged or cut"));
    }
    if (text.size() + bytes > most_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(EscapeBytes(path), ": holds more than ", most_bytes, " bytes"));
    }
    text.append(reinterpret_cast<const char*>(piece.data()), bytes);
  }
  return text;
}

absl::StatusOr<std::string> AsNamed(const std::string& path, std::string content) {
  if (!absl::EndsWith(path, ".gz")) return content;
  return Gzip(content);
}

}  // namespace mgc
