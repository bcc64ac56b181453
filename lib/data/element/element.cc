// SPDX-License-Identifier: Apache-2.0
#include "data/element/element.h"

#include <algorithm>

#include "base/name_suggestions.h"
#include "data/element/name_index.h"
#include "tensor/shape.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Tensor;

std::string_view name(Role role) {
  switch (role) {
    case Role::feature:
      return "feature";
    case Role::label:
      return "label";
    case Role::weight:
      return "weight";
  }
  return "invalid";
}

graph::Dim unknown_dim() { return graph::Dim::symbol(kUnknownSymbol); }

std::string ComponentSpec::to_string() const {
  return base::concat(name, ": ", dtype, dims, role == Role::feature ? "" : " ",
                      role == Role::feature ? "" : data::name(role));
}

int32_t ElementSpec::find(std::string_view name) const {
  for (size_t i = 0; i < components.size(); ++i) {
    if (components[i].name == name) return static_cast<int32_t>(i);
  }
  return -1;
}

bool ElementSpec::is_static() const {
  for (const ComponentSpec &component : components) {
    if (component.dtype == tensor::DType::bytes || !graph::constant_shape(component.dims)) return false;
  }
  return true;
}

std::string ElementSpec::to_string() const { return base::concat("(", base::join(components, ", "), ")"); }

Status check(const ElementSpec &spec) {
  if (spec.components.empty()) return base::invalid_argument("an element needs at least one component");
  const NameIndex index(spec.components,
                        [](const ComponentSpec &component) -> std::string_view { return component.name; });
  for (size_t i = 0; i < spec.components.size(); ++i) {
    const ComponentSpec &component = spec.components[i];
    if (component.name.empty()) return base::invalid_argument("component ", i, " has no name");
    TUTTI_TRY(base::check_utf8("component", component.name));
    if (index.find(component.name)->count > 1) {
      return base::invalid_argument("two components are called '", component.name, "'");
    }
    if (!tensor::is_valid(component.dtype)) {
      return base::invalid_argument("component '", component.name, "' has no dtype");
    }
    if (component.dims.size() > static_cast<size_t>(tensor::Shape::kMaxRank)) {
      return base::invalid_argument("component '", component.name, "' has rank ", component.dims.size(),
                                    ", expected at most ", tensor::Shape::kMaxRank);
    }
    for (const graph::Dim &dim : component.dims) {
      if (!dim.is_representable() || (dim.is_constant() && dim.constant() < 0)) {
        return base::invalid_argument("component '", component.name, "' has the dimension ", dim.to_string());
      }
    }
  }
  return Status();
}

Result<size_t> find_component(const ElementSpec &spec, std::string_view name) {
  const int32_t index = spec.find(name);
  if (index >= 0) return static_cast<size_t>(index);
  return base::invalid_argument("there is no component '", name, "' in ", spec.to_string());
}

int64_t Element::size_bytes() const {
  int64_t bytes = 0;
  for (const tensor::Tensor &component : components)
    bytes += component.size_bytes();
  return bytes;
}

Status in_element(const Status &status, const Lineage &lineage) {
  if (status.ok() || status.error()->find_detail("element") != nullptr) return status;
  const Status named =
      status.with_detail("element", base::concat(lineage.index)).with_detail("epoch", base::concat(lineage.epoch));
  return lineage.file == nullptr ? named : named.with_detail("file", *lineage.file);
}

FileName file_of(std::span<const Element> elements) {
  if (elements.empty()) return nullptr;
  const FileName &first = elements[0].lineage.file;
  const auto is_first = [&](const Element &element) {
    const FileName &file = element.lineage.file;
    return file == first || (file != nullptr && first != nullptr && *file == *first);
  };
  return std::all_of(elements.begin(), elements.end(), is_first) ? first : nullptr;
}

int64_t Element::rows() const { return components.empty() ? 0 : components[0].rows(); }

namespace {

bool fits(const tensor::Shape &shape, const graph::Dims &dims) {
  if (static_cast<size_t>(shape.rank()) != dims.size()) return false;
  for (int32_t axis = 0; axis < shape.rank(); ++axis) {
    const graph::Dim &dim = dims[static_cast<size_t>(axis)];
    if (dim.is_constant() && dim.constant() != shape[axis]) return false;
  }
  return true;
}

}  // namespace

Status check_element(const Element &element, const ElementSpec &spec, std::string_view what) {
  if (element.components.size() != spec.components.size()) {
    return base::invalid_argument(what, ": expected ", spec.components.size(), " components ", spec.to_string(),
                                  ", got ", element.components.size());
  }
  for (size_t i = 0; i < spec.components.size(); ++i) {
    const Tensor &component = element.components[i];
    if (component.empty() || component.dtype() != spec.components[i].dtype ||
        !fits(component.shape(), spec.components[i].dims)) {
      return base::invalid_argument(what, ": component '", spec.components[i].name, "': expected ",
                                    spec.components[i].dtype, graph::to_string(spec.components[i].dims), ", got ",
                                    component.empty() ? "nothing" : component.describe());
    }
  }
  return Status();
}

std::string Cardinality::to_string() const {
  if (is_infinite()) return "infinite";
  if (is_unknown()) return "unknown";
  return base::concat(value_);
}

}  // namespace tutti::impl::data
