// SPDX-License-Identifier: Apache-2.0
//
// Attributes: the typed constants of a node ("stride" of a convolution). A node keeps what was set on it, and what
// shape inference normalised (negative axes made positive, a −1 in a reshape resolved); defaults come from the op's
// definition. C++ code reads them through the structs of the generated header graph/ops/op_attributes.h:
//
//   TUTTI_ASSIGN(auto attributes, ops::Conv2dAttributes::from(node));   // defaults filled in, types and bounds checked
//   int64_t stride = attributes.stride[0];
//
// Threads: values without hidden state.
#ifndef TUTTI_GRAPH_ATTRIBUTE_H_
#define TUTTI_GRAPH_ATTRIBUTE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "graph/dim.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace tutti::impl::graph {

/// The order of the alternatives is that of AttributeType below (an enumeration is kept as its string).
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, Dims, tensor::Tensor, tensor::DType>;

/// Ordered by name, so that equal attributes serialise equally.
using Attributes = std::map<std::string, Attribute, std::less<>>;

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
