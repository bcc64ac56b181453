// SPDX-License-Identifier: Apache-2.0
#include "data/routine/words.h"

namespace tutti::impl::data {

bool is_white_space(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

bool is_punctuation(char byte) {
  return (byte >= '!' && byte <= '/') || (byte >= ':' && byte <= '@') || (byte >= '[' && byte <= '`') ||
         (byte >= '{' && byte <= '~');
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_white_space(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_white_space(text.back()))
    text.remove_suffix(1);
  return text;
}

size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const size_t length = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
  if (length == 1 || text.size() < length) return 1;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 1;
  }
  const unsigned second = byte(1);
  const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_none = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return is_overlong || is_none ? 1 : length;
}

int64_t count_characters(std::string_view text) {
  int64_t count = 0;
  for (; !text.empty(); ++count)
    text.remove_prefix(character_bytes(text));
  return count;
}

size_t character_offset(std::string_view text, int64_t index) {
  size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index)
    offset += character_bytes(text.substr(offset));
  return offset;
}

void split_words(std::string_view text, std::vector<std::string_view> &parts) {
  tokenize(text, Punctuation::keep, parts);
}

void split_at(std::string_view text, std::string_view separator, std::vector<std::string_view> &parts) {
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return;
    begin = end + separator.size();
  }
}

void tokenize(std::string_view text, Punctuation punctuation, std::vector<std::string_view> &words) {
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const bool is_mark = i < text.size() && punctuation != Punctuation::keep && is_punctuation(text[i]);
    if (i < text.size() && !is_mark && !is_white_space(text[i])) continue;
    if (i > begin) words.push_back(text.substr(begin, i - begin));
    if (is_mark && punctuation == Punctuation::split) words.push_back(text.substr(i, 1));
    begin = i + 1;
  }
}

uint64_t text_hash(std::string_view text, int64_t salt) {
  constexpr uint64_t kPrime = 1099511628211U;
  uint64_t hash = 14695981039346656037U;
  for (int i = 0; i < 8; ++i)
    hash = (hash ^ (static_cast<uint64_t>(salt) >> (8 * i) & 0xff)) * kPrime;
  for (const char byte : text)
    hash = (hash ^ static_cast<unsigned char>(byte)) * kPrime;
  hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdU;
  hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53U;
  return hash ^ hash >> 33;
}

int64_t hash_bucket(std::string_view text, int64_t salt, int64_t buckets) {
  return static_cast<int64_t>(
      static_cast<unsigned __int128>(text_hash(text, salt)) * static_cast<unsigned __int128>(buckets) >> 64);
}

}  // namespace tutti::impl::data
