// SPDX-License-Identifier: Apache-2.0
//
// Tiles of a gradient that update their variable (simd_gemm.cc). Where there are registers for it, the rule is applied
// to one tile while the next one is multiplied: a product is bound by how many multiplications the processor begins, a
// rule is a chain of operations that wait for each other, and a tile of them is longer than what the processor looks
// ahead. In turns each fills the gaps of the other. Elsewhere it is applied to a few rows at a time. Results are those
// of the product and the rule one after the other. Included inside a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_UPDATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_UPDATE_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_UPDATE_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_UPDATE_INL_H_
#endif

#include <cstdint>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_gemm_tile-inl.h"
#include "backend/cpu/simd/simd_update-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

// Whether there are registers for a rule beside the sums of a tile.
constexpr bool kUpdatesBesideProducts = HWY_TARGET <= HWY_AVX3;

// The update of one vector in three parts, each of which reads from memory what the one before left there, so that none
// is a long chain. A short rule is one part. `piece` is the gradient and then scratch; the update is in place.
template <typename Step>
struct UpdateParts {
  static HWY_INLINE void begin(const Step &step, float *piece, const UpdateArrays &arrays, int64_t at) {
    step.apply(WholeVector(), hn::LoadU(Full(), piece), arrays, at, float_lanes());
  }
  static HWY_INLINE void go_on(const Step &, float *, const UpdateArrays &, int64_t) {}
  static HWY_INLINE void end(const Step &, const float *, const UpdateArrays &, int64_t) {}
};

template <>
struct UpdateParts<AdamStep> {
  static HWY_INLINE void begin(const AdamStep &step, const float *piece, const UpdateArrays &arrays, int64_t at) {
    step.move_slots(WholeVector(), hn::LoadU(Full(), piece), arrays, at, float_lanes());
  }
  static HWY_INLINE void go_on(const AdamStep &step, float *piece, const UpdateArrays &arrays, int64_t at) {
    hn::StoreU(step.denominator(hn::LoadU(Full(), arrays.slots[1] + at)), Full(), piece);
  }
  static HWY_INLINE void end(const AdamStep &step, const float *piece, const UpdateArrays &arrays, int64_t at) {
    const FloatVec first = hn::LoadU(Full(), arrays.slots[0] + at);
    step.move_weight(WholeVector(), first, hn::LoadU(Full(), piece), arrays, at, float_lanes());
  }
};

// A whole tile, kTileRows times two vectors, whose gradient is there and whose variable is not updated yet.
struct WaitingTile {
  float *gradient = nullptr;  // null: there is none
  int64_t at = 0;             // its first element in the variable
};

// Walks down such a tile: vectors 0 and 1 are those of the row it stands at, 2 and 3 those of the next one. `ahead` is
// the distance to the elements that will be updated next, which `end` and `apply` bring nearer.
template <typename Step>
struct TileUpdate {
  const Step &step;
  float *weight;
  float *slots[kUpdateSlots];
  float *pieces;
  int64_t row_distance, ahead;

  HWY_INLINE UpdateArrays arrays() const { return {weight, {slots[0], slots[1]}, weight, {slots[0], slots[1]}}; }
  HWY_INLINE int64_t place(int vector) const { return vector / 2 * row_distance + vector % 2 * float_lanes(); }
  HWY_INLINE float *piece(int vector) const { return pieces + vector * float_lanes(); }
  HWY_INLINE void fetch(int vector) const {
    fetch_to_write(weight + place(vector) + ahead);
    for (int slot = 0; slot < Step::kSlots; ++slot)
      fetch_to_write(slots[slot] + place(vector) + ahead);
  }

  HWY_INLINE void begin(int vector) const { UpdateParts<Step>::begin(step, piece(vector), arrays(), place(vector)); }
  HWY_INLINE void go_on(int vector) const { UpdateParts<Step>::go_on(step, piece(vector), arrays(), place(vector)); }
  HWY_INLINE void end(int vector) const {
    UpdateParts<Step>::end(step, piece(vector), arrays(), place(vector));
    fetch(vector);
  }
  HWY_INLINE void apply(int vector) const {
    step.apply(WholeVector(), hn::LoadU(Full(), piece(vector)), arrays(), place(vector), float_lanes());
    fetch(vector);
  }
  HWY_INLINE void next_row() {
    pieces += 2 * float_lanes();
    weight += row_distance;
    for (int slot = 0; slot < Step::kSlots; ++slot)
      slots[slot] += row_distance;
  }
};

