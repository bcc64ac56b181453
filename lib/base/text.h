// SPDX-License-Identifier: Apache-2.0
//
// Text from pieces, without streams and without the locale.
//
//   concat("expected ", 3, " rows, got ", shape)      // shape has to_string()
//   join({"a", "b"}, ", ")                            // "a, b"
//   did_you_mean("nesterof", {"nesterov", "momentum"}) // ", did you mean 'nesterov'?"
//
// A piece is: text, a character, a boolean, a number, a vector of pieces (printed "[a, b]"), anything with a
// to_string() member, or anything for which argument-dependent lookup finds name(x) (enumerations) or to_string(x).
// All functions are pure and may be called from any thread.
#ifndef TUTTI_BASE_TEXT_H_
#define TUTTI_BASE_TEXT_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tutti::impl::base {

/// Appends a number; doubles in the shortest form that reads back to the same value.
void append_integer(std::string &out, int64_t value);
void append_unsigned(std::string &out, uint64_t value);
void append_double(std::string &out, double value);
void append_float(std::string &out, float value);

/// Appends one piece; see the head of this file for what a piece may be.
template <typename T>
void append_piece(std::string &out, const T &piece) {
  if constexpr (std::is_convertible_v<const T &, std::string_view>) {
    out.append(std::string_view(piece));
  } else if constexpr (std::same_as<T, bool>) {
    out.append(piece ? "true" : "false");
  } else if constexpr (std::same_as<T, char>) {
    out.push_back(piece);
  } else if constexpr (std::signed_integral<T>) {
    append_integer(out, piece);
  } else if constexpr (std::unsigned_integral<T>) {
    append_unsigned(out, piece);
  } else if constexpr (std::same_as<T, float>) {
    append_float(out, piece);
  } else if constexpr (std::floating_point<T>) {
    append_double(out, static_cast<double>(piece));
  } else if constexpr (requires { piece.to_string(); }) {
    out.append(piece.to_string());
  } else if constexpr (requires { std::string_view(name(piece)); }) {
    out.append(std::string_view(name(piece)));
  } else if constexpr (requires { std::string(to_string(piece)); }) {
    out.append(to_string(piece));
  } else {
    out.push_back('[');
    bool first = true;
    for (const auto &element : piece) {
      if (!first) out.append(", ");
      first = false;
      append_piece(out, element);
    }
    out.push_back(']');
  }
}

/// One piece, referred to: whatever its type, so that a text costs its caller little code. Lives no longer than it.
class Piece {
 public:
  template <typename T>
  explicit Piece(const T &piece) {
    if constexpr (std::is_convertible_v<const T &, const char *>) {
      kind_ = Kind::terminated, text_ = piece;
    } else if constexpr (std::is_convertible_v<const T &, std::string_view>) {
      set_text(piece);
    } else if constexpr (std::same_as<T, char>) {
      set_text({&piece, 1});
    } else if constexpr (std::same_as<T, bool>) {
      kind_ = Kind::terminated, text_ = piece ? "true" : "false";
    } else if constexpr (std::signed_integral<T>) {
      kind_ = Kind::integer, integer_ = piece;
    } else if constexpr (std::unsigned_integral<T>) {
      kind_ = Kind::natural, natural_ = piece;
    } else {
      kind_ = Kind::other, other_ = &piece;
      append_ = [](std::string &out, const void *other) { append_piece(out, *static_cast<const T *>(other)); };
    }
  }
  void append_to(std::string &out) const;

 private:
  enum class Kind : int32_t { text, terminated, integer, natural, other };

  void set_text(std::string_view text) { kind_ = Kind::text, text_ = text.data(), size_ = text.size(); }

  union {
    const char *text_;
    int64_t integer_;
    uint64_t natural_;
    const void *other_;
  };
  union {
    size_t size_;
    void (*append_)(std::string &out, const void *other);
  };
  Kind kind_;
};

/// What concat() comes to.
std::string concat_pieces(std::initializer_list<Piece> pieces);

/// All pieces as one string.
template <typename... Pieces>
[[gnu::always_inline]] inline std::string concat(const Pieces &...pieces) {
  return concat_pieces({Piece(pieces)...});
}

/// The elements of a range of pieces with `separator` between them.
template <typename Range>
std::string join(const Range &range, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto &element : range) {
    if (!first) out.append(separator);
    first = false;
    append_piece(out, element);
  }
  return out;
}

/// The parts between separators; an empty text has one empty part.
std::vector<std::string> split(std::string_view text, char separator);

/// Without white space at both ends.
std::string_view trim(std::string_view text);

/// The whole text as a decimal number; nothing when anything else stands in it or it does not fit.
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_double(std::string_view text);

/// Text of unknown origin in quotes, safe to print: control characters escaped, cut after `limit` bytes.
std::string quoted(std::string_view text, size_t limit = 80);

/// Insertions, deletions, substitutions and swaps of neighbours between two texts (at most 256 bytes of each count).
int edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `name`, if it is near enough to be a slip of the pen.
std::optional<std::string> nearest_match(std::string_view name, std::span<const std::string> candidates);

/// ", did you mean 'x'?" or nothing: the end of an error message about an unknown name.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// Is `text` well-formed UTF-8 (no overlong forms, no surrogates)?
bool is_utf8(std::string_view text);
/// How many bytes at the beginning of `text` are well-formed UTF-8.
size_t well_formed_prefix(std::string_view text);

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_TEXT_H_
