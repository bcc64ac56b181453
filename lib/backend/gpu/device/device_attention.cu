// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_attention.h"

#include <tutti/plugin/backend.h>

#include <cmath>

#include "backend/gpu/device/device_product-inl.h"
#include "backend/gpu/device/philox-inl.h"
#include "backend/gpu/device/row-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Threads for each row of channels that is added up, more or less: those of a warp.
constexpr int64_t kRowThreads = 32;
constexpr int kTileRows = TileShape::rows(1), kTileColumns = TileShape::columns(1);

// ---- matrices ----

/// Which rows of which heads: those of queries, or of keys.
struct HeadRows {
  int64_t length, heads, channels;
  int64_t pitch;  ///< from a position to the next

  __device__ int64_t first(int64_t row, int64_t head) const { return row * length * pitch + head * channels; }
  __device__ int64_t stride() const { return pitch; }
};

/// Those that lie dense.
__device__ inline HeadRows query_rows(const AttentionWork &work) {
  return {work.length, work.heads, work.channels, work.heads * work.channels};
}
__device__ inline HeadRows key_rows(const AttentionWork &work) {
  return {work.key_length, work.key_heads, work.channels, work.key_heads * work.channels};
}
__device__ inline HeadRows with_pitch(HeadRows rows, int64_t pitch) {
  rows.pitch = pitch;
  return rows;
}

/// One head's elements as a factor.
struct HeadSource {
  DType dtype;
  HeadRows rows;
  const void *data;
  bool is_wide;
  int64_t row, head;

  /// A line for each position, summed over the channels.
  __device__ MatrixLines by_position() const {
    return {{data, dtype, is_wide}, rows.length, rows.channels, rows.stride(), 1, rows.first(row, head)};
  }
  /// A line for each channel, summed over the first `positions`.
  __device__ MatrixLines by_channel(int64_t positions) const {
    return {{data, dtype, is_wide}, rows.channels, positions, 1, rows.stride(), rows.first(row, head)};
  }
};

struct HeadTarget {
  ResultArray array;
  int64_t rows, columns, first, stride;

  __device__ int64_t row(int64_t row) const { return first + row * stride; }
};

// ---- who sees whom ----

/// Of a row of the batch.
struct Sight {
  int64_t length, keys;  ///< queries; keys that count
  int64_t shift;         ///< query i sees keys up to i + shift

  __device__ Sight(const AttentionWork &work, int64_t row) : length(work.length), keys(work.key_length) {
    if (work.lengths != nullptr) {
      const int64_t given = work.lengths[row];
      keys = given < 0 ? 0 : (given < keys ? given : keys);
    }
    shift = work.is_causal ? work.key_length - work.length : work.key_length;
  }
  __device__ bool sees(int64_t query, int64_t key) const {
    return query < length && key < keys && key <= query + shift;
  }
  /// The end of the keys that queries below `queries_end` see.
  __device__ int64_t keys_end(int64_t queries_end) const {
    const int64_t last = (queries_end < length ? queries_end : length) + shift;
    return last < 0 ? 0 : (last < keys ? last : keys);
  }
  /// The first query that sees a key from `key` on.
  __device__ int64_t first_query(int64_t key) const {
    if (key >= keys) return length;
    return key <= shift ? 0 : key - shift;
  }
};

// ---- statistics of the scores ----

/// Where this thread's squares of 4 x 4 results lie in a tile.
__device__ inline int thread_down() { return static_cast<int>(threadIdx.x) / TileShape::kAcross; }
__device__ inline int thread_across() { return static_cast<int>(threadIdx.x) % TileShape::kAcross; }

struct BlockPlace {
  int64_t tile, head, row, chunk;  ///< of positions; of heads; of the batch; of channels
};
__device__ inline BlockPlace block_place(int64_t tiles, int64_t heads, int64_t rows) {
  BlockPlace place;
  int64_t number = blockIdx.x;
  place.tile = number % tiles;
  number /= tiles;
  place.head = number % heads;
  number /= heads;
  place.row = number % rows;
  place.chunk = number / rows;
  return place;
}

__host__ __device__ inline int64_t tiles_of(int64_t positions, int64_t size) { return (positions + size - 1) / size; }

