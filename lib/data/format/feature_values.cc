// SPDX-License-Identifier: Apache-2.0
#include "data/format/feature_values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <protozero/pbf_reader.hpp>

#include "tensor/bytes_tensor.h"

static_assert(std::endian::native == std::endian::little);

namespace tutti::impl::data {

using base::Result;
using base::Status;
using protozero::pbf_reader;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

std::string_view text_of(const protozero::data_view &view) { return {view.data(), view.size()}; }

// Calls visit(text), visit(float) or visit(int64_t) for each value of a list.
template <typename Visit>
void for_each_text(std::string_view list, Visit visit) {
  for (pbf_reader reader(view_of(list)); reader.next(1, kMessage);)
    visit(text_of(reader.get_view()));
}

template <typename Visit>
void for_each_float(std::string_view list, Visit visit) {
  for (pbf_reader reader(view_of(list)); reader.next();) {
    if (reader.tag_and_type() == protozero::tag_and_type(1, kMessage)) {
      for (const float value : reader.get_packed_float())
        visit(value);
    } else if (reader.tag_and_type() == protozero::tag_and_type(1, protozero::pbf_wire_type::fixed32)) {
      visit(reader.get_float());
    } else {
      reader.skip();
    }
  }
}

template <typename Visit>
void for_each_integer(std::string_view list, Visit visit) {
  for (pbf_reader reader(view_of(list)); reader.next();) {
    if (reader.tag_and_type() == protozero::tag_and_type(1, kMessage)) {
      for (const int64_t value : reader.get_packed_int64())
        visit(value);
    } else if (reader.tag_and_type() == protozero::tag_and_type(1, protozero::pbf_wire_type::varint)) {
      visit(reader.get_int64());
    } else {
      reader.skip();
    }
  }
}

// Are they numbers as they lie in memory?
bool is_raw(const Field &field, const List &list) {
  const DType dtype = field.component.dtype;
  const bool may_be_raw = dtype != DType::bytes && dtype != DType::boolean && !field.component.dims.empty();
  return may_be_raw && list.kind == ListKind::bytes;
}

// The first text of a bytes list.
std::string_view raw_values(const List &list) {
  pbf_reader reader(view_of(list.message));
  return reader.next(1, kMessage) ? text_of(reader.get_view()) : std::string_view();
}

Status check_raw(const Field &field, const List &list) {
  int64_t texts = 0;
  for_each_text(list.message, [&](std::string_view) { ++texts; });
  if (texts != 1)
    return wrong(field, base::concat("a bytes_list of ", texts, " texts instead of one text with all values"));
  const size_t bytes = raw_values(list).size();
  if (bytes % tensor::size_bytes(field.component.dtype) == 0) return Status();
  return wrong(field, base::concat("a text of ", bytes, " bytes, which is not a whole number of values"));
}

Result<Tensor> make_texts(const Field &field, const List &list) {
  std::vector<std::string_view> texts;
  append_texts(list, texts);
  TUTTI_ASSIGN(const Shape shape, shape_of(field, static_cast<int64_t>(texts.size())));
  return tensor::make_bytes_tensor(shape, std::span<const std::string_view>(texts));
}

}  // namespace

std::string_view name(ListKind kind) {
  constexpr std::string_view names[] = {"nothing", "bytes_list", "float_list", "int64_list"};
  return names[static_cast<size_t>(kind)];
}

ListKind wanted_kind(DType dtype) {
  if (dtype == DType::bytes) return ListKind::bytes;
  return tensor::is_floating(dtype) ? ListKind::floats : ListKind::integers;
}

List list_of(std::string_view feature) {
  List list;
  for (pbf_reader reader(view_of(feature)); reader.next();) {
    const bool is_list = reader.tag() >= 1 && reader.tag() <= 3 && reader.wire_type() == kMessage;
    if (is_list) {
      list.kind = static_cast<ListKind>(reader.tag());
      list.message = text_of(reader.get_view());
    } else {
      reader.skip();
    }
  }
  return list;
}

int64_t count_values(const Field &field, const List &list) {
  if (is_raw(field, list)) {
    return static_cast<int64_t>(raw_values(list).size() / tensor::size_bytes(field.component.dtype));
  }
  int64_t count = 0;
  const auto one_more = [&](const auto &) { ++count; };
  if (list.kind == ListKind::bytes) for_each_text(list.message, one_more);
  if (list.kind == ListKind::floats) for_each_float(list.message, one_more);
  if (list.kind == ListKind::integers) for_each_integer(list.message, one_more);
  return count;
}

