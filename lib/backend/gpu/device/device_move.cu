// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_move.h"

#include "backend/gpu/device/device-inl.h"
#include "backend/gpu/device/element_words-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Words on one side of a square that passes through shared memory.
constexpr int32_t kSquare = 32;
/// Axes shorter than this are not worth squares.
constexpr int64_t kLeastSide = 8;

struct ReadAxis {
  Divider dim;
  int64_t stride;
};

struct ReadPlan {
  void *to;
  const void *from;
  int64_t elements;
  int32_t rank;
  ReadAxis axes[kMoveAxes];
};

/// I: uint32_t or uint64_t, what positions are computed in.
template <typename W, typename I>
__global__ void read_strided(const ReadPlan plan) {
  W *const to = static_cast<W *>(plan.to);
  const W *const from = static_cast<const W *>(plan.from);
  for (int64_t element = grid_thread(); element < plan.elements; element += grid_threads()) {
    I rest = static_cast<I>(element);
    int64_t source = 0;
    for (int32_t axis = plan.rank - 1; axis > 0; --axis) {
      const I above = divide(rest, plan.axes[axis].dim);
      source +=
          static_cast<int64_t>(rest - above * static_cast<I>(plan.axes[axis].dim.divisor)) * plan.axes[axis].stride;
      rest = above;
    }
    to[element] = from[source + static_cast<int64_t>(rest) * plan.axes[0].stride];
  }
}

/// The result's last axis (columns) and the source's (rows), with squares of both; the axes that remain number the
/// planes.
struct SquarePlan {
  void *to;
  const void *from;
  int64_t rows, columns;
  int64_t row_squares, column_squares;
  int64_t to_row_stride;       ///< of the result, along rows; along columns it is 1
  int64_t from_column_stride;  ///< of the source, along columns; along rows it is 1
  int32_t rank;                ///< of the planes
  int64_t dims[kMoveAxes], to_strides[kMoveAxes], from_strides[kMoveAxes];
};

/// A block per square. Reads run along rows, writes along columns; the 33rd column keeps the banks apart.
template <typename W>
__global__ void transpose_squares(const SquarePlan plan) {
  __shared__ W square[kSquare][kSquare + 1];
  int64_t rest = blockIdx.x;
  const int64_t column = rest % plan.column_squares * kSquare;
  rest /= plan.column_squares;
  const int64_t row = rest % plan.row_squares * kSquare;
  rest /= plan.row_squares;
  W *to = static_cast<W *>(plan.to);
  const W *from = static_cast<const W *>(plan.from);
  for (int32_t axis = plan.rank - 1; axis >= 0; --axis) {
    const int64_t index = rest % plan.dims[axis];
    rest /= plan.dims[axis];
    to += index * plan.to_strides[axis];
    from += index * plan.from_strides[axis];
  }
  const int32_t lane = static_cast<int32_t>(threadIdx.x) % kSquare, step = static_cast<int32_t>(blockDim.x) / kSquare;
  const int32_t first = static_cast<int32_t>(threadIdx.x) / kSquare;
  for (int32_t i = first; i < kSquare; i += step) {
    if (column + i < plan.columns && row + lane < plan.rows)
      square[i][lane] = from[(column + i) * plan.from_column_stride + row + lane];
  }
  __syncthreads();
  for (int32_t i = first; i < kSquare; i += step) {
    if (row + i < plan.rows && column + lane < plan.columns)
      to[(row + i) * plan.to_row_stride + column + lane] = square[lane][i];
  }
}

struct PlaceAxis {
  Divider dim;
  int64_t low, step, count, stride;
};

struct PlacePlan {
  void *to;
  const void *from;
  Bytes16 fill;
  int64_t elements;
  int32_t rank;
  PlaceAxis axes[kMoveAxes];
};

/// Adds what an index of an axis contributes to the position in the source; false where the source has nothing.
__device__ inline bool place_index(const PlaceAxis &axis, int64_t index, int64_t *source) {
  int64_t place = index - axis.low;
  if (place < 0) return false;
  if (axis.step != 1) {
    if (place % axis.step != 0) return false;
    place /= axis.step;
  }
  *source += place * axis.stride;
  return place < axis.count;
}

template <typename W, typename I>
__global__ void place_elements(const PlacePlan plan) {
  W *const to = static_cast<W *>(plan.to);
  const W *const from = static_cast<const W *>(plan.from);
  for (int64_t element = grid_thread(); element < plan.elements; element += grid_threads()) {
    I rest = static_cast<I>(element);
    int64_t source = 0;
    bool is_inside = true;
    for (int32_t axis = plan.rank - 1; axis >= 0; --axis) {
      const I above = axis == 0 ? I(0) : divide(rest, plan.axes[axis].dim);
      const I index = rest - above * static_cast<I>(plan.axes[axis].dim.divisor);
      is_inside = place_index(plan.axes[axis], static_cast<int64_t>(index), &source) && is_inside;
      rest = above;
    }
    to[element] = is_inside ? from[source] : first_word<W>(plan.fill);
  }
}

struct ConcatenatePlan {
  Concatenation shape;
  Divider words[Concatenation::kPieces];  ///< in a row of each piece
};

/// A row of blocks per piece.
template <typename W, typename I>
__global__ void concatenate(const ConcatenatePlan plan) {
  const Concatenation::Piece &piece = plan.shape.pieces[blockIdx.y];
  const Divider &words = plan.words[blockIdx.y];
  const int64_t total = piece.bytes == 0 ? 0 : plan.shape.rows * words.divisor;
  const int64_t row_words = plan.shape.row_bytes / static_cast<int64_t>(sizeof(W));
  const W *const from = static_cast<const W *>(piece.from);
  W *const to = static_cast<W *>(plan.shape.to) + piece.offset / static_cast<int64_t>(sizeof(W));
  for (int64_t i = grid_thread(); i < total; i += grid_threads()) {
    const I row = divide(static_cast<I>(i), words);
    const I word = static_cast<I>(i) - row * static_cast<I>(words.divisor);
    to[static_cast<int64_t>(row) * row_words + static_cast<int64_t>(word)] = from[i];
  }
}