struct Sources {
  bool is_wide;  ///< of all factors

  __device__ HeadSource q(const AttentionWork &work, int64_t row, int64_t head) const {
    return {work.dtype, with_pitch(query_rows(work), work.q_pitch), work.q, is_wide, row, head};
  }
  __device__ HeadSource k(const AttentionWork &work, int64_t row, int64_t head) const {
    return {work.dtype, with_pitch(key_rows(work), work.k_pitch), work.k, is_wide, row, head};
  }
  __device__ HeadSource v(const AttentionWork &work, int64_t row, int64_t head) const {
    return {work.dtype, with_pitch(key_rows(work), work.v_pitch), work.v, is_wide, row, head};
  }
  __device__ HeadSource dy(const AttentionWork &work, int64_t row, int64_t head) const {
    return {work.dtype, query_rows(work), work.dy, is_wide, row, head};
  }
};

template <typename C>
__global__ void __launch_bounds__(kBlockThreads, 2)
    attention_statistics(const AttentionWork work, const Sources sources) {
  __shared__ TilePieces<C, 1> shared;
  const BlockPlace place = block_place(tiles_of(work.length, kTileRows), work.heads, work.rows);
  const Sight sight(work, place.row);
  const int64_t first_query = place.tile * kTileRows, query = first_query + thread_down() * 4;
  const MatrixLines q = sources.q(work, place.row, place.head).by_position();
  const MatrixLines k = sources.k(work, place.row, place.head / (work.heads / work.key_heads)).by_position();
  ExpSum<C> totals[4] = {no_exp_sum<C>(), no_exp_sum<C>(), no_exp_sum<C>(), no_exp_sum<C>()};
  const int64_t end = sight.keys_end(first_query + kTileRows);
  for (int64_t first_key = 0; first_key < end; first_key += kTileColumns) {
    Sums<C, 1> scores;
    sum_tile(q, k, TilePlace{0, 0, first_query, first_key}, 0, shared, scores);
    TUTTI_UNROLL
    for (int i = 0; i < 4; ++i) {
      C seen[4];
      TUTTI_UNROLL
      for (int j = 0; j < 4; ++j)
        seen[j] = sight.sees(query + i, first_key + thread_across() * 4 + j)
                      ? scores.values[0][i][0][j] * static_cast<C>(work.scale)
                      : -C(HUGE_VAL);
      add_exp_sum<4>(totals[i], seen);
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int mask = 1; mask < TileShape::kAcross; mask *= 2)
      totals[i] = combine_exp_sums(totals[i], exchanged(totals[i], mask));
    if (thread_across() != 0 || query + i >= work.length) continue;
    const int64_t at = (place.row * work.heads + place.head) * work.length + query + i;
    // Of no keys it is what makes every probability 0.
    static_cast<C *>(work.statistics)[at] = totals[i].sum == 0 ? C(HUGE_VAL) : totals[i].log();
  }
}

/// For each query and head the sum of dy y: what is subtracted from the gradients of its probabilities.
template <typename C>
__global__ void attention_sums(const AttentionWork work) {
  const int64_t queries = work.rows * work.length * work.heads;
  const int lane = static_cast<int>(threadIdx.x) % warpSize;
  for (int64_t row = grid_thread() / warpSize; row < queries; row += grid_threads() / warpSize) {
    C sum = 0;
    for (int64_t at = row * work.channels + lane; at < (row + 1) * work.channels; at += warpSize)
      sum += load_float<C>(work.dtype, work.dy, at) * load_float<C>(work.dtype, work.y, at);
    for (int mask = warpSize / 2; mask > 0; mask /= 2)
      sum += gpu_shuffle_xor(sum, mask);
    if (lane != 0) continue;
    const int64_t head = row % work.heads, query = row / work.heads % work.length;
    static_cast<C *>(work.scratch)[(row / work.heads / work.length * work.heads + head) * work.length + query] = sum;
  }
}

// ---- products with probabilities, or with the gradients of scores ----

enum class AttentionResult { y, dq, dk, dv };

constexpr bool is_of_queries(AttentionResult made) { return made == AttentionResult::y || made == AttentionResult::dq; }
constexpr bool has_slopes(AttentionResult made) { return made == AttentionResult::dq || made == AttentionResult::dk; }

