// zstd and LZ4 through their own libraries, linked statically.
//
// They are static because the result lives inside other people's processes: a shared libzstd there is the
// program's choice of version, not ours. For the same reason zstd is told to keep its workspace on the heap
// (an explicit context): its one-call function may put 150 KB on the stack of the thread that loads a module.
#include "container/compression.h"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>

namespace klap::container {
namespace {

constexpr uint32_t kZstdFrameMagic = 0xFD2FB528;

// An LZ4 sequence spends at least one byte for 255 bytes of output, so larger claims are lies.
constexpr uint64_t kLz4MaxRatio = 255;

// zstd has no such bound: a few bytes can mean gigabytes of zeros. The buffer starts at the size that real
// entries need (cubins pack about 12 to 1) and grows only as output really comes.
constexpr uint64_t kZstdFirstGuess = 64;

// Encoders round windows up, to 1 KB at the least, and many to far more for small input.
constexpr int kZstdLeastWindowLog = 23;
constexpr int kZstdMostWindowLog = 30;

void check_lz4_size(Bytes stored, uint64_t size, std::string_view where) {
  constexpr uint64_t kMaxInt = std::numeric_limits<int>::max();
  if (size > kMaxInt || stored.size() > kMaxInt || size > stored.size() * kLz4MaxRatio) {
    damaged(where,
            fmt::format("uncompressed size {} is impossible for {} bytes of LZ4", size, stored.size()));
  }
}

std::string unpack_lz4(Bytes stored, uint64_t size, std::string_view where) {
  check_lz4_size(stored, size, where);
  std::string out(size, '\0');
  const int written = LZ4_decompress_safe(as_text(stored).data(), out.data(), static_cast<int>(stored.size()),
                                          static_cast<int>(size));
  if (written < 0) damaged(where, "the LZ4 block is damaged");
  if (static_cast<uint64_t>(written) != size) {
    damaged(where, fmt::format("uncompressed size {} is stated, but the LZ4 block holds {}", size, written));
  }
  return out;
}

std::string begin_lz4(Bytes stored, uint64_t size, uint64_t bytes, std::string_view where) {
  check_lz4_size(stored, size, where);
  std::string out(bytes, '\0');
  const int count = static_cast<int>(bytes);
  const int written = LZ4_decompress_safe_partial(as_text(stored).data(), out.data(),
                                                  static_cast<int>(stored.size()), count, count);
  if (written != count) damaged(where, "the LZ4 block is damaged");
  return out;
}

// Runs the decoder until the frame ends, letting `out` grow up to `size` + 1 bytes: one more than stated, so
// that a frame that holds more than the header says is noticed.
void drain_zstd(ZSTD_DCtx* context, Bytes stored, uint64_t size, std::string& out, std::string_view where) {
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  ZSTD_outBuffer produced{out.data(), out.size(), 0};
  while (true) {
    const size_t rest = ZSTD_decompressStream(context, &produced, &in);
    if (ZSTD_isError(rest) != 0)
      damaged(where, fmt::format("the zstd frame is damaged: {}", ZSTD_getErrorName(rest)));
    if (rest == 0) break;
    const bool full = produced.pos == out.size();
    if (full && out.size() > size) break;
    if (!full && in.pos == in.size) damaged(where, "the zstd frame ends too early");
    if (full) {
      out.resize(std::min<uint64_t>(out.size() * 2, size + 1));
      produced.dst = out.data();
      produced.size = out.size();
    }
  }
  out.resize(produced.pos);
}

using ZstdContext = std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)>;

// A decoder for a frame of `size` bytes, of which it holds nothing yet.
ZstdContext zstd_context(Bytes stored, uint64_t size, std::string_view where) {
  if (stored.size() < 4 || load<uint32_t>(stored, 0) != kZstdFrameMagic) {
    damaged(where, "the flags say zstd, but the payload does not begin with a zstd frame");
  }
  const unsigned long long stated = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (stated == ZSTD_CONTENTSIZE_ERROR) damaged(where, "the header of the zstd frame is damaged");
  if (stated != ZSTD_CONTENTSIZE_UNKNOWN && stated != size) {
    damaged(where, fmt::format("uncompressed size {} is stated, but the zstd frame holds {}", size, stated));
  }
  ZstdContext context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context) damaged(where, "out of memory for the zstd decoder");
  // A damaged frame may ask for a window far larger than the payload could ever use.
  const int window_log =
      std::clamp(static_cast<int>(std::bit_width(size)), kZstdLeastWindowLog, kZstdMostWindowLog);
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, window_log);
  return context;
}

std::string unpack_zstd(Bytes stored, uint64_t size, std::string_view where) {
  const ZstdContext context = zstd_context(stored, size, where);
  std::string out(std::min<uint64_t>(size, stored.size() * kZstdFirstGuess) + 1, '\0');
  drain_zstd(context.get(), stored, size, out, where);
  if (out.size() != size) {
    damaged(where, fmt::format("uncompressed size {} is stated, but the zstd frame holds {}{}", size,
                               out.size(), out.size() > size ? " or more" : ""));
  }
  return out;
}

std::string begin_zstd(Bytes stored, uint64_t size, uint64_t bytes, std::string_view where) {
  const ZstdContext context = zstd_context(stored, size, where);
  std::string out(bytes, '\0');
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  ZSTD_outBuffer produced{out.data(), out.size(), 0};
  while (produced.pos < produced.size) {
    const size_t before = produced.pos + in.pos;
    const size_t rest = ZSTD_decompressStream(context.get(), &produced, &in);
    if (ZSTD_isError(rest) != 0)
      damaged(where, fmt::format("the zstd frame is damaged: {}", ZSTD_getErrorName(rest)));
    if (produced.pos < produced.size && (rest == 0 || produced.pos + in.pos == before))
      damaged(where, "the zstd frame ends too early");
  }
  return out;
}

void check_size(uint64_t size, std::string_view where) {
  if (size > kMaxPayloadBytes) {
    damaged(where,
            fmt::format("uncompressed size {} is more than the {} bytes believed", size, kMaxPayloadBytes));
  }
}

}  // namespace

std::string decompress(Compression method, Bytes stored, uint64_t size, std::string_view where) {
  check_size(size, where);
  switch (method) {
    case Compression::None:
      return std::string(as_text(stored));
    case Compression::Lz4:
      return unpack_lz4(stored, size, where);
    case Compression::Zstd:
      return unpack_zstd(stored, size, where);
  }
  damaged(where, "unknown compression");
}

std::string decompress_beginning(Compression method, Bytes stored, uint64_t size, uint64_t bytes,
                                 std::string_view where) {
  check_size(size, where);
  switch (method) {
    case Compression::None:
      return std::string(as_text(stored.first(std::min<uint64_t>(bytes, stored.size()))));
    case Compression::Lz4:
      return begin_lz4(stored, size, bytes, where);
    case Compression::Zstd:
      return begin_zstd(stored, size, bytes, where);
  }
  damaged(where, "unknown compression");
}

}  // namespace klap::container
