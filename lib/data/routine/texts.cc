// SPDX-License-Identifier: Apache-2.0
//
// Ops from texts to texts, and their lengths.
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "data/routine/images.h"
#include "data/routine/kernels.h"
#include "data/routine/words.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using graph::ops::BytesJoinAttributes;
using graph::ops::BytesLengthAttributes;
using graph::ops::BytesSplitAttributes;
using graph::ops::BytesSubstringAttributes;
using graph::ops::BytesTokenizeAttributes;
using tensor::Shape;

namespace {

// What kernels of texts keep from call to call.
struct TextWork {
  std::vector<std::string_view> parts, row;
  std::vector<size_t> ends;
  std::string bytes;
};

std::string_view substring(std::string_view text, const BytesSubstringAttributes &attributes) {
  const bool counts_bytes = attributes.unit == BytesSubstringAttributes::Unit::bytes;
  const int64_t whole = counts_bytes ? static_cast<int64_t>(text.size()) : count_characters(text);
  const int64_t start =
      std::clamp<int64_t>(attributes.start < 0 ? whole + attributes.start : attributes.start, 0, whole);
  const int64_t length = attributes.length < 0 ? whole - start : std::min(attributes.length, whole - start);
  if (counts_bytes) return text.substr(static_cast<size_t>(start), static_cast<size_t>(length));
  const std::string_view rest = text.substr(character_offset(text, start));
  return rest.substr(0, character_offset(rest, length));
}

char lower(char byte) { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte; }

// The texts in small letters; the copies lie in work.bytes.
void lower_all(std::vector<std::string_view> &texts, TextWork &work) {
  size_t total = 0;
  for (const std::string_view text : texts)
    total += text.size();
  work.bytes.resize(total);
  size_t at = 0;
  for (std::string_view &text : texts) {
    std::transform(text.begin(), text.end(), work.bytes.begin() + static_cast<std::ptrdiff_t>(at), lower);
    text = std::string_view(work.bytes).substr(at, text.size());
    at += text.size();
  }
}

void take_texts(const RoutineValue &x, std::vector<std::string_view> &texts) {
  texts.clear();
  for (int64_t i = 0; i < x.shape.elements(); ++i)
    texts.push_back(x.text(i));
}

// Takes each text of input 0 apart by divide(text, parts), which appends; `count` 0 = as many parts as there are.
Result<Shape> divide_texts(const RoutineValue &x, int64_t count, TextWork &work, const auto &divide) {
  work.parts.clear();
  int64_t expected = count;
  for (int64_t i = 0; i < x.shape.elements(); ++i) {
    work.row.clear();
    divide(x.text(i), work.row);
    if (count > 0) work.row.resize(static_cast<size_t>(count));
    const auto got = static_cast<int64_t>(work.row.size());
    if (i == 0) expected = got;
    if (got != expected) {
      return base::invalid_argument("text ", i, " has ", got, " parts, text 0 has ", expected,
                                    "; set count, or split single examples");
    }
    work.parts.insert(work.parts.end(), work.row.begin(), work.row.end());
  }
  return append_axis(x.shape, expected);
}

}  // namespace

Result<RoutineKernel> make_bytes_length(const RoutineNode &node) {
  TUTTI_ASSIGN(const BytesLengthAttributes attributes, BytesLengthAttributes::from(node.node));
  const bool counts_bytes = attributes.unit == BytesLengthAttributes::Unit::bytes;
  return RoutineKernel([counts_bytes](RoutineFrame &frame) -> Status {
    const RoutineValue &x = frame.input(0);
    TUTTI_ASSIGN(int64_t *const y, frame.output_as<int64_t>(0, x.shape));
    for (int64_t i = 0; i < x.shape.elements(); ++i)
      y[i] = counts_bytes ? static_cast<int64_t>(x.text(i).size()) : count_characters(x.text(i));
    return Status();
  });
}

Result<RoutineKernel> make_bytes_substring(const RoutineNode &node) {
  TUTTI_ASSIGN(const BytesSubstringAttributes attributes, BytesSubstringAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) {
    auto &work = frame.state<TextWork>();
    take_texts(frame.input(0), work.parts);
    for (std::string_view &text : work.parts)
      text = substring(text, attributes);
    return frame.output_texts(0, frame.input(0).shape, work.parts);
  });
}

Result<RoutineKernel> make_bytes_lower(const RoutineNode &) {
  return RoutineKernel([](RoutineFrame &frame) {
    auto &work = frame.state<TextWork>();
    take_texts(frame.input(0), work.parts);
    lower_all(work.parts, work);
    return frame.output_texts(0, frame.input(0).shape, work.parts);
  });
}

Result<RoutineKernel> make_bytes_split(const RoutineNode &node) {
  TUTTI_ASSIGN(const BytesSplitAttributes attributes, BytesSplitAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) -> Status {
    auto &work = frame.state<TextWork>();
    const auto divide = [&](std::string_view text, std::vector<std::string_view> &parts) {
      if (attributes.separator.empty()) return split_words(text, parts);
      split_at(text, attributes.separator, parts);
      if (attributes.skip_empty) std::erase_if(parts, [](std::string_view part) { return part.empty(); });
    };
    TUTTI_ASSIGN(const Shape shape, divide_texts(frame.input(0), attributes.count, work, divide));
    return frame.output_texts(0, shape, work.parts);
  });
}

Result<RoutineKernel> make_bytes_tokenize(const RoutineNode &node) {
  TUTTI_ASSIGN(const BytesTokenizeAttributes attributes, BytesTokenizeAttributes::from(node.node));
  const Punctuation punctuation =
      attributes.punctuation == BytesTokenizeAttributes::Punctuation::keep    ? Punctuation::keep
      : attributes.punctuation == BytesTokenizeAttributes::Punctuation::split ? Punctuation::split
                                                                              : Punctuation::drop;
  return RoutineKernel([attributes, punctuation](RoutineFrame &frame) -> Status {
    auto &work = frame.state<TextWork>();
    const auto divide = [&](std::string_view text, std::vector<std::string_view> &words) {
      tokenize(text, punctuation, words);
    };
    TUTTI_ASSIGN(const Shape shape, divide_texts(frame.input(0), attributes.count, work, divide));
    if (attributes.lower_case) lower_all(work.parts, work);
    return frame.output_texts(0, shape, work.parts);
  });
}

Result<RoutineKernel> make_bytes_join(const RoutineNode &node) {
  TUTTI_ASSIGN(const BytesJoinAttributes attributes, BytesJoinAttributes::from(node.node));
  return RoutineKernel([separator = attributes.separator](RoutineFrame &frame) -> Status {
    const RoutineValue &x = frame.input(0);
    auto &work = frame.state<TextWork>();
    const Shape shape = leading_axes(x.shape, 1);
    const int64_t length = x.shape[x.shape.rank() - 1], rows = shape.elements();
    work.bytes.clear();
    std::vector<size_t> &ends = work.ends;
    ends.clear();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < length; ++i) {
        if (i > 0) work.bytes += separator;
        work.bytes += x.text(row * length + i);
      }
      ends.push_back(work.bytes.size());
    }
    work.parts.clear();
    for (size_t row = 0, begin = 0; row < ends.size(); begin = ends[row++])
      work.parts.push_back(std::string_view(work.bytes).substr(begin, ends[row] - begin));
    return frame.output_texts(0, shape, work.parts);
  });
}

}  // namespace tutti::impl::data