/// result += weights columns, for the channels from `channel` on: the weights of a few columns at a time in shared
/// memory.
template <typename C>
__device__ inline void add_weighted(const Sums<C, 1> &weights, const MatrixLines &columns, int64_t first_column,
                                    int64_t channel, TilePieces<C, 1> &shared, Sums<C, 1> &result) {
  using Pieces = TilePieces<C, 1>;
  Piece<C, MatrixLines, kTileColumns, Pieces::kDepth> piece(columns, channel);
  for (int slice = 0; slice < kTileColumns; slice += Pieces::kDepth) {
    piece.get(first_column + slice);
    const int term = thread_across() * 4 - slice;
    if (term >= 0 && term < Pieces::kDepth) {
      TUTTI_UNROLL
      for (int j = 0; j < 4; ++j) {
        Quad<C> quad;
        TUTTI_UNROLL
        for (int i = 0; i < 4; ++i)
          quad.values[i] = weights.values[0][i][0][j];
        shared.a[0][(term + j) * Pieces::kPitchA + thread_down()] = quad;
      }
    }
    piece.put(shared.b[0]);
    __syncthreads();
    for (int i = 0; i < Pieces::kDepth; ++i)
      result.add_products(shared.a[0] + i * Pieces::kPitchA + thread_down(),
                          shared.b[0] + i * Pieces::kPitchB + thread_across());
    __syncthreads();
  }
}

/// What is forgotten of the probabilities of one row and head: four keys from a multiple of four on have a block of
/// numbers for each query.
struct Forgetting {
  uint32_t least = 0;
  uint64_t key = 0, row = 0, first_block = 0, blocks = 0;

  __device__ void begin(const AttentionWork &work, int64_t row_of_array, int64_t head) {
    const AttentionForgetting &from = work.forgets;
    const int64_t part = from.has_batch != 0 ? row_of_array % from.factor : row_of_array;
    least = from.least;
    key = random_key(static_cast<uint64_t>(from.scalars[TUTTI_RUN_SEED]), from.stream,
                     static_cast<uint64_t>(from.scalars[TUTTI_RUN_BATCH_COUNTER]), from.iteration);
    row = from.has_batch != 0 ? static_cast<uint64_t>(from.scalars[TUTTI_RUN_ROW_OFFSET] + row_of_array / from.factor)
                              : 0;
    blocks = static_cast<uint64_t>(from.blocks);
    first_block = static_cast<uint64_t>((part * work.heads + head) * work.length) * blocks;
  }
  __device__ PhiloxBlock words(int64_t query, int64_t first_key) const {
    return philox_block(key, row,
                        first_block + static_cast<uint64_t>(query) * blocks + static_cast<uint64_t>(first_key / 4));
  }
};

/// The rows of tiles are queries for y and dq, keys for dk and dv; the columns the others.
template <typename C, AttentionResult kMade, bool kForgets>
struct WeightedTiles {
  static constexpr bool kOfQueries = is_of_queries(kMade);

  const AttentionWork &work;
  const Sources &sources;
  TilePieces<C, 1> &shared;
  const Sight sight;
  const BlockPlace place;
  const int64_t first_row, channel;
  Forgetting forgetting;
  Sums<C, 1> result;

  __device__ WeightedTiles(const AttentionWork &work_, const Sources &sources_, TilePieces<C, 1> &shared_,
                           const BlockPlace &place_)
      : work(work_),
        sources(sources_),
        shared(shared_),
        sight(work_, place_.row),
        place(place_),
        first_row(place_.tile * kTileRows),
        channel(place_.chunk * kTileColumns) {}

  __device__ HeadSource q(int64_t head) const { return sources.q(work, place.row, head); }
  __device__ HeadSource k(int64_t head) const { return sources.k(work, place.row, head); }
  __device__ HeadSource v(int64_t head) const { return sources.v(work, place.row, head); }
  __device__ HeadSource dy(int64_t head) const { return sources.dy(work, place.row, head); }

