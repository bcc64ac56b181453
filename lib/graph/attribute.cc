// SPDX-License-Identifier: Apache-2.0
#include "graph/attribute.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

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

/// The first whose name is not before `name`.
template <typename Values>
auto place_of(Values &values, std::string_view name) {
  return std::lower_bound(values.begin(), values.end(), name,
                          [](const auto &value, std::string_view other) { return value.first < other; });
}

}  // namespace

Attribute::Attribute() = default;
Attribute::Attribute(const Attribute &other) = default;
Attribute::Attribute(Attribute &&other) noexcept = default;
Attribute &Attribute::operator=(const Attribute &other) = default;
Attribute &Attribute::operator=(Attribute &&other) noexcept = default;
Attribute::~Attribute() = default;

Attributes::Attributes() = default;
Attributes::Attributes(const Attributes &other) = default;
Attributes::Attributes(Attributes &&other) noexcept = default;
Attributes &Attributes::operator=(const Attributes &other) = default;
Attributes &Attributes::operator=(Attributes &&other) noexcept = default;
Attributes::~Attributes() = default;

Attributes::Attributes(std::initializer_list<value_type> values) {
  values_.reserve(values.size());
  for (const value_type &value : values)
    emplace(value.first, value.second);
}

Attributes::iterator Attributes::find(std::string_view name) {
  const auto place = place_of(values_, name);
  return place != values_.end() && place->first == name ? place : values_.end();
}

Attributes::const_iterator Attributes::find(std::string_view name) const {
  const auto place = place_of(values_, name);
  return place != values_.end() && place->first == name ? place : values_.end();
}

Attribute &Attributes::at(std::string_view name) {
  const auto found = find(name);
  if (found == end()) throw std::out_of_range(base::concat("there is no attribute ", base::quoted(name)));
  return found->second;
}

const Attribute &Attributes::at(std::string_view name) const { return const_cast<Attributes *>(this)->at(name); }

Attribute &Attributes::operator[](std::string_view name) {
  emplace(name, Attribute());
  return find(name)->second;
}

bool Attributes::emplace(std::string_view name, Attribute value) {
  const auto place = place_of(values_, name);
  if (place != values_.end() && place->first == name) return false;
  values_.emplace(place, std::string(name), std::move(value));
  return true;
}

bool Attributes::insert_or_assign(std::string_view name, Attribute value) {
  const auto found = find(name);
  if (found == end()) return emplace(name, std::move(value));
  found->second = std::move(value);
  return false;
}

size_t Attributes::erase(std::string_view name) {
  const auto found = find(name);
  if (found == end()) return 0;
  values_.erase(found);
  return 1;
}

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
