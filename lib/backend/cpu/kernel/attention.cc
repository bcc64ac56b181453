// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernel/attention.h"

#include <cstring>
#include <limits>

#include "backend/cpu/simd/simd_attention.h"
#include "backend/cpu/simd/simd_gemm.h"
#include "backend/cpu/simd/simd_random.h"
#include "backend/cpu/simd/simd_split_gemm.h"

static_assert(tutti::impl::backend::cpu::AttentionShape::kKeys % 4 == 0, "blocks of keys begin at blocks of numbers");

namespace tutti::impl::backend::cpu {
namespace {

constexpr int64_t kQueries = AttentionShape::kQueries, kKeys = AttentionShape::kKeys;

/// Queries of one head, or keys: `first` .. first + count - 1 of a row of the batch.
struct Block {
  int64_t row = 0, head = 0, first = 0, count = 0;
};

Block query_block(const AttentionShape &s, int64_t row, int64_t head, int64_t block) {
  return {row, head, block * kQueries, std::min(kQueries, s.length - block * kQueries)};
}

Block key_block(const AttentionShape &s, int64_t row, int64_t head, int64_t block) {
  return {row, head, block * kKeys, std::min(kKeys, s.key_length - block * kKeys)};
}

/// Where queries begin that have `pitch` from a position to the next.
int64_t queries_at(const AttentionShape &s, const Block &b, int64_t pitch) {
  return (b.row * s.length + b.first) * pitch + b.head * s.channels;
}
int64_t keys_at(const AttentionShape &s, const Block &b, int64_t pitch) {
  return (b.row * s.key_length + b.first) * pitch + b.head * s.channels;
}
/// In results and gradients.
int64_t query_at(const AttentionShape &s, const Block &b) { return queries_at(s, b, s.query_row()); }
int64_t key_at(const AttentionShape &s, const Block &b) { return keys_at(s, b, s.key_row()); }

int64_t statistics_at(const AttentionShape &s, const Block &b) {
  return (b.row * s.heads + b.head) * s.length + b.first;
}

/// How many keys there are for a row.
int64_t keys_of(const AttentionShape &s, const int32_t *lengths, int64_t row) {
  return lengths == nullptr ? s.key_length : std::clamp<int64_t>(lengths[row], 0, s.key_length);
}

/// What of the scores of `queries` and `keys` counts, if there are `limit` keys in the row. The columns of the block
/// end where no query sees a key any more.
ScoreBlock scores_of(const AttentionShape &s, const Block &queries, const Block &keys, int64_t limit) {
  ScoreBlock block;
  block.rows = queries.count;
  block.columns = std::min(keys.count, limit - keys.first);
  block.first = block.columns;
  if (s.causal) {
    block.first = queries.first + s.key_length - s.length + 1 - keys.first;
    block.step = 1;
    block.columns = std::min(block.columns, block.first + queries.count - 1);
  }
  block.columns = std::max<int64_t>(block.columns, 0);
  return block;
}

void copy_rows(const float *from, int64_t from_row, int64_t rows, int64_t n, float *to) {
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(to + r * n, from + r * from_row, static_cast<size_t>(n) * sizeof(float));
}

/// Forgets weights of a block of scores, or their gradients.
void drop(const AttentionDropping *dropping, const Block &queries, const Block &keys, const ScoreBlock &block,
          float *weights) {
  if (dropping == nullptr) return;
  const AttentionDropout &dropout = *dropping->dropout;
  RandomArray array;
  array.key = dropping->key;
  array.first_row = dropout.global_row(queries.row, dropping->scalars);
  array.row_step = 0;
  array.rows = block.rows;
  array.width = block.columns;
  array.first_block =
      dropout.first_block(queries.row, queries.head, queries.first) + static_cast<uint64_t>(keys.first / 4);
  array.block_step = static_cast<uint64_t>(dropout.blocks);
  random_dropout(array, dropout.rate, weights, weights);
}

/// scores[rows, columns] = a · bᵀ, both with rows of `channels`.
GemmShape score_product(int64_t rows, int64_t columns, int64_t channels, int64_t b_row) {
  return {.m = rows, .n = columns, .k = channels, .a_row = channels, .b_row = 1, .b_column = b_row, .c_row = columns};
}

/// c[rows, channels] += weights[rows, columns] · b
GemmShape value_product(int64_t rows, int64_t columns, int64_t channels, int64_t c_row, bool accumulate) {
  return {.m = rows,
          .n = channels,
          .k = columns,
          .a_row = columns,
          .b_row = channels,
          .c_row = c_row,
          .accumulate = accumulate};
}

/// c[columns, channels] += weights[rows, columns]ᵀ · b
GemmShape key_product(int64_t rows, int64_t columns, int64_t channels, int64_t c_row) {
  return {.m = columns,
          .n = channels,
          .k = rows,
          .a_row = 1,
          .a_column = columns,
          .b_row = channels,
          .c_row = c_row,
          .accumulate = true};
}

bool on_matrix_unit(const AttentionShape &s, const GemmShape &product) { return s.splits && split_gemm_suits(product); }

void multiply(const AttentionShape &s, const GemmShape &product, const float *a, const float *b, float *c,
              float *scratch) {
  const auto run = on_matrix_unit(s, product) ? split_gemm : gemm;
  run(product, a, b, c, {}, scratch);
}

/// Scratch for the product and all smaller ones.
int64_t product_floats(const AttentionShape &s, const GemmShape &product) {
  const int64_t floats = gemm_scratch_floats(product);
  return on_matrix_unit(s, product) ? std::max(floats, split_gemm_scratch_floats(product)) : floats;
}

/// Memory of one thread, in pieces that begin on cache lines.
class Pieces {
 public:
  explicit Pieces(float *memory) : memory_(memory) {}
  float *take(int64_t floats) {
    float *const piece = memory_ == nullptr ? nullptr : memory_ + taken_;
    taken_ += (floats + 15) / 16 * 16;
    return piece;
  }
  int64_t taken() const { return taken_; }