  /// What the columns of one head of queries, and of its keys, give.
  __device__ void add_head(int64_t query_head, int64_t key_head) {
    const MatrixLines queries = q(query_head).by_position(), keys = k(key_head).by_position();
    const MatrixLines slopes_of_y = dy(query_head).by_position(), values = v(key_head).by_position();
    const int64_t seen_keys = sight.keys;
    if constexpr (kForgets) forgetting.begin(work, place.row, query_head);
    const MatrixLines columns = kMade == AttentionResult::y    ? v(key_head).by_channel(seen_keys)
                                : kMade == AttentionResult::dq ? k(key_head).by_channel(seen_keys)
                                : kMade == AttentionResult::dk ? q(query_head).by_channel(work.length)
                                                               : dy(query_head).by_channel(work.length);
    int64_t begin = 0, end = 0;
    if constexpr (kOfQueries) {
      end = sight.keys_end(first_row + kTileRows);
    } else {
      begin = sight.first_query(first_row) / kTileColumns * kTileColumns;
      end = work.length;
    }
    for (int64_t first_column = begin; first_column < end; first_column += kTileColumns) {
      const TilePlace tile{0, 0, first_row, first_column};
      Sums<C, 1> weights;
      sum_tile(kOfQueries ? queries : keys, kOfQueries ? keys : queries, tile, 0, shared, weights);
      if constexpr (has_slopes(kMade)) {
        Sums<C, 1> slopes;
        sum_tile(kOfQueries ? slopes_of_y : values, kOfQueries ? values : slopes_of_y, tile, 0, shared, slopes);
        weigh(query_head, first_column, weights, slopes);
      } else {
        weigh(query_head, first_column, weights, weights);
      }
      add_weighted(weights, columns, first_column, channel, shared, result);
    }
  }

  /// factors[i][j] of the weights of a tile: 0 for what is forgotten.
  __device__ void draw(int64_t first_column, C factors[4][4]) const {
    const C kept = static_cast<C>(work.forgets.scale);
    const int64_t down = first_row + thread_down() * 4, across = first_column + thread_across() * 4;
    TUTTI_UNROLL
    for (int line = 0; line < 4; ++line) {
      const PhiloxBlock block =
          kOfQueries ? forgetting.words(down + line, across) : forgetting.words(across + line, down);
      TUTTI_UNROLL
      for (int k = 0; k < 4; ++k)
        factors[kOfQueries ? line : k][kOfQueries ? k : line] = block.words[k] >> 8 >= forgetting.least ? kept : C(0);
    }
  }

  /// From scores to probabilities, or to the gradients of the scaled scores.
  __device__ void weigh(int64_t query_head, int64_t first_column, Sums<C, 1> &weights, const Sums<C, 1> &slopes) const {
    const int64_t numbers = (place.row * work.heads + query_head) * work.length;
    const C scale = static_cast<C>(work.scale);
    C factors[4][4];
    if constexpr (kForgets) draw(first_column, factors);
    TUTTI_UNROLL
    for (int i = 0; i < 4; ++i) {
      TUTTI_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int64_t down = first_row + thread_down() * 4 + i, across = first_column + thread_across() * 4 + j;
        const int64_t query = kOfQueries ? down : across, key = kOfQueries ? across : down;
        C &weight = weights.values[0][i][0][j];
        if (!sight.sees(query, key)) {
          weight = 0;
          continue;
        }
        weight = std::exp(weight * scale - static_cast<const C *>(work.statistics)[numbers + query]);
        if constexpr (has_slopes(kMade)) {
          C slope = slopes.values[0][i][0][j];
          if constexpr (kForgets) slope *= factors[i][j];
          weight *= (slope - static_cast<const C *>(work.scratch)[numbers + query]) * scale;
        } else if constexpr (kForgets) {
          weight *= factors[i][j];
        }
      }
    }
  }
};

