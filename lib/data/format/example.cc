// SPDX-License-Identifier: Apache-2.0
#include "data/format/example.h"

#include <cstring>
#include <protozero/pbf_reader.hpp>
#include <utility>

namespace tutti::impl::data {

using base::Result;
using base::Status;
using protozero::pbf_reader;
using tensor::DType;
using tensor::Tensor;

namespace {

Status write_component(const Field &field, const List &list, std::byte *target) {
  if (list.kind == ListKind::none && field.default_value) {
    const auto size = static_cast<size_t>(field.default_value.size_bytes());
    if (size > 0) std::memcpy(target, field.default_value.data(), size);
    return Status();
  }
  TUTTI_TRY(check_kind(field, list));
  TUTTI_TRY(shape_of(field, count_values(field, list)));
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

}  // namespace tutti::impl::data
