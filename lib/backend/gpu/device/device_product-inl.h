// SPDX-License-Identifier: Apache-2.0
//
// The core of all products: matrices (device_matmul.cu) and convolutions (device_conv2d.cu), which differ in where the
// factors are read and where the results go. Tiles of results are summed in registers; the next piece of both factors
// is fetched from memory while the last one is multiplied from shared memory (Volkov, Demmel: "Benchmarking GPUs to
// tune dense linear algebra", SC 2008). Sums that are split into parts are added by a second kernel, in one order.
//
// A source of a factor has `lines` (rows of a, columns of b) and `depth` (terms of a sum):
//   at_batch(batch)            the source of one batch
//   runs_along_depth()         which way neighbours in memory lie
//   line(i), step(k)           what is to be known of a line (type Line), of a term
//   position(line, step)       element of the array, or -1: it is 0
//   array                      FactorArray
// A target has `rows` and `columns`, at_batch(batch), row(i) = element where a row begins, and `array`, a ResultArray.
//
// Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_PRODUCT_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_PRODUCT_INL_H_

#include "backend/gpu/device/floats-inl.h"
#include "backend/gpu/device/image_places-inl.h"
#include "backend/gpu/device/product_plan.h"
#include "backend/gpu/device/product_results-inl.h"

namespace tutti::impl::backend::gpu {

struct FactorArray {
  const void *data;
  DType dtype;
  int32_t is_wide;  ///< do four neighbours lie together, aligned?
};

/// `Finish`: an Epilogue, or NoEpilogue.
template <typename SourceA, typename SourceB, typename Target, typename Finish = NoEpilogue>
struct MatrixProduct {
  SourceA a;
  SourceB b;
  Target target;
  int64_t batches, m, n;  ///< m is the most rows that any batch has
  int64_t splits, split_depth;
  void *parts;  ///< [splits, batches, m, n] of C; null where sums are not split
  Finish finish;
};

// ---- sources ----

/// A matrix: rows of a or columns of b are its lines.
struct MatrixLines {
  using Line = int64_t;

  FactorArray array;
  int64_t lines, depth;
  int64_t line_stride, depth_stride;
  int64_t first;

