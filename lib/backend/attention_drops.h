// SPDX-License-Identifier: Apache-2.0
//
// Which random numbers tell what dropout_attention forgets, for every backend. A row of the array is one of `factor`
// that make a row of the batch; the numbers of a query's keys begin at a block of four.
//
//   const AttentionDrops drops = AttentionDrops::of(lowered, node, attributes.key, attributes.rate, key_length);
//   const base::RandomKey key = drops.rows.key(scalars);
//   const auto words = key.words(drops.global_row(row, scalars), drops.first_block(row, head, query) + j / 4);
//   drops.keeps(words[j % 4])    // else the probability of key j is 0
#ifndef TUTTI_BACKEND_ATTENTION_DROPS_H_
#define TUTTI_BACKEND_ATTENTION_DROPS_H_

#include "backend/random_elements.h"

namespace tutti::impl::backend {

struct AttentionDrops {
  RandomRows rows;
  double rate = 0;
  int64_t factor = 1, heads = 0, length = 0;
  int64_t blocks = 0;  ///< of four keys, the last perhaps of fewer

  /// Of the op or of its gradient: output 0 of both is [rows, length, heads, channels]. `key` 0 = the stable id.
  static AttentionDrops of(const LoweredGraph &lowered, const graph::Node &node, int64_t key, double rate,
                           int64_t key_length) {
    AttentionDrops drops;
    const std::vector<int64_t> &dims = lowered.value(node.outputs[0]).dims;
    drops.rows = RandomRows::of(lowered, node, key);
    drops.rate = rate;
    drops.factor = drops.rows.has_batch ? drops.rows.factor : dims[0];
    drops.length = dims[1];
    drops.heads = dims[2];
    drops.blocks = (key_length + 3) / 4;
    return drops;
  }

  uint64_t global_row(int64_t row, const int64_t *scalars) const { return rows.global_row(row / factor, scalars); }
  uint64_t first_block(int64_t row, int64_t head, int64_t query) const {
    return static_cast<uint64_t>(((row % factor * heads + head) * length + query) * blocks);
  }
  bool keeps(uint32_t word) const { return static_cast<double>(base::uniform_float(word)) >= rate; }
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_ATTENTION_DROPS_H_
