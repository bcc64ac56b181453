// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace tutti::impl::base {

namespace {

template <typename T>
void append_number(std::string &out, T value) {
  std::array<char, 40> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value;
  const char *end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

// The length of the well-formed UTF-8 sequence at the beginning of a text, 0 when there is none. Table 3-7 of the
// Unicode standard.
size_t utf8_sequence_length(std::string_view text) {
  const auto byte = [text](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto between = [](unsigned value, unsigned low, unsigned high) { return value >= low && value <= high; };
  const auto continues = [&](size_t i) { return between(byte(i), 0x80, 0xbf); };
  const unsigned lead = byte(0), second = byte(1);
  if (lead < 0x80) return 1;
  if (between(lead, 0xc2, 0xdf)) return continues(1) ? 2 : 0;
  if (between(lead, 0xe0, 0xef)) {
    const unsigned low = lead == 0xe0 ? 0xa0 : 0x80, high = lead == 0xed ? 0x9f : 0xbf;
    return between(second, low, high) && continues(2) ? 3 : 0;
  }
  if (between(lead, 0xf0, 0xf4)) {
    const unsigned low = lead == 0xf0 ? 0x90 : 0x80, high = lead == 0xf4 ? 0x8f : 0xbf;
    return between(second, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

void append_escaped_byte(std::string &out, unsigned char byte) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  out.append("\\x");
  out.push_back(kHexDigits[byte >> 4]);
  out.push_back(kHexDigits[byte & 15]);
}

}  // namespace

void append_integer(std::string &out, int64_t value) { append_number(out, value); }
void append_unsigned(std::string &out, uint64_t value) { append_number(out, value); }
void append_double(std::string &out, double value) { append_number(out, value); }
void append_float(std::string &out, float value) { append_number(out, value); }

void Piece::append_to(std::string &out) const {
  switch (kind_) {
    case Kind::text:
      out.append(text_, size_);
      return;
    case Kind::terminated:
      out.append(text_);
      return;
    case Kind::integer:
      return append_integer(out, integer_);
    case Kind::natural:
      return append_unsigned(out, natural_);
    case Kind::other:
      return append_(out, other_);
  }
}

std::string concat_pieces(std::initializer_list<Piece> pieces) {
  std::string out;
  for (const Piece &piece : pieces)
    piece.append_to(out);
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<int64_t> parse_integer(std::string_view text) { return parse_number<int64_t>(text); }
std::optional<double> parse_double(std::string_view text) { return parse_number<double>(text); }

std::string quoted(std::string_view text, size_t limit) {
  std::string out = "'";
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = std::max<size_t>(1, utf8_sequence_length(text.substr(at)));
    if (at + length > limit) {
      out.append("...");
      break;
    }
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && length == 1)) {
      append_escaped_byte(out, byte);
    } else {
      out.append(text.substr(at, length));
    }
    at += length;
  }
  out.push_back('\'');
  return out;
}

int edit_distance(std::string_view a, std::string_view b) {
  constexpr size_t kLongest = 256;
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  // Three rows of the table of optimal string alignment: i - 2, i - 1 and i.
  std::array<std::array<int, kLongest + 1>, 3> rows;
  for (size_t j = 0; j <= b.size(); ++j)
    rows[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    auto &row = rows[i % 3];
    const auto &above = rows[(i + 2) % 3], &above_that = rows[(i + 1) % 3];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitution = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], above_that[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

namespace {

bool is_same_but_for_case(std::string_view a, std::string_view b) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, small, small);
}

}  // namespace

std::optional<std::string> nearest_match(std::string_view name, std::span<const std::string> candidates) {
  const std::string *best = nullptr;
  int best_distance = static_cast<int>(std::max<size_t>(1, std::min<size_t>(name.size(), 256) / 3)) + 1;
  for (const std::string &candidate : candidates) {
    const int distance = is_same_but_for_case(name, candidate) ? 0 : edit_distance(name, candidate);
    const bool is_all_other = distance >= static_cast<int>(std::max(name.size(), candidate.size()));
    if (distance < best_distance && !is_all_other) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::optional<std::string> match = nearest_match(name, candidates);
  return match ? concat(", did you mean '", *match, "'?") : std::string();
}

bool is_utf8(std::string_view text) { return well_formed_prefix(text) == text.size(); }

size_t well_formed_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = utf8_sequence_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

}  // namespace tutti::impl::base
