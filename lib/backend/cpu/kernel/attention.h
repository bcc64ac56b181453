// SPDX-License-Identifier: Apache-2.0
//
// Attention of f32 arrays, block by block: for some queries and some keys at a time the scores are made, turned into
// weights and used, so that there is never more of them than a block. As in Dao, Fu, Ermon, Rudra, Ré: FlashAttention
// (2022), https://arxiv.org/abs/2205.14135.
//
//   const AttentionShape shape{...};
//   std::vector<float> scratch(attention_scratch_floats(shape));
//   attention(shape, arrays, {0, attention_items(shape)}, scratch.data());
//
// Items may be done in any order, by any threads with a scratch each: every result depends on shape and arrays alone.
#ifndef TUTTI_BACKEND_CPU_KERNEL_ATTENTION_H_
#define TUTTI_BACKEND_CPU_KERNEL_ATTENTION_H_

#include <algorithm>
#include <cstdint>

#include "backend/attention_dropout.h"
#include "backend/cpu/kernel/kernel.h"

namespace tutti::impl::backend::cpu {

/// Queries [rows, length, heads, channels], keys and values [rows, key_length, key_heads, channels].
struct AttentionShape {
  int64_t rows = 0, length = 0, heads = 0, channels = 0, key_length = 0, key_heads = 0;
  bool causal = false;
  float scale = 1;
  int64_t q_pitch = 0, k_pitch = 0,
          v_pitch = 0;  ///< from a position to the next, where heads do not lie dense; 0: dense
  bool splits = false;  ///< products on a matrix unit where that suits them (simd_split_gemm.h)

  static constexpr int64_t kQueries = 128, kKeys = 256;  ///< of a block

  int64_t query_blocks() const { return (length + kQueries - 1) / kQueries; }
  int64_t key_blocks() const { return (key_length + kKeys - 1) / kKeys; }
  int64_t query_row() const { return heads * channels; }    ///< from a position to the next, of results and gradients
  int64_t key_row() const { return key_heads * channels; }  ///< the same
  int64_t q_row() const { return q_pitch != 0 ? q_pitch : query_row(); }  ///< of what is read
  int64_t k_row() const { return k_pitch != 0 ? k_pitch : key_row(); }
  int64_t v_row() const { return v_pitch != 0 ? v_pitch : key_row(); }
  int64_t group() const { return heads / key_heads; }  ///< heads that share keys
};

/// What dropout_attention forgets in a run.
struct AttentionDropping {
  const AttentionDropout *dropout = nullptr;
  uint64_t key = 0;
  const int64_t *scalars = nullptr;  ///< of the run
};

struct AttentionArrays {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const int32_t *lengths = nullptr;  ///< may be null
  float *y = nullptr, *statistics = nullptr;
  const AttentionDropping *dropping = nullptr;  ///< may be null
};

struct AttentionGradientArrays {
  const float *dy = nullptr, *q = nullptr, *k = nullptr, *v = nullptr, *y = nullptr, *statistics = nullptr;
  const int32_t *lengths = nullptr;  ///< may be null
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;
  const AttentionDropping *dropping = nullptr;  ///< may be null
};

/// An item is a block of queries.
inline int64_t attention_items(const AttentionShape &s) { return s.rows * s.heads * s.query_blocks(); }
int64_t attention_scratch_floats(const AttentionShape &shape);
void attention(const AttentionShape &shape, const AttentionArrays &arrays, Range items, float *scratch);

/// All gradients in one pass, an item being a head of keys; or in two, which compute the scores twice, items being
/// blocks. The same bits either way.
enum class AttentionPass : uint8_t { all, queries, keys };
int64_t attention_gradient_items(const AttentionShape &shape, AttentionPass pass);
int64_t attention_gradient_scratch_floats(const AttentionShape &shape);
void attention_gradient(const AttentionShape &shape, const AttentionGradientArrays &arrays, AttentionPass pass,
                        Range items, float *scratch);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_KERNEL_ATTENTION_H_