// The product of a whole packed tile, a column of A at a time. An element of A is either loaded once into a register
// for both of its vectors, or read by each of the two multiplications; half of the rows take either way, so that
// neither the registers that are being written nor the loads hold up the rule beside it.
struct PackedProduct {
  const float *a[2];
  int64_t a_step;
  const float *HWY_RESTRICT b;
  Vec sums[kTileRows][2];

  explicit HWY_INLINE PackedProduct(const Tile &tile) : a{tile.a, tile.a}, a_step(tile.a_column), b(tile.b) {
#if defined(__GNUC__)
    // Not known to be the same, so that what is read by both is not loaded once for both.
    asm("" : "+r"(a[1]));
#endif
    TUTTI_UNROLL
    for (int r = 0; r < kTileRows; ++r)
      sums[r][0] = sums[r][1] = hn::Zero(Full());
  }

  HWY_INLINE void add_column() {
    const Full d;
    const Vec left = hn::LoadU(d, b), right = hn::LoadU(d, b + float_lanes());
    TUTTI_UNROLL
    for (int r = 0; r < kTileRows; ++r) {
      sums[r][0] = hn::MulAdd(hn::Set(d, a[0][r]), left, sums[r][0]);
      sums[r][1] = hn::MulAdd(hn::Set(d, a[r % 2][r]), right, sums[r][1]);
    }
    a[0] += a_step;
    a[1] += a_step;
    b += 2 * float_lanes();
  }

  HWY_INLINE void store(float *to) const {
    TUTTI_UNROLL
    for (int r = 0; r < kTileRows; ++r) {
      hn::StoreU(sums[r][0], Full(), to + 2 * r * float_lanes());
      hn::StoreU(sums[r][1], Full(), to + (2 * r + 1) * float_lanes());
    }
  }
};

// The product of a whole tile, whose rows of A are neighbours and whose B is packed, into `to`, and meanwhile the
// update of the tile before. A vector's parts are three or four columns of A apart; with few columns the rest comes
// behind.
template <typename Step>
HWY_NOINLINE void multiply_beside_update(const Tile &tile, const TileUpdate<Step> &waiting, float *to) {
  TileUpdate<Step> update = waiting;
  PackedProduct product(tile);
  const int64_t depth = tile.k;
  const int64_t together = HWY_MIN(int64_t{kTileRows - 2}, depth / 4);
  update.begin(0);
  update.begin(1);
  update.go_on(0);
  update.go_on(1);
  update.begin(2);
  for (int64_t row = 0; row < together; ++row) {
    product.add_column();
    update.end(0);
    product.add_column();
    update.go_on(2);
    update.begin(3);
    product.add_column();
    update.end(1);
    update.next_row();
    product.add_column();
    update.go_on(1);
    update.begin(2);
  }
  update.end(0);
  update.end(1);
  update.next_row();
  update.go_on(0);
  update.begin(1);
  for (int64_t column = 4 * together; column < depth; ++column)
    product.add_column();
  update.end(0);
  update.go_on(1);
  update.end(1);
  product.store(to);
  for (int64_t row = together + 2; row < kTileRows; ++row) {
    update.next_row();
    update.apply(0);
    update.apply(1);
  }
}

// Multiplies a tile into scratch; what it will update is brought nearer.
template <typename Step>
HWY_INLINE void multiply_gradient(Tile &tile, int64_t rows, int64_t vectors, const UpdateArrays &arrays, int64_t at,
                                  int64_t row_distance) {
  tile.plain = true;
  tile.ahead[0] = {arrays.weight + at, rows, row_distance};
  for (int slot = 0; slot < Step::kSlots; ++slot)
    tile.ahead[slot + 1] = {arrays.slots[slot] + at, rows, row_distance};
  run_rows_of(rows, vectors, tile);
}

