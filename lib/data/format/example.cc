// SPDX-License-Identifier: Apache-2.0
#include "data/format/example.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using protozero::pbf_reader;
using protozero::pbf_writer;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

constexpr auto kMessage = protozero::pbf_wire_type::length_delimited;

enum class ListKind { none, bytes, floats, integers };

std::string_view name(ListKind kind) {
  constexpr std::string_view names[] = {"nothing", "bytes_list", "float_list", "int64_list"};
  return names[static_cast<size_t>(kind)];
}

ListKind wanted_kind(DType dtype) {
  if (dtype == DType::bytes) return ListKind::bytes;
  return tensor::is_floating(dtype) ? ListKind::floats : ListKind::integers;
}

std::string_view text_of(const protozero::data_view &view) { return {view.data(), view.size()}; }
protozero::data_view view_of(std::string_view text) { return {text.data(), text.size()}; }

// The list of a Feature: the last one, should there be several.
struct List {
  ListKind kind = ListKind::none;
  std::string_view message;
};

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

int64_t count_values(const List &list) {
  int64_t count = 0;
  const auto one_more = [&](const auto &) { ++count; };
  if (list.kind == ListKind::bytes) for_each_text(list.message, one_more);
  if (list.kind == ListKind::floats) for_each_float(list.message, one_more);
  if (list.kind == ListKind::integers) for_each_integer(list.message, one_more);
  return count;
}

Status wrong(const Field &field, std::string_view got) {
  return base::invalid_argument("feature '", field.component.name, "': expected ", field.component.dtype,
                                field.component.dims, ", got ", got);
}

// The shape that a field has with so many values.
Result<Shape> shape_of(const Field &field, int64_t count) {
  const int64_t inner = field.inner_elements();
  std::vector<int64_t> extents;
  for (const graph::Dim &dim : field.component.dims)
    extents.push_back(dim.is_constant() ? dim.constant() : inner > 0 ? count / inner : 0);
  TUTTI_ASSIGN(const Shape shape, Shape::make(extents));
  if (shape.elements() == count) return shape;
  return wrong(field, base::concat(count, " values"));
}

// The numbers of a list, as many as there is room for.
Status write_numbers(const Field &field, const List &list, char *target) {
  const DType dtype = field.component.dtype;
  const size_t size = tensor::size_bytes(dtype);
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

Result<Tensor> make_texts(const Field &field, const List &list) {
  std::vector<std::string_view> texts;
  for_each_text(list.message, [&](std::string_view text) { texts.push_back(text); });
  TUTTI_ASSIGN(const Shape shape, shape_of(field, static_cast<int64_t>(texts.size())));
  return tensor::make_bytes_tensor(shape, std::span<const std::string_view>(texts));
}

Status check_kind(const Field &field, const List &list) {
  const ListKind wanted = wanted_kind(field.component.dtype);
  if (list.kind == wanted) return Status();
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
  if (list.kind == ListKind::bytes) return make_texts(field, list);
  TUTTI_ASSIGN(const Shape shape, shape_of(field, count_values(list)));
  TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(field.component.dtype, shape));
  TUTTI_TRY(write_numbers(field, list, tensor.mutable_data_as<char>()));
  return tensor;
}

Status write_component(const Field &field, const List &list, std::byte *target) {
  if (list.kind == ListKind::none && field.default_value) {
    const auto size = static_cast<size_t>(field.default_value.size_bytes());
    if (size > 0) std::memcpy(target, field.default_value.data(), size);
    return Status();
  }
  TUTTI_TRY(check_kind(field, list));
  TUTTI_TRY(shape_of(field, count_values(list)));
  return write_numbers(field, list, reinterpret_cast<char *>(target));
}

// protozero throws what it cannot read.
template <typename Body>
Status guarded(Body &&body) {
  try {
    return body();
  } catch (const protozero::exception &error) {
    return base::data_loss("corrupt Example: ", error.what());
  }
}

}  // namespace

ExampleParser::ExampleParser(std::vector<Field> fields) : fields_(std::move(fields)), by_name_(fields_.size()) {
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [this](size_t a, size_t b) { return fields_[a].component.name < fields_[b].component.name; });
}

