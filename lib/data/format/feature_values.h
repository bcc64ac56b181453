// SPDX-License-Identifier: Apache-2.0
//
// What tf.train.Example and SequenceExample are made of, read where it lies (TensorFlow, core/example/feature.proto):
//
//   Feature      oneof bytes_list = 1 | float_list = 2 | int64_list = 3, each with `repeated value = 1`, packed or not
//   Features     map<string, Feature> feature = 1: entries with key = 1, value = 2
//
// protozero throws what it cannot read; who calls these catches protozero::exception.
//
// Threads: pure functions of views that the caller keeps alive.
#ifndef TUTTI_DATA_FORMAT_FEATURE_VALUES_H_
#define TUTTI_DATA_FORMAT_FEATURE_VALUES_H_

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data/format/field.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

constexpr auto kMessage = protozero::pbf_wire_type::length_delimited;
inline protozero::data_view view_of(std::string_view text) { return {text.data(), text.size()}; }

enum class ListKind { none, bytes, floats, integers };

/// "bytes_list" and so on; "nothing".
std::string_view name(ListKind kind);
/// The list that values of a dtype come from.
ListKind wanted_kind(tensor::DType dtype);

/// The list of a Feature: the last one, should there be several.
struct List {
  ListKind kind = ListKind::none;
  std::string_view message;
};
List list_of(std::string_view feature);

/// How many values a list that has passed check_kind() holds for the field.
int64_t count_values(const Field &field, const List &list);
/// Of a bytes list.
void append_texts(const List &list, std::vector<std::string_view> &texts);
/// Writes all numbers of a list that has passed check_kind(), as the field's dtype. INVALID_ARGUMENT for an integer
/// that does not fit.
base::Status write_numbers(const Field &field, const List &list, char *target);

/// INVALID_ARGUMENT naming feature, what was expected and what came.
base::Status wrong(const Field &field, std::string_view got);
/// Is the list of the kind that the field wants? Numbers of a shape may also be the one text of a bytes list: the
/// values as they lie in memory, little-endian, as tf.io.decode_raw takes them.
base::Status check_kind(const Field &field, const List &list);
/// The shape that a field has with so many values.
base::Result<tensor::Shape> shape_of(const Field &field, int64_t count);
/// The values as a tensor, or the default.
base::Result<tensor::Tensor> make_component(const Field &field, const List &list);

/// The messages in field 1, which repeats them.
std::vector<std::string_view> messages_in(std::string_view message);

/// Finds what belongs to fields in a map<string, message>, whose entries are messages in field 1.
class FieldsByName {
 public:
  explicit FieldsByName(const std::vector<Field> &fields);
  /// Replaces those of `found`, one for each field, whose name has an entry by the value of the entry, which is not
  /// null even where it is empty. The last of equal names counts.
  void find(std::string_view map, std::span<std::string_view> found) const;

 private:
  std::vector<std::pair<std::string, size_t>> places_;  // by name
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_FEATURE_VALUES_H_
