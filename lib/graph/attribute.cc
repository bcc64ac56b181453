// SPDX-License-Identifier: Apache-2.0
#include "graph/attribute.h"

#include <cstring>

#include "base/text.h"

namespace tutti::impl::graph {
namespace {

constexpr std::string_view kKinds[] = {"bool",    "i64",     "f64",  "string", "ints",
                                       "doubles", "strings", "dims", "tensor", "dtype"};
constexpr std::string_view kTypes[] = {"bool",    "i64",  "f64",    "string", "ints", "doubles",
                                       "strings", "dims", "tensor", "dtype",  "enum"};

bool same_bits(const std::vector<double> &a, const std::vector<double> &b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

}  // namespace

std::string_view name(AttributeType type) { return kTypes[static_cast<size_t>(type)]; }

bool holds(const Attribute &attribute, AttributeType type) {
  const size_t index =
      type == AttributeType::enumeration ? static_cast<size_t>(AttributeType::string) : static_cast<size_t>(type);
  return attribute.index() == index;
}

std::string_view kind_of(const Attribute &attribute) { return kKinds[attribute.index()]; }

std::string to_string(const Attribute &attribute) {
  return std::visit(
      [](const auto &value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return base::quoted(value);
        } else if constexpr (std::is_same_v<T, tensor::Tensor>) {
          return value.describe();
        } else {
          return base::concat(value);
        }
      },
      attribute);
}

bool equal(const Attribute &left, const Attribute &right) {
  if (left.index() != right.index()) return false;
  return std::visit(
      [&](const auto &value) {
        using T = std::decay_t<decltype(value)>;
        const T &other = std::get<T>(right);
        if constexpr (std::is_same_v<T, double>) {
          return std::memcmp(&value, &other, sizeof(double)) == 0;
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return same_bits(value, other);
        } else if constexpr (std::is_same_v<T, tensor::Tensor>) {
          return value.empty() == other.empty() && (value.empty() || tensor::identical(value, other));
        } else {
          return value == other;
        }
      },
      left);
}

bool equal(const Attributes &left, const Attributes &right) {
  if (left.size() != right.size()) return false;
  for (auto a = left.begin(), b = right.begin(); a != left.end(); ++a, ++b) {
    if (a->first != b->first || !equal(a->second, b->second)) return false;
  }
  return true;
}

}  // namespace tutti::impl::graph