template <typename C, AttentionResult kMade, bool kForgets>
__global__ void __launch_bounds__(kBlockThreads, 2)
    attention_products(const AttentionWork work, const Sources sources, void *made, bool is_wide) {
  __shared__ TilePieces<C, 1> shared;
  const HeadRows rows = is_of_queries(kMade) ? query_rows(work) : key_rows(work);
  WeightedTiles<C, kMade, kForgets> tiles(work, sources, shared,
                                          block_place(tiles_of(rows.length, kTileRows), rows.heads, work.rows));
  const int64_t sharing = work.heads / work.key_heads, head = tiles.place.head;
  if constexpr (is_of_queries(kMade)) {
    tiles.add_head(head, head / sharing);
  } else {
    for (int64_t query_head = head * sharing; query_head < (head + 1) * sharing; ++query_head)
      tiles.add_head(query_head, head);
  }
  HeadTarget target{};
  target.array.data = made;
  target.array.dtype = work.dtype;
  target.array.is_wide = is_wide;
  target.rows = rows.length;
  target.columns = work.channels;
  target.first = rows.first(tiles.place.row, head);
  target.stride = rows.stride();
  tiles.result.store(target, NoEpilogue{}, tiles.first_row + thread_down() * 4, tiles.channel + thread_across() * 4);
}

// ---- launches ----

bool is_wide_factor(const AttentionWork &work, const void *data, int64_t pitch = 0) {
  return is_wide(data, work.dtype, work.channels | pitch);
}

Sources sources_of(const AttentionWork &work) {
  return {is_wide_factor(work, work.q, work.q_pitch) && is_wide_factor(work, work.k, work.k_pitch) &&
          is_wide_factor(work, work.v, work.v_pitch) && (work.dy == nullptr || is_wide_factor(work, work.dy))};
}

template <typename C, AttentionResult kMade>
gpuError_t launch_products(const AttentionWork &work, void *made, gpuStream_t stream) {
  const int64_t length = is_of_queries(kMade) ? work.length : work.key_length;
  const int64_t heads = is_of_queries(kMade) ? work.heads : work.key_heads;
  const int64_t blocks = tiles_of(length, kTileRows) * heads * work.rows * tiles_of(work.channels, kTileColumns);
  if (blocks == 0) return gpuSuccess;
  if (blocks > INT32_MAX) return gpuErrorInvalidValue;
  const auto kernel =
      work.forgets.least != 0 ? attention_products<C, kMade, true> : attention_products<C, kMade, false>;
  return gpu_launch(kernel, static_cast<unsigned>(blocks), kBlockThreads, 0, stream, work, sources_of(work), made,
                    is_wide_factor(work, made));
}

template <typename C>
gpuError_t launch_forward(const AttentionWork &work, gpuStream_t stream) {
  const int64_t blocks = tiles_of(work.length, kTileRows) * work.heads * work.rows;
  if (blocks == 0) return gpuSuccess;
  if (blocks > INT32_MAX) return gpuErrorInvalidValue;
  const gpuError_t error = gpu_launch(attention_statistics<C>, static_cast<unsigned>(blocks), kBlockThreads, 0, stream,
                                      work, sources_of(work));
  return error == gpuSuccess ? launch_products<C, AttentionResult::y>(work, work.y, stream) : error;
}

template <typename C>
gpuError_t launch_gradient(const AttentionWork &work, gpuStream_t stream) {
  const int64_t queries = work.rows * work.length * work.heads;
  gpuError_t error = gpuSuccess;
  if (queries > 0)
    error = gpu_launch(attention_sums<C>, blocks_for(queries * kRowThreads), kBlockThreads, 0, stream, work);
  if (error == gpuSuccess) error = launch_products<C, AttentionResult::dq>(work, work.dq, stream);
  if (error == gpuSuccess) error = launch_products<C, AttentionResult::dk>(work, work.dk, stream);
  return error == gpuSuccess ? launch_products<C, AttentionResult::dv>(work, work.dv, stream) : error;
}

}  // namespace

gpuError_t launch_attention(const AttentionWork &work, gpuStream_t stream) {
  return work.dtype == DType::f64 ? launch_forward<double>(work, stream) : launch_forward<float>(work, stream);
}

int64_t attention_gradient_scratch_bytes(const AttentionWork &work) {
  return work.rows * work.heads * work.length * (work.dtype == DType::f64 ? 8 : 4);
}

gpuError_t launch_attention_gradient(const AttentionWork &work, gpuStream_t stream) {
  return work.dtype == DType::f64 ? launch_gradient<double>(work, stream) : launch_gradient<float>(work, stream);
}

}  // namespace tutti::impl::backend::gpu
