// SPDX-License-Identifier: Apache-2.0
#include "data/format/field.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/name_suggestions.h"
#include "data/element/name_index.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

Status bad_field(std::string_view text, std::string_view what) {
  return base::invalid_argument("field ", base::quoted(text), ": ", what,
                                "; expected NAME: TYPE[DIMENSIONS] = DEFAULT, as in \"box: f32[4] = 0\"");
}

Result<graph::Dims> parse_dims(std::string_view list, std::string_view text) {
  graph::Dims dims;
  if (base::trim(list).empty()) return dims;
  for (const std::string &part : base::split(list, ',')) {
    const std::string_view dim = base::trim(part);
    const std::optional<int64_t> extent = base::parse_integer(dim);
    if (extent && *extent >= 0) {
      dims.push_back(graph::Dim(*extent));
    } else if ((dim == "?" || dim == kUnknownSymbol) && dims.empty()) {
      dims.push_back(unknown_dim());
    } else {
      return bad_field(text, base::concat("bad dimension ", base::quoted(dim)));
    }
  }
  return dims;
}

// "TYPE[DIMENSIONS]".
Status parse_type(std::string_view type, std::string_view text, ComponentSpec &component) {
  if (type.ends_with(']')) {
    const size_t open = type.find('[');
    if (open == std::string_view::npos) return bad_field(text, "']' without '['");
    TUTTI_ASSIGN(component.dims, parse_dims(type.substr(open + 1, type.size() - open - 2), text));
    type = base::trim(type.substr(0, open));
  }
  const Result<DType> dtype = tensor::parse_dtype(type);
  if (!dtype.ok()) return bad_field(text, dtype.status().message());
  component.dtype = *dtype;
  return Status();
}

// It is made at once, of a size that a text alone says.
constexpr int64_t kMostDefaultElements = int64_t{1} << 22;

// The default's text in every element of the shape.
Result<Tensor> fill_default(const ComponentSpec &component, const std::string &value, std::string_view text) {
  const std::optional<std::vector<int64_t>> extents = graph::constant_shape(component.dims);
  if (!extents) return Tensor();
  TUTTI_ASSIGN(const Shape shape, Shape::make(*extents));
  if (shape.elements() > kMostDefaultElements) {
    return bad_field(text, base::concat("a default is for at most ", kMostDefaultElements, " elements"));
  }
  if (component.dtype == DType::bytes) {
    return tensor::make_bytes_tensor(shape, std::vector<std::string>(static_cast<size_t>(shape.elements()), value));
  }
  TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(component.dtype, shape));
  const size_t size = tensor::size_bytes(component.dtype);
  char *const data = tensor.mutable_data_as<char>();
  for (int64_t i = 0; i < shape.elements(); ++i) {
    if (!write_number(value, component.dtype, data + static_cast<size_t>(i) * size)) {
      return bad_field(text, base::concat("the default is not a valid ", tensor::name(component.dtype)));
    }
  }
  return tensor;
}

template <typename T>
bool parse_into(std::string_view text, T *target) {
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *target);
  return error == std::errc() && end == text.data() + text.size();
}

template <typename T>
bool store(T value, void *target) {
  std::memcpy(target, &value, sizeof(value));
  return true;
}

template <typename T>
bool write_as(std::string_view text, void *target) {
  if constexpr (std::is_same_v<T, bool>) {
    if (text == "1" || text == "true" || text == "True" || text == "TRUE") return store(true, target);
    return (text == "0" || text == "false" || text == "False" || text == "FALSE") && store(false, target);
  } else if constexpr (std::is_arithmetic_v<T>) {
    T value;
    return parse_into(text, &value) && store(value, target);
  } else {
    float value;  // half precision
    return parse_into(text, &value) && store(T(value), target);
  }
}

template <typename T>
bool write_integer_as(int64_t value, void *target) {
  if constexpr (std::is_same_v<T, bool>) {
    return (value == 0 || value == 1) && store(value == 1, target);
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_unsigned_v<T>) {
      if (value < 0 || static_cast<uint64_t>(value) > std::numeric_limits<T>::max()) return false;
    } else {
      if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) return false;
    }
    return store(static_cast<T>(value), target);
  } else {
    return false;
  }
}

}  // namespace

bool Field::is_variable() const { return !component.dims.empty() && !component.dims[0].is_constant(); }

int64_t Field::inner_elements() const {
  int64_t elements = 1;
  for (const graph::Dim &dim : component.dims) {
    if (dim.is_constant()) elements *= dim.constant();
  }
  return elements;
}

Result<Field> parse_field(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return bad_field(text, "missing ':'");
  Field field;
  field.component.name = base::trim(text.substr(0, colon));
  std::string_view type = text.substr(colon + 1);
  if (const size_t equals = type.find('='); equals != std::string_view::npos) {
    field.default_text = base::trim(type.substr(equals + 1));
    type = type.substr(0, equals);
  }
  TUTTI_TRY(parse_type(base::trim(type), text, field.component));
  if (Status status = check(ElementSpec{{field.component}}); !status.ok()) return bad_field(text, status.message());
  const std::optional<std::vector<int64_t>> extents = graph::constant_shape(field.component.dims);
  if (extents && !Shape::make(*extents).ok()) return bad_field(text, "the shape is too large");
  if (field.default_text) {
    if (field.is_variable() && !field.default_text->empty())
      return bad_field(text, "a field of any length cannot have a default other than the empty one");
    TUTTI_ASSIGN(field.default_value, fill_default(field.component, *field.default_text, text));
  }
  return field;
}

Status set_roles(ElementSpec &spec, const std::vector<std::string> &labels, const std::vector<std::string> &weights) {
  if (labels.empty() && weights.empty()) return Status();
  const NameIndex index(spec.components,
                        [](const ComponentSpec &component) -> std::string_view { return component.name; });
  const auto set = [&](const std::vector<std::string> &names, Role role) -> Status {
    for (const std::string &wanted : names) {
      const NameIndex::Place *const found = index.find(wanted);
      if (found == nullptr) {
        std::vector<std::string> known;
        for (const ComponentSpec &component : spec.components)
          known.push_back(component.name);
        return base::invalid_argument("there is no component '", wanted, "' to be a ", name(role),
                                      base::but_there_are(wanted, known));
      }
      spec.components[found->first].role = role;
    }
    return Status();
  };
  TUTTI_TRY(set(labels, Role::label));
  return set(weights, Role::weight);
}

bool write_number(std::string_view text, DType dtype, void *target) {
  text = base::trim(text);
  bool written = false;
  tensor::visit_dtype(dtype, [&]<typename T>(T) { written = write_as<T>(text, target); });
  return written;
}

bool write_integer(int64_t value, DType dtype, void *target) {
  bool written = false;
  tensor::visit_dtype(dtype, [&]<typename T>(T) { written = write_integer_as<T>(value, target); });
  return written;
}

}  // namespace tutti::impl::data