 private:
  float *memory_;
  int64_t taken_ = 0;
};

struct ForwardScratch {
  float *q, *v, *scores, *result, *maximum, *sum, *product;
  int64_t floats;

  ForwardScratch(const AttentionShape &s, float *memory) {
    Pieces pieces(memory);
    const int64_t queries = std::min(kQueries, s.length), keys = std::min(kKeys, s.key_length);
    q = pieces.take(queries * s.channels);
    v = pieces.take(keys * s.channels);
    scores = pieces.take(queries * keys);
    result = pieces.take(queries * s.channels);
    maximum = pieces.take(queries);
    sum = pieces.take(queries);
    product = pieces.take(std::max(product_floats(s, score_product(queries, keys, s.channels, s.k_row())),
                                   product_floats(s, value_product(queries, keys, s.channels, s.channels, true))));
    floats = pieces.taken();
  }
};

void attend(const AttentionShape &s, const AttentionArrays &arrays, const Block &queries,
            const ForwardScratch &scratch) {
  const int64_t channels = s.channels, limit = keys_of(s, arrays.lengths, queries.row), at = query_at(s, queries);
  copy_rows(arrays.q + queries_at(s, queries, s.q_row()), s.q_row(), queries.count, channels, scratch.q);
  std::fill_n(scratch.maximum, queries.count, -std::numeric_limits<float>::infinity());
  std::fill_n(scratch.sum, queries.count, 0.0f);
  for (int64_t j = 0; j < s.key_blocks(); ++j) {
    const Block keys = key_block(s, queries.row, queries.head / s.group(), j);
    const ScoreBlock block = scores_of(s, queries, keys, limit);
    if (block.columns == 0) break;
    multiply(s, score_product(block.rows, block.columns, channels, s.k_row()), scratch.q,
             arrays.k + keys_at(s, keys, s.k_row()), scratch.scores, scratch.product);
    attention_weights(block, s.scale, scratch.scores, scratch.maximum, scratch.sum, j == 0 ? nullptr : scratch.result,
                      channels);
    drop(arrays.dropping, queries, keys, block, scratch.scores);
    copy_rows(arrays.v + keys_at(s, keys, s.v_row()), s.v_row(), block.columns, channels, scratch.v);
    multiply(s, value_product(block.rows, block.columns, channels, channels, j != 0), scratch.scores, scratch.v,
             scratch.result, scratch.product);
  }
  attention_results(queries.count, channels, scratch.result, scratch.maximum, scratch.sum, arrays.y + at, s.query_row(),
                    arrays.statistics + statistics_at(s, queries));
}

struct GradientScratch {
  float *q, *dy, *k, *scores, *products, *averages, *product;
  int64_t floats;