// The tiles of a gradient one after the other. `first` and `second` hold one tile each.
template <typename Step>
class GradientTiles {
 public:
  HWY_INLINE GradientTiles(const Step &step, const UpdateArrays &arrays, int64_t row_distance, float *first,
                           float *second)
      : step_(step), arrays_(arrays), row_distance_(row_distance), free_(first), other_(second) {
    in_place_ = arrays.weight == arrays.weight_out;
    for (int slot = 0; slot < Step::kSlots; ++slot)
      in_place_ = in_place_ && arrays.slots[slot] == arrays.slots_out[slot];
  }

  // Multiplies the tile that begins at element `at`. Its update may wait for the next call.
  HWY_INLINE void add(Tile &tile, int64_t rows, int64_t vectors, int64_t at) {
    const int64_t width = vectors * float_lanes();
    if (in_place_ && rows == kTileRows && vectors == 2 && tile.columns == width && tile.a_row == 1)
      return add_waiting(tile, at);
    multiply(tile, rows, vectors, at);
    update(free_, rows, width, tile.columns, at);
  }

  // Updates what still waits.
  HWY_INLINE void finish() {
    const int64_t width = 2 * float_lanes();
    if (waiting_.gradient != nullptr) update(waiting_.gradient, kTileRows, width, width, waiting_.at);
    waiting_ = {};
  }

 private:
  HWY_INLINE void multiply(Tile &tile, int64_t rows, int64_t vectors, int64_t at) const {
    tile.c = free_;
    tile.c_row = vectors * float_lanes();
    multiply_gradient<Step>(tile, rows, vectors, arrays_, at, row_distance_);
  }

  HWY_INLINE void add_waiting(Tile &tile, int64_t at) {
    if (waiting_.gradient == nullptr) {
      multiply(tile, kTileRows, 2, at);
    } else {
      const int64_t from = waiting_.at;
      TileUpdate<Step> update{step_, arrays_.weight_out + from, {}, waiting_.gradient, row_distance_, at - from};
      for (int slot = 0; slot < Step::kSlots; ++slot)
        update.slots[slot] = arrays_.slots_out[slot] + from;
      multiply_beside_update(tile, update, free_);
    }
    waiting_ = {free_, at};
    free_ = other_;
    other_ = waiting_.gradient;
  }

  HWY_INLINE void update(const float *gradient, int64_t rows, int64_t width, int64_t columns, int64_t at) const {
    for (int64_t r = 0; r < rows; ++r)
      apply_step(step_, columns, OneGradient{gradient + r * width}, arrays_, at + r * row_distance_);
  }

  const Step &step_;
  const UpdateArrays &arrays_;
  const int64_t row_distance_;
  bool in_place_;
  float *free_, *other_;
  WaitingTile waiting_;
};

// Where there are no registers for that, a tile's height of rows of the gradient is made and then applied along memory,
// in which order a rule alone runs fastest. `gradient` holds so many rows of a block.
template <typename Step>
class GradientRows {
 public:
  HWY_INLINE GradientRows(const Step &step, const UpdateArrays &arrays, int64_t row_distance, float *gradient)
      : step_(step), arrays_(arrays), row_distance_(row_distance), gradient_(gradient) {}

  // Multiplies the tile at a column of the rows that begin at element `at`.
  HWY_INLINE void multiply(Tile &tile, int64_t rows, int64_t vectors, int64_t at, int64_t column) const {
    tile.c = gradient_ + column;
    tile.c_row = kBlockN;
    multiply_gradient<Step>(tile, rows, vectors, arrays_, at + column, row_distance_);
  }

  HWY_INLINE void update(int64_t rows, int64_t columns, int64_t at) const {
    for (int64_t r = 0; r < rows; ++r)
      apply_step(step_, columns, OneGradient{gradient_ + r * kBlockN}, arrays_, at + r * row_distance_);
  }

 private:
  const Step &step_;
  const UpdateArrays &arrays_;
  const int64_t row_distance_;
  float *const gradient_;
};

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
