// SPDX-License-Identifier: Apache-2.0
//
// Errors about names: the end of a message about an unknown one, which is what there is instead, and those that nobody
// could read again.
//
//   not_found("there is no output '", name, "'", but_there_are(name, {"logits", "class"}))
//   // "there is no output 'logit', did you mean 'logits'?; known: logits, class"
#ifndef TUTTI_BASE_NAME_SUGGESTIONS_H_
#define TUTTI_BASE_NAME_SUGGESTIONS_H_

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::base {

/// Names that come from data may contain anything, commas too: quote them.
enum class KnownNames { plain, quoted };
/// did_you_mean(), and the known names, cut after about 400 bytes; "; none are known" where nothing is known.
std::string but_there_are(std::string_view name, std::span<const std::string> known,
                          KnownNames form = KnownNames::plain);

/// INVALID_ARGUMENT unless a name is UTF-8, as the files and reports are that it will stand in: "feature 'a\xff' ...".
Status check_utf8(std::string_view what, std::string_view name);

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_NAME_SUGGESTIONS_H_
