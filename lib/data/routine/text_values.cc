// SPDX-License-Identifier: Apache-2.0
//
// Ops from texts to numbers: bytes_to_number, bytes_to_values, bytes_hash_bucket, lookup; and equal, not_equal.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/file.h"
#include "base/text.h"
#include "data/file/byte_stream.h"
#include "data/routine/images.h"
#include "data/routine/kernels.h"
#include "data/routine/words.h"
#include "graph/ops/op_attributes.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using graph::ops::BytesHashBucketAttributes;
using graph::ops::BytesToNumberAttributes;
using graph::ops::BytesToValuesAttributes;
using graph::ops::LookupAttributes;
using tensor::DType;
using tensor::Shape;

namespace {

static_assert(std::endian::native == std::endian::little);

// Texts in messages are cut.
constexpr size_t kShownBytes = 40;
constexpr int64_t kMostVocabularyBytes = int64_t{1} << 30;

std::string shown(std::string_view text) {
  return base::concat(base::quoted(text.substr(0, kShownBytes)), text.size() > kShownBytes ? "..." : "");
}

template <typename T>
Status parse_number(std::string_view text, T &value) {
  std::string_view digits = trimmed(text);
  // from_chars knows a minus, which hexadecimal floats must not have before their 0x, and no plus.
  const bool has_sign = !digits.empty() && (digits[0] == '+' || digits[0] == '-');
  const bool is_negative = has_sign && digits[0] == '-';
  if (has_sign && (!is_negative || std::is_floating_point_v<T>)) digits.remove_prefix(1);
  const bool has_other_sign =
      has_sign && !digits.empty() && (digits[0] == '+' || (digits[0] == '-' && digits.data() != trimmed(text).data()));
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<T>) {
    const bool is_hexadecimal = digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    if (is_hexadecimal) digits.remove_prefix(2);
    read = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                           is_hexadecimal ? std::chars_format::hex : std::chars_format::general);
    if (read.ec == std::errc() && is_negative) value = -value;
  } else {
    read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  }
  if (read.ec == std::errc::result_out_of_range) {
    return base::out_of_range("the text ", shown(text), " does not fit ", tensor::dtype_of<T>);
  }
  if (read.ec == std::errc() && read.ptr == digits.data() + digits.size() && !digits.empty() && !has_other_sign) {
    return Status();
  }
  return base::invalid_argument("the text ", shown(text), " is not a number of dtype ", tensor::dtype_of<T>);
}

template <typename T>
Status parse_numbers(RoutineFrame &frame) {
  const RoutineValue &x = frame.input(0);
  TUTTI_ASSIGN(T *const y, frame.output_as<T>(0, x.shape));
  for (int64_t i = 0; i < x.shape.elements(); ++i)
    TUTTI_TRY(parse_number(x.text(i), y[i]));
  return Status();
}

Status read_values(RoutineFrame &frame, const BytesToValuesAttributes &attributes) {
  const RoutineValue &x = frame.input(0);
  const size_t value_bytes = tensor::size_bytes(attributes.dtype);
  const int64_t texts = x.shape.elements();
  const size_t length = attributes.count > 0 ? static_cast<size_t>(attributes.count) * value_bytes
                        : texts > 0          ? x.text(0).size()
                                             : 0;
  for (int64_t i = 0; i < texts; ++i) {
    const size_t got = x.text(i).size();
    if (got == length && got % value_bytes == 0) continue;
    if (got % value_bytes != 0) {
      return base::invalid_argument("text ", i, " has ", got, " bytes, which is not a multiple of ", value_bytes);
    }
    return base::invalid_argument("text ", i, " has ", got, " bytes, expected ", length);
  }
  TUTTI_ASSIGN(const Shape shape, append_axis(x.shape, static_cast<int64_t>(length / value_bytes)));
  TUTTI_ASSIGN(char *const y, frame.output_as<char>(0, shape));
  for (int64_t i = 0; i < texts && length > 0; ++i)
    std::memcpy(y + static_cast<size_t>(i) * length, x.text(i).data(), length);
  if (attributes.byte_order == BytesToValuesAttributes::ByteOrder::big) {
    for (size_t at = 0; at < static_cast<size_t>(texts) * length; at += value_bytes)
      std::reverse(y + at, y + at + value_bytes);
  }
  return Status();
}

// Texts by their index. Immutable, shared by threads.
class Vocabulary {
 public:
  explicit Vocabulary(tensor::Tensor constant) : constant_(std::move(constant)) {
    for (int64_t i = 0; i < constant_.elements(); ++i)
      add(tensor::bytes_at(constant_, i));
  }
  /// One text per line; line ends are LF or CR LF, the last one may be missing. A byte order mark is no part of them.
  explicit Vocabulary(std::string lines) : lines_(std::move(lines)) {
    std::string_view rest = lines_;
    if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      std::string_view line = rest.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      add(line);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }

  int64_t size() const { return size_; }
  /// -1 when it is not there.
  int64_t find(std::string_view text) const {
    const auto found = indices_.find(text);
    return found == indices_.end() ? -1 : found->second;
  }

