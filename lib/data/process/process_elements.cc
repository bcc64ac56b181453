// SPDX-License-Identifier: Apache-2.0
#include "data/process/process_elements.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Code;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::JsonReader;
using base::Result;
using base::Status;
using tensor::Buffer;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

constexpr int64_t kUnknownExtent = -1;
// Memory that is taken for data of which nothing has come yet.
constexpr int64_t kMostUnprovenBytes = int64_t{64} << 20;

Json json_of(const ElementSpec &spec) {
  JsonArray components;
  for (const ComponentSpec &component : spec.components) {
    JsonArray extents;
    for (const graph::Dim &dim : component.dims)
      extents.emplace_back(dim.is_constant() ? dim.constant() : kUnknownExtent);
    components.emplace_back(JsonObject{{"name", component.name},
                                       {"role", name(component.role)},
                                       {"dtype", tensor::name(component.dtype)},
                                       {"shape", std::move(extents)}});
  }
  return components;
}

Result<Role> role_from_text(std::string_view text) {
  for (const Role role : {Role::feature, Role::label, Role::weight}) {
    if (name(role) == text) return role;
  }
  return base::invalid_argument("unknown role '", text, "'");
}

Result<ComponentSpec> component_in(const JsonReader &entry) {
  ComponentSpec component;
  TUTTI_ASSIGN(component.name, entry.get_string("name"));
  TUTTI_ASSIGN(const std::string role, entry.get_string("role"));
  TUTTI_ASSIGN(component.role, role_from_text(role));
  TUTTI_ASSIGN(const std::string dtype, entry.get_string("dtype"));
  TUTTI_ASSIGN(component.dtype, tensor::parse_dtype(dtype));
  TUTTI_ASSIGN(const std::vector<int64_t> extents, entry.get_integers("shape"));
  for (const int64_t extent : extents)
    component.dims.push_back(extent == kUnknownExtent ? unknown_dim() : graph::Dim(extent));
  return component;
}

// The data of one tensor: of bytes the lengths, 64 bits each, and then the texts.
int64_t data_bytes(const Tensor &tensor) {
  return tensor.size_bytes() + (tensor.dtype() == DType::bytes ? tensor::bytes_total(tensor) : 0);
}

void append_entry(std::string &text, const ComponentSpec &component, const Tensor &tensor) {
  text += text.back() == '[' ? "{\"name\":" : ",{\"name\":";
  base::append_json_string(text, component.name);
  text += base::concat(",\"dtype\":\"", tensor.dtype(), "\",\"shape\":", tensor.shape(),
                       ",\"bytes\":", data_bytes(tensor), "}");
}

iovec part(const void *data, int64_t size) { return {const_cast<void *>(data), static_cast<size_t>(size)}; }

// The lengths of texts, where they stay until they are sent.
void add_texts(const Tensor &tensor, std::vector<int64_t> &lengths, std::vector<iovec> &parts) {
  const auto *const offsets = tensor.data_as<int64_t>();
  for (int64_t i = 0; i < tensor.elements(); ++i)
    lengths.push_back(offsets[i + 1] - offsets[i]);
  parts.push_back(part(lengths.data(), tensor.size_bytes()));
  const auto *const buffer = static_cast<const char *>(tensor.buffer()->data());
  parts.push_back(part(buffer + offsets[0], offsets[tensor.elements()] - offsets[0]));
}

// What came in place of something in a message.
Status wrong(const ComponentSpec &component, std::string_view what, const Json *got) {
  return base::data_loss("component '", component.name, "': expected ", what, ", got ",
                         got == nullptr ? "nothing" : base::quoted(got->dump(), 400));
}

Result<Shape> shape_in(const Json &entry, const ComponentSpec &component) {
  const Json *const listed = entry.find("shape");
  const auto fail = [&] {
    return wrong(component, base::concat("a shape that fits ", graph::to_string(component.dims)), listed);
  };
  if (listed == nullptr || !listed->is_array() || listed->size() != component.dims.size()) return fail();
  std::vector<int64_t> extents;
  for (size_t axis = 0; axis < listed->size(); ++axis) {
    const Json &extent = listed->array()[axis];
    const graph::Dim &dim = component.dims[axis];
    if (!extent.is_integer() || (dim.is_constant() && dim.constant() != extent.integer())) return fail();
    extents.push_back(extent.integer());
  }
  Result<Shape> shape = Shape::make(extents);
  return shape.ok() ? shape : fail();
}

