// SPDX-License-Identifier: Apache-2.0
//
// Base64 (RFC 4648, with padding) for constants inside JSON. Pure functions.
#ifndef TUTTI_GRAPH_BASE64_H_
#define TUTTI_GRAPH_BASE64_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::graph {

std::string base64_encode(std::string_view bytes);
/// The bytes; an error for any character outside the alphabet, missing padding or bits that must be 0.
base::Result<std::string> base64_decode(std::string_view text);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_BASE64_H_
