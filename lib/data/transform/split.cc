// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::Result;

// Both parts are walks over the same input: the first takes, the second skips.
Result<DatasetRef> apply_split(const DatasetRef &input, const SplitParameters &parameters,
                               TransformArguments &arguments) {
  if (parameters.part != "first" && parameters.part != "second") {
    return base::invalid_argument("parameter 'part': expected \"first\" or \"second\", got ",
                                  base::quoted(parameters.part));
  }
  if (parameters.fraction.has_value() == parameters.count.has_value()) {
    return base::invalid_argument("expected one of the parameters 'fraction' and 'count'");
  }
  int64_t first = parameters.count.value_or(0);
  const Cardinality all = input->cardinality();
  if (all.is_exact() && first > all.value()) {
    return base::invalid_argument("the first part is to have ", first, " elements, but the dataset has ", all.value());
  }
  if (parameters.fraction) {
    if (!all.is_exact()) {
      return base::failed_precondition("a split by fraction needs a dataset of known size; this one's is ",
                                       all.to_string());
    }
    first = static_cast<int64_t>(std::floor(*parameters.fraction * static_cast<double>(all.value())));
    first = std::clamp<int64_t>(first, 0, all.value());
  }
  if (parameters.part == "first") return apply_take(input, TakeParameters{first}, arguments);
  return apply_skip(input, SkipParameters{first}, arguments);
}

}  // namespace tutti::impl::data