int64_t product(const int64_t *dims, int32_t rank) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < rank; ++axis)
    elements *= dims[axis];
  return elements;
}

/// The axis along which the source is dense, where it is another than the last and both are long; else -1.
int32_t square_axis(const StridedRead &read) {
  const int32_t last = read.rank - 1;
  if (last < 1 || read.strides[last] == 1 || read.strides[last] == 0 || read.dims[last] < kLeastSide) return -1;
  for (int32_t axis = 0; axis < last; ++axis) {
    if (read.strides[axis] == 1 && read.dims[axis] >= kLeastSide) return axis;
  }
  return -1;
}

gpuError_t launch_squares(const StridedRead &read, int32_t row_axis, gpuStream_t stream) {
  const int32_t last = read.rank - 1;
  SquarePlan plan{};
  plan.to = read.to;
  plan.from = read.from;
  plan.rows = read.dims[row_axis];
  plan.columns = read.dims[last];
  plan.row_squares = (plan.rows + kSquare - 1) / kSquare;
  plan.column_squares = (plan.columns + kSquare - 1) / kSquare;
  plan.from_column_stride = read.strides[last];
  int64_t planes = 1;
  for (int32_t axis = 0; axis < last; ++axis) {
    const int64_t to_stride = product(read.dims + axis + 1, last - axis);
    if (axis == row_axis) {
      plan.to_row_stride = to_stride;
      continue;
    }
    plan.dims[plan.rank] = read.dims[axis];
    plan.to_strides[plan.rank] = to_stride;
    plan.from_strides[plan.rank++] = read.strides[axis];
    planes *= read.dims[axis];
  }
  const unsigned blocks = static_cast<unsigned>(plan.row_squares * plan.column_squares * planes);
  return with_word(read.element_bytes, [&]<typename W>(W) {
    return gpu_launch(transpose_squares<W>, blocks, kBlockThreads, 0, stream, plan);
  });
}

}  // namespace

gpuError_t launch_strided_read(const StridedRead &read, gpuStream_t stream) {
  ReadPlan plan{read.to, read.from, product(read.dims, read.rank), read.rank, {}};
  if (plan.elements == 0) return gpuSuccess;
  const int32_t row_axis = square_axis(read);
  if (row_axis >= 0 && plan.elements < int64_t{1} << 36) return launch_squares(read, row_axis, stream);
  for (int32_t axis = 0; axis < read.rank; ++axis)
    plan.axes[axis] = {Divider::of(read.dims[axis]), read.strides[axis]};
  return with_word(read.element_bytes, [&]<typename W>(W) {
    const auto kernel = plan.elements <= Divider::kMost ? read_strided<W, uint32_t> : read_strided<W, uint64_t>;
    return gpu_launch(kernel, blocks_for(plan.elements), kBlockThreads, 0, stream, plan);
  });
}

gpuError_t launch_placement(const Placement &placement, gpuStream_t stream) {
  PlacePlan plan{placement.to,
                 placement.from,
                 repeated(placement.fill, placement.fill_bytes),
                 product(placement.dims, placement.rank),
                 placement.rank,
                 {}};
  if (plan.elements == 0) return gpuSuccess;
  int64_t stride = 1;
  for (int32_t axis = placement.rank - 1; axis >= 0; --axis) {
    plan.axes[axis] = {Divider::of(placement.dims[axis]), placement.low[axis], placement.step[axis],
                       placement.counts[axis], stride};
    stride *= placement.counts[axis];
  }
  return with_word(placement.element_bytes, [&]<typename W>(W) {
    const auto kernel = plan.elements <= Divider::kMost ? place_elements<W, uint32_t> : place_elements<W, uint64_t>;
    return gpu_launch(kernel, blocks_for(plan.elements), kBlockThreads, 0, stream, plan);
  });
}

gpuError_t launch_concatenation(const Concatenation &concatenation, gpuStream_t stream) {
  ConcatenatePlan plan{concatenation, {}};
  uint64_t all = reinterpret_cast<uintptr_t>(concatenation.to) | static_cast<uint64_t>(concatenation.row_bytes);
  int64_t largest = 0;
  for (int32_t i = 0; i < concatenation.count; ++i) {
    const Concatenation::Piece &piece = concatenation.pieces[i];
    if (piece.bytes == 0) continue;
    all |= reinterpret_cast<uintptr_t>(piece.from) | static_cast<uint64_t>(piece.bytes | piece.offset);
    largest = piece.bytes > largest ? piece.bytes : largest;
  }
  if (largest == 0 || concatenation.rows == 0) return gpuSuccess;
  const int64_t width = widest_word(all, 1);
  for (int32_t i = 0; i < concatenation.count; ++i)
    plan.words[i] = Divider::of(concatenation.pieces[i].bytes / width);
  const int64_t words = concatenation.rows * (largest / width);
  const dim3 grid(blocks_for(words, 1024), static_cast<unsigned>(concatenation.count));
  return with_word(width, [&]<typename W>(W) {
    const auto kernel = words <= Divider::kMost ? concatenate<W, uint32_t> : concatenate<W, uint64_t>;
    return gpu_launch(kernel, grid, kBlockThreads, 0, stream, plan);
  });
}

}  // namespace tutti::impl::backend::gpu
