// SPDX-License-Identifier: Apache-2.0
//
// Texts taken apart. ASCII decides about white space, letters and punctuation; other bytes, UTF-8 among them, belong to
// words. Parts are views of the text.
//
// Threads: pure functions.
#ifndef TUTTI_DATA_ROUTINE_WORDS_H_
#define TUTTI_DATA_ROUTINE_WORDS_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace tutti::impl::data {

/// Blank, tab, line feed, carriage return, form feed, vertical tab.
bool is_white_space(char byte);
/// The 32 marks of ASCII.
bool is_punctuation(char byte);
/// Without white space around it.
std::string_view trimmed(std::string_view text);

/// Bytes of the UTF-8 sequence that `text`, which is not empty, begins with; 1 where it begins with none (RFC 3629: no
/// overlong forms, no surrogates, nothing above U+10FFFF).
size_t character_bytes(std::string_view text);
/// Characters of a text; each byte that is part of no sequence counts as one.
int64_t count_characters(std::string_view text);
/// Where character `index` begins; the end of the text when it has no more.
size_t character_offset(std::string_view text, int64_t index);

/// Appends the words between white space.
void split_words(std::string_view text, std::vector<std::string_view> &parts);
/// Appends the parts between separators, which are not empty: one more than there are separators.
void split_at(std::string_view text, std::string_view separator, std::vector<std::string_view> &parts);

enum class Punctuation { keep, split, drop };
/// Appends the words between white space; punctuation belongs to them, is a word of its own, or a gap.
void tokenize(std::string_view text, Punctuation punctuation, std::vector<std::string_view> &words);

/// FNV-1a of 64 bits over the salt's 8 bytes, the least significant first, and the text; then MurmurHash3's fmix64.
uint64_t text_hash(std::string_view text, int64_t salt);
/// text_hash · buckets / 2^64, rounded down.
int64_t hash_bucket(std::string_view text, int64_t salt, int64_t buckets);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ROUTINE_WORDS_H_
