// SPDX-License-Identifier: Apache-2.0
#include "data/format/sequence_example.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <utility>

#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using protozero::pbf_reader;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

// Steps are filled up to the longest: more than so many bytes for each byte of the example is refused.
constexpr int64_t kMostBytesPerByte = 1000;
constexpr int64_t kBytesOfAnyExample = int64_t{16} << 20;

ComponentSpec with_steps(ComponentSpec component) {
  component.dims.insert(component.dims.begin(), unknown_dim());
  return component;
}

ComponentSpec lengths_of(const Field &field) {
  return {field.component.name + "_lengths", Role::feature, DType::i64, {unknown_dim()}};
}

// One feature list, taken apart.
struct Steps {
  std::vector<List> lists;
  std::vector<int64_t> rows;  // of each step, along a first dimension that varies; else 1
  int64_t longest = 0;
};

Status in_step(const Field &field, size_t step, const Status &status) {
  if (status.ok()) return status;
  return status.wrap(base::concat("step ", step, " of feature list '", field.component.name, "' cannot be read"));
}

// How many rows a step has.
Result<int64_t> rows_of(const Field &field, const List &list) {
  if (list.kind == ListKind::none && (field.default_value || field.is_variable())) return field.is_variable() ? 0 : 1;
  TUTTI_TRY(check_kind(field, list));
  TUTTI_ASSIGN(const Shape shape, shape_of(field, count_values(field, list)));
  return field.is_variable() ? shape.rows() : 1;
}

Result<Steps> take_apart(const Field &field, std::string_view feature_list) {
  Steps steps;
  if (feature_list.data() == nullptr && !field.default_value && !field.is_variable()) {
    return wrong(field, "no feature list of this name, and there is no default");
  }
  for (const std::string_view feature : messages_in(feature_list)) {
    steps.lists.push_back(list_of(feature));
    Result<int64_t> rows = rows_of(field, steps.lists.back());
    if (!rows.ok()) return in_step(field, steps.lists.size() - 1, rows.status());
    steps.rows.push_back(*rows);
    steps.longest = std::max(steps.longest, *rows);
  }
  return steps;
}

// The shape of the component. RESOURCE_EXHAUSTED when it is out of proportion to the example.
Result<Shape> shape_of_steps(const Field &field, const Steps &steps, size_t example_bytes) {
  std::vector<int64_t> extents{static_cast<int64_t>(steps.lists.size())};
  for (const graph::Dim &dim : field.component.dims)
    extents.push_back(dim.is_constant() ? dim.constant() : steps.longest);
  TUTTI_ASSIGN(const Shape shape, Shape::make(extents));
  const int64_t most = kBytesOfAnyExample + kMostBytesPerByte * static_cast<int64_t>(example_bytes);
  if (shape.elements() <= most / static_cast<int64_t>(tensor::size_bytes(field.component.dtype))) return shape;
  return base::resource_exhausted("feature list '", field.component.name, "': ", field.component.dtype, shape,
                                  " is too large for an example of ", example_bytes, " bytes");
}

Result<Tensor> make_step_texts(const Field &field, const Steps &steps, const Shape &shape, int64_t stride) {
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < steps.lists.size(); ++i) {
    const bool is_default = steps.lists[i].kind == ListKind::none && field.default_value;
    for (int64_t k = 0; is_default && k < stride; ++k)
      texts.push_back(tensor::bytes_at(field.default_value, k));
    append_texts(steps.lists[i], texts);
    texts.resize(static_cast<size_t>(stride) * (i + 1));
  }
  return tensor::make_bytes_tensor(shape, std::span<const std::string_view>(texts));
}

