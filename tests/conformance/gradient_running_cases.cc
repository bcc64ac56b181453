// SPDX-License-Identifier: Apache-2.0
//
// Gradients of running sums and products, also of products with zeros.
#include "gradient_case.h"

namespace gradient_test {

std::vector<GradientCase> running_cases() {
  std::vector<GradientCase> cases;
  for (const auto &[shape, axis] :
       {std::pair<ShapeDims, int64_t>{{7}, 0}, {{2, 5, 3}, 1}, {{3, 4}, -1}, {{3, 1}, 1}, {{0, 4}, 1}, {{3, 0}, 1}}) {
    for (const bool exclusive : {false, true}) {
      for (const bool backward : {false, true}) {
        const Attributes attributes = {{"axis", axis}, {"exclusive", exclusive}, {"backward", backward}};
        for (const char *op : {"running_sum", "running_product"})
          cases.push_back({op, {real(shape)}, attributes});
        // Whole numbers, of which some are 0.
        const auto of_zeros = [=](GraphBuilder &b, const Values &v) {
          return Values{b.op("running_product", {b.mul(v[0], b.cast(v[1], DType::f64))}, attributes)};
        };
        cases.push_back({"running_product", {real(shape), whole(DType::i32, shape, 0, 2)}, {}, of_zeros});
      }
    }
  }
  return cases;
}

}  // namespace gradient_test
