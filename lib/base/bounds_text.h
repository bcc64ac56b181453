// SPDX-License-Identifier: Apache-2.0
//
// What a number has to be, as the end of a message about one that is not.
//
//   invalid_argument("option 'steps': expected ", bounds_text(0, kInfinity), ", got ", value)
//   // "option 'steps': expected at least 0, got -1"
#ifndef TUTTI_BASE_BOUNDS_TEXT_H_
#define TUTTI_BASE_BOUNDS_TEXT_H_

#include <cmath>
#include <string>

#include "base/text.h"

namespace tutti::impl::base {

/// "at least 1", "at most 5", "from 1 to 5", "exactly 3"; a bound that is infinite is none.
inline std::string bounds_text(double minimum, double maximum) {
  if (minimum == maximum) return concat("exactly ", minimum);
  if (std::isinf(minimum) && std::isinf(maximum)) return "a number";
  if (std::isinf(maximum)) return concat("at least ", minimum);
  if (std::isinf(minimum)) return concat("at most ", maximum);
  return concat("from ", minimum, " to ", maximum);
}

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_BOUNDS_TEXT_H_