Result<Tensor> make_numbers(const Field &field, const Steps &steps, const Shape &shape, int64_t stride) {
  TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(field.component.dtype, shape));
  const size_t size = tensor::size_bytes(field.component.dtype);
  const size_t step_bytes = static_cast<size_t>(stride) * size;
  const size_t row_bytes = static_cast<size_t>(field.inner_elements()) * size;
  char *target = tensor.mutable_data_as<char>();
  for (size_t i = 0; i < steps.lists.size() && step_bytes > 0; ++i, target += step_bytes) {
    if (steps.lists[i].kind == ListKind::none && field.default_value) {
      std::memcpy(target, field.default_value.data(), step_bytes);
      continue;
    }
    TUTTI_TRY(in_step(field, i, write_numbers(field, steps.lists[i], target)));
    const size_t filled = static_cast<size_t>(steps.rows[i]) * row_bytes;
    std::memset(target + filled, 0, step_bytes - filled);
  }
  return tensor;
}

Result<Tensor> make_sequence(const Field &field, const Steps &steps, size_t example_bytes) {
  TUTTI_ASSIGN(const Shape shape, shape_of_steps(field, steps, example_bytes));
  const int64_t stride = field.inner_elements() * (field.is_variable() ? steps.longest : 1);
  const bool has_texts = field.component.dtype == DType::bytes;
  return has_texts ? make_step_texts(field, steps, shape, stride) : make_numbers(field, steps, shape, stride);
}

Result<std::vector<Field>> parse_fields(const std::vector<std::string> &texts) {
  std::vector<Field> fields;
  for (const std::string &text : texts) {
    TUTTI_ASSIGN(Field field, parse_field(text));
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace

SequenceExampleParser::SequenceExampleParser(std::vector<Field> context, std::vector<Field> sequences)
    : context_(std::move(context)),
      sequences_(std::move(sequences)),
      context_by_name_(context_),
      sequences_by_name_(sequences_) {
  for (const Field &field : context_)
    components_.push_back(field.component);
  for (const Field &field : sequences_) {
    components_.push_back(with_steps(field.component));
    if (field.is_variable()) components_.push_back(lengths_of(field));
  }
}

Result<SequenceExampleParser> SequenceExampleParser::create(const std::vector<std::string> &context,
                                                            const std::vector<std::string> &sequences) {
  TUTTI_ASSIGN(std::vector<Field> of_context, parse_fields(context));
  TUTTI_ASSIGN(std::vector<Field> of_steps, parse_fields(sequences));
  SequenceExampleParser parser(std::move(of_context), std::move(of_steps));
  ElementSpec spec;
  spec.components = parser.components_;
  TUTTI_TRY(check(spec));
  return parser;
}

Status SequenceExampleParser::parse(std::string_view example, std::span<Tensor> components) const try {
  std::vector<std::string_view> context(context_.size()), lists(sequences_.size());
  for (pbf_reader reader(example.data(), example.size()); reader.next();) {
    const bool is_message = reader.wire_type() == protozero::pbf_wire_type::length_delimited && reader.tag() <= 2;
    if (!is_message) {
      reader.skip();
      continue;
    }
    const bool is_context = reader.tag() == 1;
    const protozero::data_view map = reader.get_view();
    (is_context ? context_by_name_ : sequences_by_name_).find({map.data(), map.size()}, is_context ? context : lists);
  }
  size_t at = 0;
  for (size_t i = 0; i < context_.size(); ++i) {
    TUTTI_ASSIGN(components[at++], make_component(context_[i], list_of(context[i])));
  }
  for (size_t i = 0; i < sequences_.size(); ++i) {
    TUTTI_ASSIGN(const Steps steps, take_apart(sequences_[i], lists[i]));
    TUTTI_ASSIGN(components[at++], make_sequence(sequences_[i], steps, example.size()));
    if (!sequences_[i].is_variable()) continue;
    const auto count = static_cast<int64_t>(steps.rows.size());
    TUTTI_ASSIGN(components[at++], Tensor::from_values<int64_t>({count}, std::span<const int64_t>(steps.rows)));
  }
  return Status();
} catch (const protozero::exception &error) {
  return base::data_loss("corrupt SequenceExample: ", error.what());
}

}  // namespace tutti::impl::data
