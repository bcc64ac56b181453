// SPDX-License-Identifier: Apache-2.0
//
// Epilogues: elementwise nodes behind a product or a batch normalisation that nothing else reads, computed while its
// results are stored. An epilogue is what ElementwiseTrees found, if it is a chain: each of its nodes is made of the
// one before and at most one value from outside that lies as the results do, is one number for each column, or one for
// all.
//
// A library may store a value inside of the chain, too, which is read elsewhere: what an activation is computed of, for
// its gradient. Behind it the chain is made of nothing else, and comes to the turn at which that value is made. A
// library that cannot store it has no kernel for such an epilogue (ProductEpilogue::keeps()).
#ifndef TUTTI_BACKEND_GPU_FUSION_PRODUCT_EPILOGUES_H_
#define TUTTI_BACKEND_GPU_FUSION_PRODUCT_EPILOGUES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/gpu/device/device_epilogue.h"
#include "backend/gpu/fusion/elementwise_trees.h"
#include "backend/gpu/kernel/kernel.h"
#include "backend/lowered_graph.h"

namespace tutti::impl::backend::gpu {

struct ProductEpilogue {
  int32_t product = -1;               ///< the step
  std::vector<int32_t> steps;         ///< the nodes behind it in order, the root last
  Epilogue epilogue{};                ///< without pointers
  std::vector<graph::ValueId> reads;  ///< by operand
  bool is_early = false;              ///< computed at the turn of the normalisation, not at that of the root
  int32_t kept = -1;                  ///< the product or a step in front of the root whose result is stored, too
  int32_t kept_after = 0;             ///< how many steps of the epilogue make that

  int32_t root() const { return steps.back(); }
  int32_t turn() const { return is_early ? product : keeps() ? kept : root(); }
  bool keeps() const { return kept >= 0; }
};

/// What a kernel keeps of the epilogue of its request, if there is one.
class KeptEpilogue {
 public:
  explicit KeptEpilogue(const KernelRequest &request);
  /// The epilogue with the pointers of a frame, in `place`; null where there is none.
  const Epilogue *place(const Frame &frame, Epilogue &place) const;

 private:
  bool exists_;
  int32_t first_ = 0, count_ = 0;  // inputs of the frame
  Epilogue epilogue_{};
};

/// At most one for each product and each root.
std::vector<ProductEpilogue> find_product_epilogues(const LoweredGraph &lowered, const ElementwiseTrees &trees);

/// The nodes as a chain that begins with a value in memory: as the epilogue of no product. None where they are none.
std::optional<ProductEpilogue> make_chain(const LoweredGraph &lowered, graph::ValueId first,
                                          std::vector<int32_t> steps);

/// For libraries alone, longer ones that keep a value: of an epilogue and what follows its root, or of a product that
/// is not the product of any epilogue and what follows that. Of those of one product one can be taken.
std::vector<ProductEpilogue> find_keeping_epilogues(const LoweredGraph &lowered, const ElementwiseTrees &trees,
                                                    const std::vector<ProductEpilogue> &tails);

/// The call of a product with its epilogue: inputs are those of the product, then what the epilogue reads; outputs are
/// the root's, what the product has beside its first, and what is kept. No kernel where whoever computes the product
/// cannot take the epilogue along: then they are made one by one.
base::Result<KernelCall> make_epilogue_call(const LoweredGraph &lowered, const ProductEpilogue &tail, Library *library,
                                            AlgorithmTrials *trials, AlgorithmProbes *probes,
                                            std::vector<BoundedIntegers> &faults, int64_t *scratch_bytes);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_PRODUCT_EPILOGUES_H_