 private:
  void add(std::string_view text) { indices_.emplace(text, size_++); }

  const tensor::Tensor constant_;
  const std::string lines_;
  int64_t size_ = 0;
  std::unordered_map<std::string_view, int64_t> indices_;
};

/// Lines that end in CR alone would be one text, which no word equals.
Status check_line_ends(std::string_view lines, const std::string &path) {
  int64_t line = 1;
  for (size_t at = lines.find_first_of("\r\n"); at != std::string_view::npos;
       at = lines.find_first_of("\r\n", at + 1)) {
    if (lines[at] == '\r' && at + 1 < lines.size() && lines[at + 1] != '\n')
      return base::invalid_argument(base::quoted(path, 400), ":", line,
                                    ": a carriage return is not followed by a line feed; lines end in LF or CR LF");
    line += lines[at] == '\n' ? 1 : 0;
  }
  return Status();
}

Result<std::shared_ptr<const Vocabulary>> load_vocabulary(const RoutineNode &node, const LookupAttributes &attributes) {
  if (attributes.path.empty()) {
    const graph::Node &producer = node.graph.node(node.input(1).producer);
    const auto &constant = std::get<tensor::Tensor>(producer.attributes.at("value"));
    return std::make_shared<const Vocabulary>(constant);
  }
  TUTTI_ASSIGN(std::string lines, base::read_file(attributes.path, kMostVocabularyBytes));
  TUTTI_TRY(check_line_ends(lines, attributes.path));
  return std::make_shared<const Vocabulary>(std::move(lines));
}

// Equal shapes, or one text against many.
Status compare_texts(RoutineFrame &frame, bool wants_equal) {
  const RoutineValue &a = frame.input(0), &b = frame.input(1);
  const bool a_is_one = a.shape.elements() == 1, b_is_one = b.shape.elements() == 1;
  TUTTI_ASSIGN(const Shape shape, frame.known_shape(0));
  const int64_t count = shape.elements();
  if ((!a_is_one && a.shape.elements() != count) || (!b_is_one && b.shape.elements() != count)) {
    return base::unimplemented("texts ", a.shape, " and ", b.shape, " are compared element by element or with one");
  }
  TUTTI_ASSIGN(bool *const y, frame.output_as<bool>(0, shape));
  for (int64_t i = 0; i < count; ++i)
    y[i] = (a.text(a_is_one ? 0 : i) == b.text(b_is_one ? 0 : i)) == wants_equal;
  return Status();
}

}  // namespace

Result<RoutineKernel> make_bytes_to_number(const RoutineNode &node) {
  switch (node.output(0).dtype) {
    case DType::f64:
      return RoutineKernel(parse_numbers<double>);
    case DType::i32:
      return RoutineKernel(parse_numbers<int32_t>);
    case DType::i64:
      return RoutineKernel(parse_numbers<int64_t>);
    default:
      return RoutineKernel(parse_numbers<float>);
  }
}

Result<RoutineKernel> make_bytes_to_values(const RoutineNode &node) {
  TUTTI_ASSIGN(const BytesToValuesAttributes attributes, BytesToValuesAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) { return read_values(frame, attributes); });
}

Result<RoutineKernel> make_bytes_hash_bucket(const RoutineNode &node) {
  TUTTI_ASSIGN(const BytesHashBucketAttributes attributes, BytesHashBucketAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) -> Status {
    const RoutineValue &x = frame.input(0);
    TUTTI_ASSIGN(int64_t *const y, frame.output_as<int64_t>(0, x.shape));
    for (int64_t i = 0; i < x.shape.elements(); ++i)
      y[i] = hash_bucket(x.text(i), attributes.salt, attributes.buckets);
    return Status();
  });
}

Result<RoutineKernel> make_lookup(const RoutineNode &node) {
  TUTTI_ASSIGN(const LookupAttributes attributes, LookupAttributes::from(node.node));
  TUTTI_ASSIGN(const std::shared_ptr<const Vocabulary> vocabulary, load_vocabulary(node, attributes));
  return RoutineKernel(
      [vocabulary, missing = attributes.missing, buckets = attributes.hash_buckets](RoutineFrame &frame) -> Status {
        const RoutineValue &x = frame.input(0);
        TUTTI_ASSIGN(int64_t *const y, frame.output_as<int64_t>(0, x.shape));
        for (int64_t i = 0; i < x.shape.elements(); ++i) {
          y[i] = vocabulary->find(x.text(i));
          if (y[i] < 0) y[i] = buckets > 0 ? vocabulary->size() + hash_bucket(x.text(i), 0, buckets) : missing;
        }
        return Status();
      });
}

Result<RoutineKernel> make_compare_texts(const RoutineNode &node) {
  const bool wants_equal = node.node.op == "equal";
  return RoutineKernel([wants_equal](RoutineFrame &frame) { return compare_texts(frame, wants_equal); });
}

}  // namespace tutti::impl::data
