// SPDX-License-Identifier: Apache-2.0
//
// Attributes: the typed constants of a node ("stride" of a convolution). A node keeps what was set on it, and what
// shape inference normalised (negative axes made positive, a −1 in a reshape resolved); defaults come from the op's
// definition. C++ code reads them through the structs of the generated header graph/ops/op_attributes.h:
//
//   TUTTI_ASSIGN(auto attributes, ops::Conv2dAttributes::from(node));   // defaults filled in, types and bounds checked
//   int64_t stride = attributes.stride[0];
//
// Many sources make, copy or drop attributes. What that takes is compiled once, in attribute.cc: as members of
// std::variant and std::map it would be compiled in each of them.
//
// Threads: values without hidden state.
#ifndef TUTTI_GRAPH_ATTRIBUTE_H_
#define TUTTI_GRAPH_ATTRIBUTE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/safe_variant.h"
#include "base/status.h"
#include "graph/dim.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace tutti::impl::graph {

/// The order of the alternatives is that of AttributeType below (an enumeration is kept as its string).
using AttributeAlternatives =
    base::SafeVariant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                      std::vector<std::string>, Dims, tensor::Tensor, tensor::DType>;
class Attribute : public AttributeAlternatives {
 public:
  using AttributeAlternatives::AttributeAlternatives;
  using AttributeAlternatives::operator=;
  Attribute();
  Attribute(const Attribute &other);
  Attribute(Attribute &&other) noexcept;
  Attribute &operator=(const Attribute &other);
  Attribute &operator=(Attribute &&other) noexcept;
  ~Attribute();
};

/// By name, and ordered by it, so that equal attributes serialise equally. The interface is that part of std::map's
/// which is used; iterators and references end with the next change.
class Attributes {
 public:
  using value_type = std::pair<std::string, Attribute>;
  using iterator = std::vector<value_type>::iterator;
  using const_iterator = std::vector<value_type>::const_iterator;

  Attributes();
  /// The first of equal names counts.
  Attributes(std::initializer_list<value_type> values);
  Attributes(const Attributes &other);
  Attributes(Attributes &&other) noexcept;
  Attributes &operator=(const Attributes &other);
  Attributes &operator=(Attributes &&other) noexcept;
  ~Attributes();

  iterator begin() { return values_.begin(); }
  iterator end() { return values_.end(); }
  const_iterator begin() const { return values_.begin(); }
  const_iterator end() const { return values_.end(); }
  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }

  iterator find(std::string_view name);
  const_iterator find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != end(); }
  size_t count(std::string_view name) const { return contains(name) ? 1 : 0; }
  /// Must be there.
  Attribute &at(std::string_view name);
  const Attribute &at(std::string_view name) const;
  /// Made false if missing.
  Attribute &operator[](std::string_view name);
  /// Leaves one that is there as it is; whether there was none.
  bool emplace(std::string_view name, Attribute value);
  /// Replaces one that is there; whether there was none.
  bool insert_or_assign(std::string_view name, Attribute value);
  /// How many went.
  size_t erase(std::string_view name);

 private:
  std::vector<value_type> values_;  // ascending
};

/// Type names as written in ops.yaml.
enum class AttributeType {
  boolean,      // bool
  i64,          // int64_t
  f64,          // double
  string,       // std::string
  ints,         // std::vector<int64_t>
  doubles,      // std::vector<double>
  strings,      // std::vector<std::string>
  dims,         // Dims
  tensor,       // tensor::Tensor
  dtype,        // tensor::DType
  enumeration,  // std::string, one of a listed set
};

std::string_view name(AttributeType type);
/// Whether `attribute` holds the alternative that `type` is kept in.
bool holds(const Attribute &attribute, AttributeType type);
/// Name of the alternative an attribute holds, for messages.
std::string_view kind_of(const Attribute &attribute);
/// Short readable text, for messages and dumps; a tensor gives its dtype and shape only.
std::string to_string(const Attribute &attribute);
/// Bitwise for doubles and tensors, so that equal means interchangeable.
bool equal(const Attribute &left, const Attribute &right);
bool equal(const Attributes &left, const Attributes &right);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_ATTRIBUTE_H_
