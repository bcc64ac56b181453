// SPDX-License-Identifier: Apache-2.0
//
// The end of an error message about an unknown name: what there is instead.
//
//   not_found("there is no output '", name, "'", but_there_are(name, {"logits", "class"}))
//   // "there is no output 'logit', did you mean 'logits'?; there are: logits, class"
#ifndef TUTTI_BASE_KNOWN_NAMES_H_
#define TUTTI_BASE_KNOWN_NAMES_H_

#include <span>
#include <string>
#include <string_view>

namespace tutti::impl::base {

/// did_you_mean(), and the known names, cut after about 400 bytes; "; there are none" where nothing is known.
std::string but_there_are(std::string_view name, std::span<const std::string> known);

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_KNOWN_NAMES_H_