void append_texts(const List &list, std::vector<std::string_view> &texts) {
  for_each_text(list.message, [&](std::string_view text) { texts.push_back(text); });
}

Status wrong(const Field &field, std::string_view got) {
  return base::invalid_argument("feature '", field.component.name, "': expected ", field.component.dtype,
                                field.component.dims, ", got ", got);
}

Result<Shape> shape_of(const Field &field, int64_t count) {
  const int64_t inner = field.inner_elements();
  std::vector<int64_t> extents;
  for (const graph::Dim &dim : field.component.dims)
    extents.push_back(dim.is_constant() ? dim.constant() : inner > 0 ? count / inner : 0);
  TUTTI_ASSIGN(const Shape shape, Shape::make(extents));
  if (shape.elements() == count) return shape;
  return wrong(field, base::concat(count, " values"));
}

Status write_numbers(const Field &field, const List &list, char *target) {
  const DType dtype = field.component.dtype;
  const size_t size = tensor::size_bytes(dtype);
  if (list.kind == ListKind::bytes) {
    const std::string_view values = raw_values(list);
    if (!values.empty()) std::memcpy(target, values.data(), values.size());
    return Status();
  }
  if (list.kind == ListKind::integers) {
    Status status;
    for_each_integer(list.message, [&](int64_t value) {
      if (!write_integer(value, dtype, target) && status.ok())
        status = wrong(field, base::concat("the value ", value, ", which does not fit"));
      target += size;
    });
    return status;
  }
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    if constexpr (!std::is_integral_v<T>) {
      for_each_float(list.message, [&](float value) {
        const T converted = T(value);
        std::memcpy(target, &converted, sizeof(converted));
        target += sizeof(converted);
      });
    }
  });
  return Status();
}

Status check_kind(const Field &field, const List &list) {
  const ListKind wanted = wanted_kind(field.component.dtype);
  if (list.kind == wanted) return Status();
  if (is_raw(field, list)) return check_raw(field, list);
  return wrong(field,
               list.kind == ListKind::none ? "nothing, and it has no default" : base::concat("a ", name(list.kind)));
}

Result<Tensor> make_component(const Field &field, const List &list) {
  if (list.kind == ListKind::none && field.default_value) return field.default_value;
  if (list.kind == ListKind::none && field.is_variable()) {
    TUTTI_ASSIGN(const Shape shape, shape_of(field, 0));
    if (field.component.dtype == DType::bytes) return tensor::make_bytes_tensor(shape, {});
    return Tensor::allocate(field.component.dtype, shape);
  }
  TUTTI_TRY(check_kind(field, list));
  if (field.component.dtype == DType::bytes) return make_texts(field, list);
  TUTTI_ASSIGN(const Shape shape, shape_of(field, count_values(field, list)));
  TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(field.component.dtype, shape));
  TUTTI_TRY(write_numbers(field, list, tensor.mutable_data_as<char>()));
  return tensor;
}

std::vector<std::string_view> messages_in(std::string_view message) {
  std::vector<std::string_view> messages;
  for (pbf_reader reader(view_of(message)); reader.next(1, kMessage);)
    messages.push_back(text_of(reader.get_view()));
  return messages;
}

FieldsByName::FieldsByName(const std::vector<Field> &fields) {
  for (size_t i = 0; i < fields.size(); ++i)
    places_.emplace_back(fields[i].component.name, i);
  std::sort(places_.begin(), places_.end());
}

void FieldsByName::find(std::string_view map, std::span<std::string_view> found) const {
  for (pbf_reader entries(view_of(map)); entries.next(1, kMessage);) {
    std::string_view key, value("", 0);
    for (pbf_reader entry = entries.get_message(); entry.next();) {
      if (entry.tag_and_type() == protozero::tag_and_type(1, kMessage)) {
        key = text_of(entry.get_view());
      } else if (entry.tag_and_type() == protozero::tag_and_type(2, kMessage)) {
        value = text_of(entry.get_view());
      } else {
        entry.skip();
      }
    }
    const auto at = std::lower_bound(places_.begin(), places_.end(), key,
                                     [](const auto &place, std::string_view k) { return place.first < k; });
    if (at != places_.end() && at->first == key) found[at->second] = value;
  }
}

}  // namespace tutti::impl::data
