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
#ifndef TUTTI_BACKEND_GPU_DEVICE_PRODUCT_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_PRODUCT_INL_H_

#include "backend/gpu/floats-inl.h"
#include "backend/gpu/image_places-inl.h"
#include "backend/gpu/product_plan.h"

namespace tutti::impl::backend::gpu {

struct FactorArray {
  const void *data;
  DType dtype;
  int32_t is_wide;  ///< do four neighbours lie together, aligned?
};

/// addend[addend_first + row * addend_row + column * addend_column] is added to the results, unless it is null.
struct ResultArray {
  void *data;
  DType dtype;
  int32_t is_wide;
  const void *addend;
  int64_t addend_row, addend_column, addend_first;

  __device__ int64_t addend_at(int64_t row, int64_t column) const {
    return addend_first + row * addend_row + column * addend_column;
  }
};

template <typename SourceA, typename SourceB, typename Target>
struct Product {
  SourceA a;
  SourceB b;
  Target target;
  int64_t batches, m, n;  ///< m is the most rows that any batch has
  int64_t splits, split_depth;
  void *parts;  ///< [splits, batches, m, n] of C; null where sums are not split
};

/// Are runs of four elements aligned, if they begin at multiples of these offsets?
inline bool is_wide(const void *data, DType dtype, int64_t offsets) {
  const uintptr_t bytes = dtype == DType::f32 ? 16 : 8;  // f64 is read one by one
  return offsets % 4 == 0 && reinterpret_cast<uintptr_t>(data) % bytes == 0;
}

// ---- four neighbours ----

template <typename C>
struct alignas(16) Quad {
  C values[4];
};

/// As they lie in memory: to convert them at once would be to wait for them.
template <typename C>
struct Fetched {
  uint32_t words[4] = {};  // two halves to a word if they were read together
};
template <>
struct Fetched<double> {
  double values[4] = {};
};

struct alignas(8) Bytes8 {
  uint32_t words[2];
};

__device__ inline void fetch_four(const FactorArray &from, int64_t position, Fetched<float> &to) {
  if (from.dtype == DType::f32) {
    const Bytes16 read = *reinterpret_cast<const Bytes16 *>(static_cast<const uint32_t *>(from.data) + position);
    TUTTI_UNROLL
    for (int i = 0; i < 4; ++i)
      to.words[i] = read.words[i];
  } else {
    const Bytes8 read = *reinterpret_cast<const Bytes8 *>(static_cast<const uint16_t *>(from.data) + position);
    to.words[0] = read.words[0];
    to.words[1] = read.words[1];
  }
}
__device__ inline void fetch_four(const FactorArray &from, int64_t position, Fetched<double> &to) {
  TUTTI_UNROLL
  for (int i = 0; i < 4; ++i)
    to.values[i] = static_cast<const double *>(from.data)[position + i];
}

__device__ inline void fetch_one(const FactorArray &from, int64_t position, uint32_t &to) {
  to = from.dtype == DType::f32 ? static_cast<const uint32_t *>(from.data)[position]
                                : static_cast<const uint16_t *>(from.data)[position];
}
__device__ inline void fetch_one(const FactorArray &from, int64_t position, double &to) {
  to = static_cast<const double *>(from.data)[position];
}
__device__ inline uint32_t &slot(Fetched<float> &fetched, int i) { return fetched.words[i]; }
__device__ inline double &slot(Fetched<double> &fetched, int i) { return fetched.values[i]; }

__device__ inline Quad<float> convert(const FactorArray &from, const Fetched<float> &fetched) {
  Quad<float> quad;
  if (from.dtype == DType::f32) {
    TUTTI_UNROLL
    for (int i = 0; i < 4; ++i)
      memcpy(&quad.values[i], &fetched.words[i], sizeof(float));
  } else {
    TUTTI_UNROLL
    for (int i = 0; i < 4; ++i)
      quad.values[i] =
          half_to_float(from.dtype, from.is_wide ? fetched.words[i / 2] >> (i % 2 * 16) : fetched.words[i]);
  }
  return quad;
}
__device__ inline Quad<double> convert(const FactorArray &, const Fetched<double> &fetched) {
  return {{fetched.values[0], fetched.values[1], fetched.values[2], fetched.values[3]}};
}

/// What four neighbours from (line, depth) on are, 0 outside of the source; `known` is from.line(line).
template <typename C, typename Source>
__device__ inline void fetch(const Source &from, int64_t line, const typename Source::Line &known, int64_t depth,
                             Fetched<C> &to) {
  to = Fetched<C>();
  if (line >= from.lines || depth >= from.depth) return;
  if (from.array.is_wide) {
    const int64_t position = from.position(known, from.step(depth));
    if (position >= 0) fetch_four(from.array, position, to);
    return;
  }
  TUTTI_UNROLL
  for (int i = 0; i < 4; ++i) {
    int64_t position = -1;
    if (from.runs_along_depth()) {
      if (depth + i < from.depth) position = from.position(known, from.step(depth + i));
    } else {
      if (line + i < from.lines) position = from.position(from.line(line + i), from.step(depth));
    }
    if (position >= 0) fetch_one(from.array, position, slot(to, i));
  }
}

// ---- a piece of a factor: kDepth terms of kLines lines ----

/// How the threads of a block bring a piece from memory to shared memory, which has the lines of a term together.
template <typename C, typename Source, int kLines, int kDepth>
struct Piece {
  static constexpr int kFetches = kLines * kDepth / 4 / kBlockThreads;  ///< of four neighbours, by each thread
  static constexpr int kPitch = kLines / 4 + 1;  ///< quads from term to term; odd: fewer conflicts
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
      fetch<C>(from, first_line + line, known[i], first_term + term, fetched[i]);
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

// ---- results ----

__device__ inline void store_four(DType dtype, void *data, int64_t position, const Quad<float> &quad) {
  if (dtype == DType::f32) {
    *reinterpret_cast<Quad<float> *>(static_cast<float *>(data) + position) = quad;
  } else {
    Bytes8 packed;
    TUTTI_UNROLL
    for (int i = 0; i < 2; ++i)
      packed.words[i] = static_cast<uint32_t>(float_to_half(dtype, quad.values[2 * i])) |
                        static_cast<uint32_t>(float_to_half(dtype, quad.values[2 * i + 1])) << 16;
    *reinterpret_cast<Bytes8 *>(static_cast<uint16_t *>(data) + position) = packed;
  }
}
__device__ inline void store_four(DType, void *data, int64_t position, const Quad<double> &quad) {
  TUTTI_UNROLL
  for (int i = 0; i < 4; ++i)
    static_cast<double *>(data)[position + i] = quad.values[i];
}

/// Neighbours in a row, those that there are.
template <typename C, typename Target>
__device__ inline void put_results(const Target &target, int64_t row, int64_t column, Quad<C> quad) {
  const ResultArray &array = target.array;
  if (row >= target.rows || column >= target.columns) return;
  TUTTI_UNROLL
  for (int i = 0; i < 4 && array.addend != nullptr; ++i) {
    if (column + i < target.columns)
      quad.values[i] += load_float<C>(array.dtype, array.addend, array.addend_at(row, column + i));
  }
  const int64_t position = target.row(row) + column;
  if (array.is_wide) return store_four(array.dtype, array.data, position, quad);
  TUTTI_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (column + i < target.columns) store_float<C>(array.dtype, array.data, position + i, quad.values[i]);
  }
}

/// One split of one batch in the memory for parts.
struct PartTarget {
  ResultArray array;
  int64_t rows, columns, first;
  __device__ int64_t row(int64_t row) const { return first + row * columns; }
};

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
            values[p][i][q][j] += left[p].values[i] * right[q].values[j];
        }
      }
    }
  }

  template <typename Target>
  __device__ void store(const Target &target, int64_t first_row, int64_t first_column) const {
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
          put_results<C>(target, first_row + p * TileShape::kDown * 4 + i, first_column + q * TileShape::kAcross * 4,
                         quad);
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

/// Sums of a tile over the terms from `begin` on; b has as many terms as a.
template <typename C, int kQuads, typename SourceA, typename SourceB>
__device__ inline void sum_tile(const SourceA &a, const SourceB &b, const TilePlace &place, int64_t begin,
                                Sums<C, kQuads> &sums) {
  constexpr int kDepth = TileShape::depth(kQuads);
  using PieceA = Piece<C, SourceA, TileShape::rows(kQuads), kDepth>;
  using PieceB = Piece<C, SourceB, TileShape::columns(kQuads), kDepth>;
  __shared__ Quad<C> shared_a[2][kDepth * PieceA::kPitch];
  __shared__ Quad<C> shared_b[2][kDepth * PieceB::kPitch];
  if (begin >= a.depth) return;
  PieceA piece_a(a, place.row);
  PieceB piece_b(b, place.column);
  piece_a.get(begin);
  piece_b.get(begin);
  piece_a.put(shared_a[0]);
  piece_b.put(shared_b[0]);
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
      sums.add_products(shared_a[half] + i * PieceA::kPitch + down, shared_b[half] + i * PieceB::kPitch + across);
    half ^= 1;
    if (has_next) {
      piece_a.put(shared_a[half]);
      piece_b.put(shared_b[half]);
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
  Sums<C, kQuads> sums;
  sum_tile<C, kQuads>(a, b, place, begin, sums);
  const int64_t row = place.row + static_cast<int64_t>(threadIdx.x) / TileShape::kAcross * 4;
  const int64_t column = place.column + static_cast<int64_t>(threadIdx.x) % TileShape::kAcross * 4;
  if (product.parts == nullptr) return sums.store(product.target.at_batch(place.batch), row, column);
  PartTarget part{};
  part.array.data = product.parts;
  part.array.dtype = sizeof(C) == sizeof(double) ? DType::f64 : DType::f32;
  part.array.is_wide = product.n % 4 == 0;
  part.rows = product.m;
  part.columns = product.n;
  part.first = (place.split * product.batches + place.batch) * product.m * product.n;
  sums.store(part, row, column);
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
    if (array.addend != nullptr) sum += load_float<C>(array.dtype, array.addend, array.addend_at(row, column));
    store_float<C>(array.dtype, array.data, target.row(row) + column, sum);
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

/// Fills the product's splits from the plan and computes it; scratch memory as planned.
template <typename AnyProduct>
gpuError_t launch_product(AnyProduct product, const ProductPlan &plan, void *scratch, gpuStream_t stream) {
  if (product.batches == 0 || product.m == 0 || product.n == 0) return gpuSuccess;
  product.splits = plan.splits;
  product.split_depth = plan.split_depth;
  product.parts = plan.splits > 1 ? scratch : nullptr;
  if (product.target.array.dtype == DType::f64) return launch_tiles<double, 1>(product, stream);
  return plan.quads == 2 ? launch_tiles<float, 2>(product, stream) : launch_tiles<float, 1>(product, stream);
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_PRODUCT_INL_H_