  GradientScratch(const AttentionShape &s, float *memory) {
    Pieces pieces(memory);
    const int64_t queries = std::min(kQueries, s.length), keys = std::min(kKeys, s.key_length);
    q = pieces.take(queries * s.channels);
    dy = pieces.take(queries * s.channels);
    k = pieces.take(keys * s.channels);
    scores = pieces.take(queries * keys);
    products = pieces.take(queries * keys);
    averages = pieces.take(queries);
    product = pieces.take(std::max({product_floats(s, score_product(queries, keys, s.channels, s.k_row())),
                                    product_floats(s, score_product(queries, keys, s.channels, s.v_row())),
                                    product_floats(s, value_product(queries, keys, s.channels, s.query_row(), true)),
                                    product_floats(s, key_product(queries, keys, s.channels, s.key_row()))}));
    floats = pieces.taken();
  }
};

/// A thread at its items of the gradient.
class GradientWork {
 public:
  GradientWork(const AttentionShape &shape, const AttentionGradientArrays &arrays, float *scratch)
      : s_(shape), arrays_(arrays), scratch_(shape, scratch) {}

  /// Of all keys of a head and the queries that go with it.
  void of_head(int64_t row, int64_t key_head) {
    for (int64_t j = 0; j < s_.key_blocks(); ++j)
      clear_keys(key_block(s_, row, key_head, j));
    for (int64_t head = key_head * s_.group(); head < (key_head + 1) * s_.group(); ++head) {
      for (int64_t i = 0; i < s_.query_blocks(); ++i) {
        const Block queries = query_block(s_, row, head, i);
        begin_queries(queries);
        for (int64_t j = 0; j < s_.key_blocks(); ++j)
          add(queries, key_block(s_, row, key_head, j), true, true);
      }
    }
  }

  void of_queries(const Block &queries) {
    begin_queries(queries);
    for (int64_t j = 0; j < s_.key_blocks(); ++j)
      add(queries, key_block(s_, queries.row, queries.head / s_.group(), j), true, false);
  }

  void of_keys(const Block &keys) {
    clear_keys(keys);
    for (int64_t head = keys.head * s_.group(); head < (keys.head + 1) * s_.group(); ++head) {
      for (int64_t i = 0; i < s_.query_blocks(); ++i) {
        const Block queries = query_block(s_, keys.row, head, i);
        if (sees(queries, keys).columns == 0) continue;
        load_queries(queries);
        add(queries, keys, false, true);
      }
    }
  }

 private:
  ScoreBlock sees(const Block &queries, const Block &keys) const {
    return scores_of(s_, queries, keys, keys_of(s_, arrays_.lengths, queries.row));
  }

  void clear_keys(const Block &keys) {
    for (float *const gradient : {arrays_.dk, arrays_.dv}) {
      for (int64_t i = 0; i < keys.count; ++i)
        std::fill_n(gradient + key_at(s_, keys) + i * s_.key_row(), s_.channels, 0.0f);
    }
  }

  void load_queries(const Block &queries) {
    const int64_t at = query_at(s_, queries);
    copy_rows(arrays_.q + queries_at(s_, queries, s_.q_row()), s_.q_row(), queries.count, s_.channels, scratch_.q);
    copy_rows(arrays_.dy + at, s_.query_row(), queries.count, s_.channels, scratch_.dy);
    row_products(queries.count, s_.channels, arrays_.dy + at, arrays_.y + at, s_.query_row(), scratch_.averages);
  }

