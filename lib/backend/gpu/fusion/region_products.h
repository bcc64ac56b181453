// SPDX-License-Identifier: Apache-2.0
//
// Products of a region that are computed by the launch that reads them (fused_product.h): of few rows, where nobody
// else reads them. In a loop also a product that is a state, which one launch of the next iteration reads: both are one
// from the second iteration on.
#ifndef TUTTI_BACKEND_GPU_FUSION_REGION_PRODUCTS_H_
#define TUTTI_BACKEND_GPU_FUSION_REGION_PRODUCTS_H_

#include <vector>

#include "backend/gpu/device/fused_product.h"
#include "backend/gpu/fusion/region_fusion.h"
#include "backend/lowered_graph.h"
#include "graph/graph.h"

namespace tutti::impl::backend::gpu {

struct RegionProduct {
  size_t step = 0;         ///< of the plan: the product
  size_t reader = 0;       ///< of the plan: the group
  bool is_before = false;  ///< is it the product of the iteration before that the group reads?
  FusedProduct product{};
};

/// Each product and each group once. None where the bits of a row do not depend on the number of rows.
std::vector<RegionProduct> find_region_products(const LoweredGraph &lowered, const graph::Region &region,
                                                const LoopPlaces &places, const RegionPlan &plan);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_REGION_PRODUCTS_H_
