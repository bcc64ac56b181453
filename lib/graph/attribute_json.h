// SPDX-License-Identifier: Apache-2.0
//
// Pieces of the JSON form that graphs and models share. Pure functions; reading trusts nothing.
#ifndef TUTTI_GRAPH_ATTRIBUTE_JSON_H_
#define TUTTI_GRAPH_ATTRIBUTE_JSON_H_

#include "base/json.h"
#include "graph/serialize.h"

namespace tutti::impl::graph {

/// Constants as integers, expressions as text.
base::Json dims_to_json(const Dims &dims);
base::Result<Dims> dims_from_json(const base::JsonReader &reader);
base::Result<Attributes> attributes_from_reader(const base::JsonReader &reader);
/// A dtype given by its name under `key`.
base::Result<tensor::DType> get_dtype(const base::JsonReader &reader, std::string_view key);
/// An integer under `key` in [minimum, maximum].
base::Result<int64_t> get_bounded(const base::JsonReader &reader, std::string_view key, int64_t minimum,
                                  int64_t maximum);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_ATTRIBUTE_JSON_H_
