// SPDX-License-Identifier: Apache-2.0
//
// Which cases of the table a run takes, where it is not all of them: under a tool that makes each take minutes.
//
//   TUTTI_TESTED_OPS           "conv2d,max_pool2d": those whose op begins with one of these; absent or empty = all
//   TUTTI_TESTED_MOST_ELEMENTS of one input; larger cases are left out
//   TUTTI_TESTED_CASES_PER_OP  so many of each op at most, from the whole length of its list
#ifndef TUTTI_TESTS_CONFORMANCE_CASE_SELECTION_H_
#define TUTTI_TESTS_CONFORMANCE_CASE_SELECTION_H_

#include <vector>

#include "backend_cases.h"

namespace tutti::impl::conformance {

/// Of the environment. The order stays.
std::vector<OpCase> selected(std::vector<OpCase> cases);

}  // namespace tutti::impl::conformance

#endif  // TUTTI_TESTS_CONFORMANCE_CASE_SELECTION_H_