Result<ExampleParser> ExampleParser::create(const std::vector<std::string> &features) {
  ElementSpec spec;
  std::vector<Field> fields;
  for (const std::string &text : features) {
    TUTTI_ASSIGN(Field field, parse_field(text));
    spec.components.push_back(field.component);
    fields.push_back(std::move(field));
  }
  TUTTI_TRY(check(spec));
  return ExampleParser(std::move(fields));
}

Status ExampleParser::find(std::string_view example, std::span<std::string_view> found) const {
  for (pbf_reader reader(view_of(example)); reader.next(1, kMessage);) {
    for (pbf_reader features = reader.get_message(); features.next(1, kMessage);) {
      std::string_view key, value;
      for (pbf_reader entry = features.get_message(); entry.next();) {
        if (entry.tag_and_type() == protozero::tag_and_type(1, kMessage)) {
          key = text_of(entry.get_view());
        } else if (entry.tag_and_type() == protozero::tag_and_type(2, kMessage)) {
          value = text_of(entry.get_view());
        } else {
          entry.skip();
        }
      }
      const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), key, [this](size_t index, std::string_view k) {
        return fields_[index].component.name < k;
      });
      if (at != by_name_.end() && fields_[*at].component.name == key) found[*at] = value;
    }
  }
  return Status();
}

Status ExampleParser::parse(std::string_view example, std::span<Tensor> components) const {
  return guarded([&]() -> Status {
    std::vector<std::string_view> found(fields_.size());
    TUTTI_TRY(find(example, found));
    for (size_t i = 0; i < fields_.size(); ++i) {
      TUTTI_ASSIGN(components[i], make_component(fields_[i], list_of(found[i])));
    }
    return Status();
  });
}

Status ExampleParser::parse_row(std::string_view example, std::span<const RowTarget> targets, int64_t row) const {
  return guarded([&]() -> Status {
    std::vector<std::string_view> found(fields_.size());
    TUTTI_TRY(find(example, found));
    for (size_t i = 0; i < fields_.size(); ++i)
      TUTTI_TRY(write_component(fields_[i], list_of(found[i]), targets[i].from_row(row).data));
    return Status();
  });
}

namespace {

Status write_integers(const Tensor &tensor, pbf_writer &list) {
  std::vector<int64_t> values;
  Status status;
  tensor::visit_dtype(tensor.dtype(), [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      for (const T value : std::span(tensor.data_as<T>(), static_cast<size_t>(tensor.elements()))) {
        if (static_cast<uint64_t>(value) > static_cast<uint64_t>(INT64_MAX) && std::is_same_v<T, uint64_t>)
          status = base::out_of_range("the value ", value, " does not fit an int64 list");
        values.push_back(static_cast<int64_t>(value));
      }
    }
  });
  if (!values.empty()) list.add_packed_int64(1, values.begin(), values.end());
  return status;
}

void write_floats(const Tensor &tensor, pbf_writer &list) {
  std::vector<float> values;
  tensor::visit_dtype(tensor.dtype(), [&]<typename T>(T) {
    for (const T value : std::span(tensor.data_as<T>(), static_cast<size_t>(tensor.elements())))
      values.push_back(static_cast<float>(value));
  });
  if (!values.empty()) list.add_packed_float(1, values.begin(), values.end());
}

}  // namespace

Result<std::string> encode_example(const std::map<std::string, Tensor> &features) {
  std::string lists;
  for (const auto &[name, tensor] : features) {
    if (tensor.empty()) return base::invalid_argument("feature '", name, "' has no tensor");
    std::string list;
    pbf_writer list_writer(list);
    const ListKind kind = wanted_kind(tensor.dtype());
    Status status;
    if (kind == ListKind::integers) status = write_integers(tensor, list_writer);
    if (kind == ListKind::floats) write_floats(tensor, list_writer);
    for (int64_t i = 0; kind == ListKind::bytes && i < tensor.elements(); ++i)
      list_writer.add_bytes(1, view_of(tensor::bytes_at(tensor, i)));
    if (!status.ok()) return status.wrap(base::concat("feature '", name, "' cannot be written"));
    std::string feature, entry;
    pbf_writer(feature).add_message(static_cast<protozero::pbf_tag_type>(kind), list);
    pbf_writer entry_writer(entry);
    entry_writer.add_string(1, name);
    entry_writer.add_message(2, feature);
    pbf_writer(lists).add_message(1, entry);
  }
  std::string example;
  pbf_writer(example).add_message(1, lists);
  return example;
}

}  // namespace tutti::impl::data