  __device__ bool runs_along_depth() const { return depth_stride == 1; }
  __device__ int64_t line(int64_t i) const { return first + i * line_stride; }
  __device__ int64_t step(int64_t k) const { return k * depth_stride; }
  __device__ int64_t position(int64_t line, int64_t step) const { return line + step; }
};

// ---- four neighbours ----

/// As they lie in memory: to convert them at once would be to wait for them.
template <typename C>
struct Fetched {
  uint32_t words[4];  // two halves to a word if they were read together
};
template <>
struct Fetched<double> {
  double values[4];
};

// Elements have numbers known when this is compiled, loops would leave them in memory until they are unrolled.
__device__ inline void fetch_four(const FactorArray &from, int64_t position, Fetched<float> &to) {
  Bytes16 read = {};
  if (from.dtype == DType::f32) {
    read = *reinterpret_cast<const Bytes16 *>(static_cast<const uint32_t *>(from.data) + position);
  } else {
    const Bytes8 halves = *reinterpret_cast<const Bytes8 *>(static_cast<const uint16_t *>(from.data) + position);
    read = {{halves.words[0], halves.words[1], 0, 0}};
  }
  to = {{read.words[0], read.words[1], read.words[2], read.words[3]}};
}
__device__ inline void fetch_four(const FactorArray &from, int64_t position, Fetched<double> &to) {
  const double *const read = static_cast<const double *>(from.data) + position;
  to = {{read[0], read[1], read[2], read[3]}};
}

__device__ inline uint32_t fetch_one(const FactorArray &from, int64_t position, Fetched<float> *) {
  return from.dtype == DType::f32 ? static_cast<const uint32_t *>(from.data)[position]
                                  : static_cast<const uint16_t *>(from.data)[position];
}
__device__ inline double fetch_one(const FactorArray &from, int64_t position, Fetched<double> *) {
  return static_cast<const double *>(from.data)[position];
}

__device__ inline Quad<float> convert(const FactorArray &from, const Fetched<float> &fetched) {
  Quad<float> quad;
  if (from.dtype == DType::f32) {
    TUTTI_UNROLL
    for (int i = 0; i < 4; ++i)
      memcpy(&quad.values[i], &fetched.words[i], sizeof(float));
  } else if (from.is_wide) {
    TUTTI_UNROLL
    for (int i = 0; i < 4; ++i)
      quad.values[i] = half_to_float(from.dtype, fetched.words[i / 2] >> (i % 2 * 16));
  } else {
    TUTTI_UNROLL
    for (int i = 0; i < 4; ++i)
      quad.values[i] = half_to_float(from.dtype, fetched.words[i]);
  }
  return quad;
}
__device__ inline Quad<double> convert(const FactorArray &, const Fetched<double> &fetched) {
  return {{fetched.values[0], fetched.values[1], fetched.values[2], fetched.values[3]}};
}

/// Neighbour `i` of (line, depth), 0 outside of the source; `known` is from.line(line).
template <typename C, typename Source>
__device__ inline auto fetch_neighbor(const Source &from, int64_t line, const typename Source::Line &known,
                                      int64_t depth, int i) {
  int64_t position = -1;
  if (from.runs_along_depth()) {
    if (depth + i < from.depth) position = from.position(known, from.step(depth + i));
  } else {
    if (line + i < from.lines) position = from.position(from.line(line + i), from.step(depth));
  }
  Fetched<C> *const type = nullptr;
  return position < 0 ? decltype(fetch_one(from.array, position, type))(0) : fetch_one(from.array, position, type);
}

/// The four neighbours from (line, depth) on.
template <typename C, typename Source>
__device__ inline Fetched<C> fetch(const Source &from, int64_t line, const typename Source::Line &known,
                                   int64_t depth) {
  Fetched<C> fetched{};
  if (line >= from.lines || depth >= from.depth) return fetched;
  if (from.array.is_wide) {
    const int64_t position = from.position(known, from.step(depth));
    if (position >= 0) fetch_four(from.array, position, fetched);
  } else {
    fetched = {{fetch_neighbor<C>(from, line, known, depth, 0), fetch_neighbor<C>(from, line, known, depth, 1),
                fetch_neighbor<C>(from, line, known, depth, 2), fetch_neighbor<C>(from, line, known, depth, 3)}};
  }
  return fetched;
}

// ---- a piece of a factor: kDepth terms of kLines lines ----

/// Quads from term to term in shared memory; odd: fewer conflicts.
constexpr int pitch_of(int lines) { return lines / 4 + 1; }

/// How the threads of a block bring a piece from memory to shared memory, which has the lines of a term together.
template <typename C, typename Source, int kLines, int kDepth>
struct Piece {
  static constexpr int kFetches = kLines * kDepth / 4 / kBlockThreads;  ///< of four neighbours, by each thread
  static constexpr int kPitch = pitch_of(kLines);
  static_assert(kFetches >= 1);

  const Source &from;
  int64_t first_line;
  typename Source::Line known[kFetches];
  Fetched<C> fetched[kFetches];

  __device__ Piece(const Source &source, int64_t line_) : from(source), first_line(line_) {
    TUTTI_UNROLL
    for (int i = 0; i < kFetches; ++i) {
      int line, term;
      place(i, line, term);
      known[i] = from.line(first_line + line);
    }
  }

  /// Line and term, within the piece, of this thread's fetch `i`.
  __device__ void place(int i, int &line, int &term) const {
    const int number = static_cast<int>(threadIdx.x) + i * kBlockThreads;
    if (from.runs_along_depth()) {
      line = number / (kDepth / 4);
      term = number % (kDepth / 4) * 4;
    } else {
      line = number % (kLines / 4) * 4;
      term = number / (kLines / 4);
    }
  }

  __device__ void get(int64_t first_term) {
    TUTTI_UNROLL
    for (int i = 0; i < kFetches; ++i) {
      int line, term;
      place(i, line, term);
      fetched[i] = fetch<C>(from, first_line + line, known[i], first_term + term);
    }
  }

  __device__ void put(Quad<C> *shared) const {
    TUTTI_UNROLL
    for (int i = 0; i < kFetches; ++i) {
      int line, term;
      place(i, line, term);
      const Quad<C> quad = convert(from.array, fetched[i]);
      if (from.runs_along_depth()) {
        TUTTI_UNROLL
        for (int j = 0; j < 4; ++j)
          shared[(term + j) * kPitch + line / 4].values[line % 4] = quad.values[j];
      } else {
        shared[term * kPitch + line / 4] = quad;
      }
    }
  }
};

// ---- tiles ----

/// The squares of 4 x 4 results that a thread has.
template <typename C, int kQuads>
struct Sums {
  C values[kQuads][4][kQuads][4] = {};

