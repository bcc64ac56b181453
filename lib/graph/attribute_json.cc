// SPDX-License-Identifier: Apache-2.0
//
// Attributes, shapes and constants as JSON: {"axis": {"i64": 1}, "dims": {"dims": ["batch", 10]}}.
#include "graph/attribute_json.h"

#include "base/text.h"
#include "graph/base64.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::graph {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::JsonReader;

Json value_to_json(const tensor::Tensor &value) {
  const auto extents = value.shape().extents();
  JsonObject object{{"dtype", tensor::name(value.dtype())},
                    {"shape", std::vector<int64_t>(extents.begin(), extents.end())}};
  if (value.dtype() == tensor::DType::bytes) {
    JsonArray texts;
    for (int64_t i = 0; i < value.elements(); ++i)
      texts.emplace_back(base64_encode(tensor::bytes_at(value, i)));
    object.emplace_back("texts", std::move(texts));
  } else {
    const std::string_view bytes(static_cast<const char *>(value.data()), static_cast<size_t>(value.size_bytes()));
    object.emplace_back("data", base64_encode(bytes));
  }
  return object;
}

Json value_to_json(const Attribute &attribute) {
  return std::visit(
      [](const auto &value) -> Json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Dims>) {
          return dims_to_json(value);
        } else if constexpr (std::is_same_v<T, tensor::Tensor>) {
          return value_to_json(value);
        } else if constexpr (std::is_same_v<T, tensor::DType>) {
          return tensor::name(value);
        } else {
          return value;
        }
      },
      attribute);
}

base::Result<Attribute> tensor_from_json(const JsonReader &reader) {
  TUTTI_ASSIGN(const std::string dtype_name, reader.get_string("dtype"));
  TUTTI_ASSIGN(const tensor::DType dtype, tensor::parse_dtype(dtype_name));
  TUTTI_ASSIGN(const std::vector<int64_t> extents, reader.get_integers("shape"));
  TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(extents));
  if (dtype == tensor::DType::bytes) {
    TUTTI_ASSIGN(std::vector<std::string> texts, reader.get_strings("texts"));
    for (std::string &text : texts) {
      TUTTI_ASSIGN(text, base64_decode(text));
    }
    TUTTI_ASSIGN(tensor::Tensor value, tensor::make_bytes_tensor(shape, texts));
    return Attribute(std::move(value));
  }
  TUTTI_ASSIGN(const std::string text, reader.get_string("data"));
  TUTTI_ASSIGN(const std::string bytes, base64_decode(text));
  TUTTI_ASSIGN(tensor::Tensor value,
               tensor::Tensor::copy_of(dtype, shape, bytes.data(), static_cast<int64_t>(bytes.size())));
  return Attribute(std::move(value));
}

template <typename T>
base::Result<Attribute> wrap(base::Result<T> result) {
  TUTTI_TRY(result);
  return Attribute(std::move(result).value());
}

base::Result<Attribute> dtype_from_json(const JsonReader &reader) {
  TUTTI_ASSIGN(const std::string text, reader.as_string());
  return wrap(tensor::parse_dtype(text));
}

base::Result<Attribute> attribute_from_json(std::string_view kind, const JsonReader &reader) {
  if (kind == "bool") return wrap(reader.as_boolean());
  if (kind == "i64") return wrap(reader.as_integer());
  if (kind == "f64") return wrap(reader.as_double());
  if (kind == "string") return wrap(reader.as_string());
  if (kind == "ints") return wrap(reader.as_integers());
  if (kind == "doubles") return wrap(reader.as_doubles());
  if (kind == "strings") return wrap(reader.as_strings());
  if (kind == "dims") return wrap(dims_from_json(reader));
  if (kind == "tensor") return tensor_from_json(reader);
  if (kind == "dtype") return dtype_from_json(reader);
  return base::invalid_argument(reader.path(), ": unknown kind of attribute ", base::quoted(kind));
}

}  // namespace

Json dims_to_json(const Dims &dims) {
  JsonArray array;
  for (const Dim &dim : dims)
    array.push_back(dim.is_constant() ? Json(dim.constant()) : Json(dim.to_code()));
  return array;
}

base::Result<Dims> dims_from_json(const JsonReader &reader) {
  TUTTI_ASSIGN(const std::vector<JsonReader> elements, reader.elements());
  Dims dims;
  for (const JsonReader &element : elements) {
    if (element.json().is_integer()) {
      dims.emplace_back(element.json().integer());
      continue;
    }
    TUTTI_ASSIGN(const std::string text, element.as_string());
    base::Result<Dim> dim = Dim::parse(text);
    if (!dim.ok()) return dim.status().wrap(element.path());
    dims.push_back(std::move(dim).value());
  }
  return dims;
}

Json to_json(const Attributes &attributes) {
  JsonObject object;
  for (const auto &[name, attribute] : attributes) {
    object.emplace_back(name, JsonObject{{std::string(kind_of(attribute)), value_to_json(attribute)}});
  }
  return object;
}

base::Result<Attributes> attributes_from_reader(const JsonReader &reader) {
  Attributes attributes;
  TUTTI_ASSIGN(const auto members, reader.members());
  for (const auto &[name, value] : members) {
    TUTTI_ASSIGN(const auto kinds, value.members());
    if (kinds.size() != 1) return value.wrong("an object of one key, the kind of the attribute");
    base::Result<Attribute> attribute = attribute_from_json(kinds[0].first, kinds[0].second);
    if (!attribute.ok()) return attribute.status().wrap(value.path());
    attributes.emplace(name, std::move(attribute).value());
  }
  return attributes;
}

base::Result<Attributes> attributes_from_json(const Json &json) {
  return attributes_from_reader(JsonReader(json, "attributes"));
}

}  // namespace tutti::impl::graph