  void begin_queries(const Block &queries) {
    load_queries(queries);
    for (int64_t i = 0; i < queries.count; ++i)
      std::fill_n(arrays_.dq + query_at(s_, queries) + i * s_.query_row(), s_.channels, 0.0f);
  }

  /// What the queries, which are loaded, and the keys add to each other's gradients.
  void add(const Block &queries, const Block &keys, bool for_queries, bool for_keys) {
    const ScoreBlock block = sees(queries, keys);
    if (block.columns == 0) return;
    const int64_t rows = block.rows, columns = block.columns, channels = s_.channels, key = key_at(s_, keys);
    const float *const k = arrays_.k + keys_at(s_, keys, s_.k_row()), *const v =
                                                                          arrays_.v + keys_at(s_, keys, s_.v_row());
    multiply(s_, score_product(rows, columns, channels, s_.k_row()), scratch_.q, k, scratch_.scores, scratch_.product);
    multiply(s_, score_product(rows, columns, channels, s_.v_row()), scratch_.dy, v, scratch_.products,
             scratch_.product);
    drop(arrays_.dropping, queries, keys, block, scratch_.products);
    attention_gradient_weights(block, s_.scale, arrays_.statistics + statistics_at(s_, queries), scratch_.averages,
                               scratch_.scores, scratch_.products);
    if (for_keys) {
      drop(arrays_.dropping, queries, keys, block, scratch_.scores);
      const GemmShape shape = key_product(rows, columns, channels, s_.key_row());
      multiply(s_, shape, scratch_.scores, scratch_.dy, arrays_.dv + key, scratch_.product);
      multiply(s_, shape, scratch_.products, scratch_.q, arrays_.dk + key, scratch_.product);
    }
    if (for_queries) {
      copy_rows(k, s_.k_row(), columns, channels, scratch_.k);
      multiply(s_, value_product(rows, columns, channels, s_.query_row(), true), scratch_.products, scratch_.k,
               arrays_.dq + query_at(s_, queries), scratch_.product);
    }
  }

  const AttentionShape &s_;
  const AttentionGradientArrays &arrays_;
  const GradientScratch scratch_;
};

}  // namespace

int64_t attention_scratch_floats(const AttentionShape &shape) { return ForwardScratch(shape, nullptr).floats; }

void attention(const AttentionShape &shape, const AttentionArrays &arrays, Range items, float *scratch) {
  const ForwardScratch pieces(shape, scratch);
  const int64_t blocks = shape.query_blocks();
  for (int64_t item = items.begin; item < items.end; ++item) {
    const int64_t head = item / blocks;
    attend(shape, arrays, query_block(shape, head / shape.heads, head % shape.heads, item % blocks), pieces);
  }
}

int64_t attention_gradient_scratch_floats(const AttentionShape &shape) {
  return GradientScratch(shape, nullptr).floats;
}

int64_t attention_gradient_items(const AttentionShape &shape, AttentionPass pass) {
  if (pass == AttentionPass::queries) return shape.rows * shape.heads * shape.query_blocks();
  return shape.rows * shape.key_heads * (pass == AttentionPass::keys ? shape.key_blocks() : 1);
}

void attention_gradient(const AttentionShape &shape, const AttentionGradientArrays &arrays, AttentionPass pass,
                        Range items, float *scratch) {
  GradientWork work(shape, arrays, scratch);
  const bool is_queries = pass == AttentionPass::queries;
  const int64_t blocks = pass == AttentionPass::all ? 1 : is_queries ? shape.query_blocks() : shape.key_blocks();
  const int64_t heads = is_queries ? shape.heads : shape.key_heads;
  for (int64_t item = items.begin; item < items.end; ++item) {
    const int64_t row = item / blocks / heads, head = item / blocks % heads, block = item % blocks;
    if (pass == AttentionPass::all) {
      work.of_head(row, head);
    } else if (is_queries) {
      work.of_queries(query_block(shape, row, head, block));
    } else {
      work.of_keys(key_block(shape, row, head, block));
    }
  }
}

}  // namespace tutti::impl::backend::cpu
