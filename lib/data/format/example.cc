// SPDX-License-Identifier: Apache-2.0
#include "data/format/example.h"

#include <cstring>
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
using tensor::Tensor;

namespace {

constexpr auto kMessage = protozero::pbf_wire_type::length_delimited;

protozero::data_view view_of(std::string_view text) { return {text.data(), text.size()}; }

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

void ExampleParser::find(std::string_view example, std::span<std::string_view> found) const {
  for (pbf_reader reader(view_of(example)); reader.next(1, kMessage);) {
    const protozero::data_view features = reader.get_view();
    by_name_.find({features.data(), features.size()}, found);
  }
}

Status ExampleParser::parse(std::string_view example, std::span<Tensor> components) const {
  return guarded([&]() -> Status {
    std::vector<std::string_view> found(fields_.size());
    find(example, found);
    for (size_t i = 0; i < fields_.size(); ++i) {
      TUTTI_ASSIGN(components[i], make_component(fields_[i], list_of(found[i])));
    }
    return Status();
  });
}

Status ExampleParser::parse_row(std::string_view example, std::span<const RowTarget> targets, int64_t row) const {
  return guarded([&]() -> Status {
    std::vector<std::string_view> found(fields_.size());
    find(example, found);
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
