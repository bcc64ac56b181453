// SPDX-License-Identifier: Apache-2.0
//
// Reading .gz and zlib streams. Everything inflated is bounded: a total size and a ratio to what was read, so that a
// small hostile file cannot fill the memory.
//
//   TUTTI_ASSIGN(std::string text, gunzip(bytes, {.max_output_bytes = 1 << 30}));
//
// Threads: an Inflater belongs to one thread at a time.
#ifndef TUTTI_BASE_GZIP_H_
#define TUTTI_BASE_GZIP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::base {

/// Does it begin like a gzip file?
bool looks_like_gzip(std::string_view bytes);

/// Deflate itself ends near 1032 to 1.
constexpr int64_t kMostDeflateRatio = 1100, kDeflateRatioSlack = int64_t{1} << 20;

struct InflateLimits {
  int64_t max_output_bytes = int64_t{16} << 30;
  /// Output may be at most this many times the input read so far, plus kDeflateRatioSlack.
  int64_t max_ratio = kMostDeflateRatio;
};

/// Inflates a whole buffer: gzip (any number of members) or zlib, told apart by the header. DATA_LOSS for damaged or
/// truncated input, RESOURCE_EXHAUSTED over a limit.
Result<std::string> gunzip(std::string_view bytes, InflateLimits limits = {});

/// Inflates piece by piece.
class Inflater {
 public:
  enum class Header {
    gzip_or_zlib,  ///< told apart by the first byte
    none,          ///< a bare deflate stream, as in zip files
  };
  static Result<Inflater> create(InflateLimits limits = {}, Header header = Header::gzip_or_zlib);
  Inflater(Inflater &&) noexcept;
  Inflater &operator=(Inflater &&) noexcept;
  ~Inflater();

  struct Progress {
    size_t consumed = 0;  // of the input
    size_t produced = 0;  // into the output
  };
  /// Inflates from `input` into `output` until one of them is used up. An error is final, and waits for the next call
  /// when this one gave something.
  Result<Progress> inflate(std::string_view input, std::span<char> output);
  /// Did the input end where a member ends (and has there been one)?
  bool at_end() const;
  /// DATA_LOSS unless at_end(): call it when the input is used up.
  Status finish() const;

 private:
  struct State;
  explicit Inflater(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Compresses piece by piece, into one gzip member or one zlib stream.
class Deflater {
 public:
  enum class Format { gzip, zlib };
  /// Level 1 (fast) to 9 (small). `memory_level` as in zlib, 1 to 9: the same level and memory level give the same
  /// bytes, however the input is cut.
  static Result<Deflater> create(Format format, int level = 6, int memory_level = 8);
  Deflater(Deflater &&) noexcept;
  Deflater &operator=(Deflater &&) noexcept;
  ~Deflater();

  /// Appends to `out` what is ready of the compressed form.
  Status append(std::string_view input, std::string &out) { return step(input, false, out); }
  /// Appends the rest. Once, and last.
  Status finish(std::string &out) { return step({}, true, out); }

 private:
  struct State;
  explicit Deflater(std::unique_ptr<State> state);
  Status step(std::string_view input, bool last, std::string &out);
  std::unique_ptr<State> state_;
};

/// Compresses into one gzip member; level 1 (fast) to 9 (small).
Result<std::string> gzip(std::string_view bytes, int level = 6);

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_GZIP_H_
