// SPDX-License-Identifier: Apache-2.0
//
// Which random numbers tell what dropout_attention forgets, for every backend. A row of the array is one of `factor`
// that make a row of the batch; the numbers of a query's keys begin at a block of four.
//
//   const AttentionDropout dropout = AttentionDropout::of(lowered, node, attributes.key, attributes.rate, key_length);
//   const base::RandomKey key = dropout.rows.key(scalars);
//   const auto words = key.words(dropout.global_row(row, scalars), dropout.first_block(row, head, query) + j / 4);
//   dropout.keeps(words[j % 4])    // else the probability of key j is 0
#ifndef TUTTI_BACKEND_ATTENTION_DROPOUT_H_
#define TUTTI_BACKEND_ATTENTION_DROPOUT_H_

#include "backend/random_elements.h"

namespace tutti::impl::backend {

struct AttentionDropout {
  RandomRows rows;
  double rate = 0;
  int64_t factor = 1, heads = 0, length = 0;
  int64_t blocks = 0;  ///< of four keys, the last perhaps of fewer

  /// Of the op or of its gradient: output 0 of both is [rows, length, heads, channels]. `key` 0 = the stable id.
  static AttentionDropout of(const LoweredGraph &lowered, const graph::Node &node, int64_t key, double rate,
                             int64_t key_length) {
    AttentionDropout dropout;
    const std::vector<int64_t> &dims = lowered.value(node.outputs[0]).dims;
    dropout.rows = RandomRows::of(lowered, node, key);
    dropout.rate = rate;
    dropout.factor = dropout.rows.has_batch ? dropout.rows.factor : dims[0];
    dropout.length = dims[1];
    dropout.heads = dims[2];
    dropout.blocks = (key_length + 3) / 4;
    return dropout;
  }

  uint64_t global_row(int64_t row, const int64_t *scalars) const { return rows.global_row(row / factor, scalars); }
  uint64_t first_block(int64_t row, int64_t head, int64_t query) const {
    return static_cast<uint64_t>(((row % factor * heads + head) * length + query) * blocks);
  }
  bool keeps(uint32_t word) const { return static_cast<double>(base::uniform_float(word)) >= rate; }
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_ATTENTION_DROPOUT_H_