bool is_text(const Json *value, std::string_view text) {
  return value != nullptr && value->is_string() && value->string() == text;
}

// What a message says of a tensor.
struct Announced {
  Shape shape;
  int64_t bytes = 0;
};

Result<Announced> announced_in(const Json &entry, const ComponentSpec &component) {
  const Json *const name = entry.find("name"), *const dtype = entry.find("dtype"), *const bytes = entry.find("bytes");
  if (!is_text(name, component.name)) return wrong(component, "this name", name);
  if (!is_text(dtype, tensor::name(component.dtype)))
    return wrong(component, base::concat("dtype ", component.dtype), dtype);
  Announced announced;
  TUTTI_ASSIGN(announced.shape, shape_in(entry, component));
  const bool is_texts = component.dtype == DType::bytes;
  const int64_t limit = kMostTensorBytes / static_cast<int64_t>(tensor::size_bytes(component.dtype));
  const int64_t elements = announced.shape.elements();
  if (elements > limit) return wrong(component, base::concat("at most ", limit, " elements"), entry.find("shape"));
  const int64_t least = elements * static_cast<int64_t>(tensor::size_bytes(component.dtype));
  const int64_t most = is_texts ? kMostTensorBytes : least;
  if (bytes == nullptr || !bytes->is_integer() || bytes->integer() < least || bytes->integer() > most) {
    const std::string wanted = is_texts ? base::concat("from ", least, " to ", most) : base::concat(least);
    return wrong(component, base::concat(wanted, " bytes for ", component.dtype, announced.shape), bytes);
  }
  announced.bytes = bytes->integer();
  return announced;
}

// Reads data into memory of its own, behind a margin. What is large must have come in part before memory is taken for
// all of it.
Result<base::Ref<Buffer>> receive_data(ProcessChannel &channel, int64_t bytes, int64_t margin) {
  const int64_t first = std::min(bytes, kMostUnprovenBytes);
  TUTTI_ASSIGN(base::Ref<Buffer> buffer, Buffer::allocate(margin + first));
  TUTTI_TRY(channel.receive(static_cast<std::byte *>(buffer->data()) + margin, static_cast<size_t>(first)));
  if (first == bytes) return buffer;
  TUTTI_ASSIGN(base::Ref<Buffer> whole, Buffer::allocate(margin + bytes));
  std::memcpy(whole->data(), buffer->data(), static_cast<size_t>(margin + first));
  auto *const rest = static_cast<std::byte *>(whole->data()) + margin + first;
  TUTTI_TRY(channel.receive(rest, static_cast<size_t>(bytes - first)));
  return whole;
}

Result<Tensor> receive_texts(ProcessChannel &channel, const Announced &announced, const ComponentSpec &component) {
  const int64_t count = announced.shape.elements(), margin = sizeof(int64_t);
  TUTTI_ASSIGN(const base::Ref<Buffer> buffer, receive_data(channel, announced.bytes, margin));
  // Behind a place for the first offset come the lengths, each where the offset of the end of its text belongs.
  auto *const offsets = static_cast<int64_t *>(buffer->data());
  const int64_t total = announced.bytes - count * margin;
  int64_t left = total;
  offsets[0] = (count + 1) * margin;
  for (int64_t i = 1; i <= count && left >= 0; ++i) {
    const int64_t length = offsets[i];
    left = length < 0 || length > left ? -1 : left - length;
    if (left >= 0) offsets[i] = offsets[i - 1] + length;
  }
  if (left == 0) return Tensor::from_buffer(DType::bytes, announced.shape, buffer);
  return base::data_loss("component '", component.name, "': expected the lengths of ", count, " texts of ", total,
                         " bytes together, got others");
}

Result<Tensor> receive_numbers(ProcessChannel &channel, const Announced &announced, const ComponentSpec &component) {
  TUTTI_ASSIGN(const base::Ref<Buffer> buffer, receive_data(channel, announced.bytes, 0));
  TUTTI_ASSIGN(Tensor tensor, Tensor::from_buffer(component.dtype, announced.shape, buffer));
  if (component.dtype != DType::boolean) return tensor;
  const auto *const values = tensor.data_as<uint8_t>();
  const auto *const found = std::find_if(values, values + tensor.elements(), [](uint8_t value) { return value > 1; });
  if (found == values + tensor.elements()) return tensor;
  return base::data_loss("component '", component.name, "': expected truth values 0 and 1, got ", *found);
}

}  // namespace