  __device__ void add_products(const Quad<C> *a, const Quad<C> *b) {
    Quad<C> left[kQuads], right[kQuads];
    TUTTI_UNROLL
    for (int q = 0; q < kQuads; ++q) {
      left[q] = a[q * TileShape::kDown];
      right[q] = b[q * TileShape::kAcross];
    }
    TUTTI_UNROLL
    for (int p = 0; p < kQuads; ++p) {
      TUTTI_UNROLL
      for (int i = 0; i < 4; ++i) {
        TUTTI_UNROLL
        for (int q = 0; q < kQuads; ++q) {
          TUTTI_UNROLL
          for (int j = 0; j < 4; ++j)
            values[p][i][q][j] = gpu_multiply_add(left[p].values[i], right[q].values[j], values[p][i][q][j]);
        }
      }
    }
  }

  template <typename Target, typename Finish>
  __device__ void store(const Target &target, const Finish &finish, int64_t first_row, int64_t first_column) const {
    TUTTI_UNROLL
    for (int p = 0; p < kQuads; ++p) {
      TUTTI_UNROLL
      for (int i = 0; i < 4; ++i) {
        TUTTI_UNROLL
        for (int q = 0; q < kQuads; ++q) {
          Quad<C> quad;
          TUTTI_UNROLL
          for (int j = 0; j < 4; ++j)
            quad.values[j] = values[p][i][q][j];
          put_results<C>(target, finish, first_row + p * TileShape::kDown * 4 + i,
                         first_column + q * TileShape::kAcross * 4, quad);
        }
      }
    }
  }
};

/// Where a tile lies in the whole work.
struct TilePlace {
  int64_t split, batch, row, column;
};

template <typename AnyProduct>
__device__ inline TilePlace place_of(const AnyProduct &product, int64_t tile, int rows, int columns) {
  const int64_t across = (product.n + columns - 1) / columns, down = (product.m + rows - 1) / rows;
  TilePlace place;
  place.column = tile % across * columns;
  tile /= across;
  place.row = tile % down * rows;
  tile /= down;
  place.batch = tile % product.batches;
  place.split = tile / product.batches;
  return place;
}

/// Pieces of both factors in shared memory: the one that is multiplied and the next.
template <typename C, int kQuads>
struct TilePieces {
  static constexpr int kDepth = TileShape::depth(kQuads);
  static constexpr int kPitchA = pitch_of(TileShape::rows(kQuads)), kPitchB = pitch_of(TileShape::columns(kQuads));

