// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/record_features.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "tool/console/tensor_values.h"
#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

bool is_narrow(int32_t dtype) {
  switch (dtype) {
    case TUTTI_DTYPE_U8:
    case TUTTI_DTYPE_I8:
    case TUTTI_DTYPE_U16:
    case TUTTI_DTYPE_I16:
    case TUTTI_DTYPE_F16:
    case TUTTI_DTYPE_BF16:
      return true;
    default:
      return false;
  }
}

/// "[224, 224, 3]" with ? for what is not known; nothing for a scalar.
std::string dims_text(const json &dims) {
  std::string text;
  for (const json &dim : dims)
    text += (text.empty() ? "" : ", ") + (dim.is_number() ? dim.dump() : "?");
  return text.empty() ? "" : "[" + text + "]";
}

void check_dims(const std::string &name, const json &dims) {
  for (size_t axis = 1; axis < dims.size(); ++axis) {
    if (dims[axis].is_number()) continue;
    throw UsageError{"'" + name + "' has the shape " + dims_text(dims) +
                         ", but records support only an unknown first dimension; give it a shape by --map (resize, "
                         "reshape) or write .elements",
                     false};
  }
}

}  // namespace

std::vector<std::string> record_features(const Dataset &dataset) {
  std::vector<std::string> features;
  const json spec = json::parse(dataset.spec());
  for (const json &component : spec.at("components")) {
    const auto name = component.at("name").get<std::string>();
    auto dtype = component.at("dtype").get<std::string>();
    if (dtype == "f64") dtype = "f32";
    check_dims(name, component.at("dims"));
    features.push_back(name + ": " + dtype + dims_text(component.at("dims")));
  }
  return features;
}

Tensor record_value(const Tensor &tensor) {
  if (tensor.rank() == 0 || !is_narrow(tensor.dtype())) return tensor;
  return make_texts({}, {std::string_view(tensor.data<char>(), static_cast<size_t>(tensor.size_bytes()))});
}

}  // namespace tutti::tool