std::string greeting(const ElementSpec &inputs, const ElementSpec &outputs, int64_t seed) {
  const Json message = JsonObject{
      {"protocol", kProcessProtocol}, {"seed", seed}, {"inputs", json_of(inputs)}, {"outputs", json_of(outputs)}};
  return message.dump();
}

Result<ElementSpec> spec_in(const Json &greeting, std::string_view key) {
  TUTTI_ASSIGN(const JsonReader list, JsonReader(greeting, "greeting").get(key));
  TUTTI_ASSIGN(const std::vector<JsonReader> entries, list.elements());
  ElementSpec spec;
  for (const JsonReader &entry : entries) {
    TUTTI_ASSIGN(ComponentSpec component, component_in(entry));
    spec.components.push_back(std::move(component));
  }
  TUTTI_TRY(check(spec));
  return spec;
}

Status send_element(ProcessChannel &channel, const ElementSpec &spec, const Element &element) {
  std::string header =
      base::concat("{\"element\":", element.lineage.index, ",\"epoch\":", element.lineage.epoch, ",\"tensors\":[");
  std::vector<iovec> parts;
  std::vector<std::vector<int64_t>> lengths(element.components.size());
  for (size_t i = 0; i < element.components.size(); ++i) {
    const Tensor &tensor = element.components[i];
    append_entry(header, spec.components[i], tensor);
    if (tensor.dtype() == DType::bytes) {
      add_texts(tensor, lengths[i], parts);
    } else {
      parts.push_back(part(tensor.data(), tensor.size_bytes()));
    }
  }
  header += "]}";
  return channel.send(header, parts);
}

Status send_error(ProcessChannel &channel, const Status &error, const Lineage *lineage) {
  JsonObject message;
  if (lineage != nullptr) message.emplace_back("element", lineage->index);
  // The code goes by itself.
  message.emplace_back("error", error.to_string().substr(base::name(error.code()).size() + 2));
  message.emplace_back("code", static_cast<int64_t>(error.code()));
  return channel.send(Json(std::move(message)).dump());
}

Status error_in(const Json &header) {
  const Json *const text = header.find("error");
  if (text == nullptr) return Status();
  const Json *const code = header.find("code");
  const bool has_code = code != nullptr && code->is_integer() && code->integer() > 0 && code->integer() <= INT32_MAX;
  return Status(has_code ? base::code_from_number(static_cast<int32_t>(code->integer())) : Code::unknown,
                text->is_string() ? text->string() : text->dump());
}

Result<Lineage> lineage_in(const Json &header) {
  const JsonReader reader(header, "header");
  Lineage lineage;
  TUTTI_ASSIGN(lineage.index, reader.get_integer("element"));
  TUTTI_ASSIGN(lineage.epoch, reader.get_integer("epoch"));
  return lineage;
}

Status receive_tensors(ProcessChannel &channel, const Json &header, const ElementSpec &spec, Element &element) {
  const Json *const list = header.find("tensors");
  if (list == nullptr || !list->is_array() || list->size() != spec.components.size()) {
    return base::data_loss("expected the ", spec.components.size(), " tensors ", spec.to_string(), ", got ",
                           base::quoted(list == nullptr ? header.dump() : list->dump(), 400));
  }
  // Everything is looked at before anything is read.
  std::vector<Announced> all;
  for (size_t i = 0; i < spec.components.size(); ++i) {
    TUTTI_ASSIGN(Announced announced, announced_in(list->array()[i], spec.components[i]));
    all.push_back(announced);
  }
  element.components.clear();
  for (size_t i = 0; i < all.size(); ++i) {
    const ComponentSpec &component = spec.components[i];
    TUTTI_ASSIGN(Tensor tensor, component.dtype == DType::bytes ? receive_texts(channel, all[i], component)
                                                                : receive_numbers(channel, all[i], component));
    element.components.push_back(std::move(tensor));
  }
  return Status();
}

}  // namespace tutti::impl::data