  Quad<C> a[2][kDepth * kPitchA];
  Quad<C> b[2][kDepth * kPitchB];
};

/// Sums of a tile over the terms from `begin` on; b has as many terms as a. All threads are done with `shared` then.
template <typename C, int kQuads, typename SourceA, typename SourceB>
__device__ inline void sum_tile(const SourceA &a, const SourceB &b, const TilePlace &place, int64_t begin,
                                TilePieces<C, kQuads> &shared, Sums<C, kQuads> &sums) {
  constexpr int kDepth = TileShape::depth(kQuads);
  using PieceA = Piece<C, SourceA, TileShape::rows(kQuads), kDepth>;
  using PieceB = Piece<C, SourceB, TileShape::columns(kQuads), kDepth>;
  if (begin >= a.depth) return;
  PieceA piece_a(a, place.row);
  PieceB piece_b(b, place.column);
  piece_a.get(begin);
  piece_b.get(begin);
  piece_a.put(shared.a[0]);
  piece_b.put(shared.b[0]);
  __syncthreads();
  const int down = static_cast<int>(threadIdx.x) / TileShape::kAcross;
  const int across = static_cast<int>(threadIdx.x) % TileShape::kAcross;
  int half = 0;
  for (int64_t term = begin; term < a.depth; term += kDepth) {
    const bool has_next = term + kDepth < a.depth;
    if (has_next) {
      piece_a.get(term + kDepth);
      piece_b.get(term + kDepth);
    }
    for (int i = 0; i < kDepth; ++i)
      sums.add_products(shared.a[half] + i * PieceA::kPitch + down, shared.b[half] + i * PieceB::kPitch + across);
    half ^= 1;
    if (has_next) {
      piece_a.put(shared.a[half]);
      piece_b.put(shared.b[half]);
    }
    __syncthreads();
  }
}

template <typename C, int kQuads, typename AnyProduct>
__global__ void __launch_bounds__(kBlockThreads, 2) multiply_tiles(const AnyProduct product) {
  const TilePlace place = place_of(product, blockIdx.x, TileShape::rows(kQuads), TileShape::columns(kQuads));
  auto a = product.a.at_batch(place.batch);
  auto b = product.b.at_batch(place.batch);
  const int64_t begin = place.split * product.split_depth;
  if (product.splits > 1 && a.depth > begin + product.split_depth) a.depth = begin + product.split_depth;
  b.depth = a.depth;
  __shared__ TilePieces<C, kQuads> shared;
  Sums<C, kQuads> sums;
  sum_tile(a, b, place, begin, shared, sums);
  const int64_t row = place.row + static_cast<int64_t>(threadIdx.x) / TileShape::kAcross * 4;
  const int64_t column = place.column + static_cast<int64_t>(threadIdx.x) % TileShape::kAcross * 4;
  if (product.parts == nullptr) return sums.store(product.target.at_batch(place.batch), product.finish, row, column);
  PartTarget part{};
  part.array.data = product.parts;
  part.array.dtype = sizeof(C) == sizeof(double) ? DType::f64 : DType::f32;
  part.array.is_wide = product.n % 4 == 0;
  part.rows = product.m;
  part.columns = product.n;
  part.first = (place.split * product.batches + place.batch) * product.m * product.n;
  sums.store(part, NoEpilogue{}, row, column);
}

/// Results from their parts, part by part.
template <typename C, typename AnyProduct>
__global__ void add_parts(const AnyProduct product) {
  const int64_t matrix = product.m * product.n, results = product.batches * matrix;
  for (int64_t i = grid_thread(); i < results; i += grid_threads()) {
    C sum = 0;
    for (int64_t split = 0; split < product.splits; ++split)
      sum += static_cast<const C *>(product.parts)[split * results + i];
    const auto target = product.target.at_batch(i / matrix);
    const int64_t row = i % matrix / product.n, column = i % product.n;
    if (row >= target.rows) continue;
    const ResultArray &array = target.array;
    if (array.addend != nullptr) sum += load_float<C>(array.addend_dtype, array.addend, array.addend_at(row, column));
    const int64_t position = target.row(row) + column;
    finish_one(product.finish, position, array.first_column + column, sum);
    store_float<C>(array.dtype, array.data, position, sum);
  }
}

template <typename C, int kQuads, typename AnyProduct>
gpuError_t launch_tiles(const AnyProduct &product, gpuStream_t stream) {
  constexpr int64_t kRows = TileShape::rows(kQuads), kColumns = TileShape::columns(kQuads);
  const int64_t tiles =
      product.splits * product.batches * ((product.m + kRows - 1) / kRows) * ((product.n + kColumns - 1) / kColumns);
  if (tiles > INT32_MAX) return gpuErrorInvalidValue;
  const gpuError_t error = gpu_launch(multiply_tiles<C, kQuads, AnyProduct>, static_cast<unsigned>(tiles),
                                      kBlockThreads, 0, stream, product);
  if (error != gpuSuccess || product.parts == nullptr) return error;
  return gpu_launch(add_parts<C, AnyProduct>, blocks_for(product.batches * product.m * product.n), kBlockThreads, 0,
                    stream, product);
}

/// Fills the product's splits from the plan and computes it in C; scratch memory as planned.
template <typename C, typename AnyProduct>
gpuError_t launch_product(AnyProduct product, const ProductPlan &plan, void *scratch, gpuStream_t stream) {
  if (product.batches == 0 || product.m == 0 || product.n == 0) return gpuSuccess;
  product.splits = plan.splits;
  product.split_depth = plan.split_depth;
  product.parts = plan.splits > 1 ? scratch : nullptr;
  if constexpr (sizeof(C) == sizeof(float)) {
    if (plan.quads == 2) return launch_tiles<C, 2>(product, stream);
  }
  return launch_tiles<C, 1>(product, stream);
}

/// The product with an epilogue, or without one (null), in float.
template <typename SourceA, typename SourceB, typename Target>
gpuError_t launch_finished(const MatrixProduct<SourceA, SourceB, Target> &product, const Epilogue *epilogue,
                           const ProductPlan &plan, void *scratch, gpuStream_t stream) {
  if (epilogue == nullptr) return launch_product<float>(product, plan, scratch, stream);
  MatrixProduct<SourceA, SourceB, Target, Epilogue> finished{};
  finished.a = product.a;
  finished.b = product.b;
  finished.target = product.target;
  finished.batches = product.batches;
  finished.m = product.m;
  finished.n = product.n;
  finished.finish = *epilogue;
  return launch_product<float>(finished, plan, scratch, stream);
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_PRODUCT_INL_H_
