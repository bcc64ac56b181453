// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_cross_entropy.h"

#include "backend/gpu/device/long_row-inl.h"
#include "backend/gpu/device/row-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// The targets of a row; of a sparse one its label, -1 if that is out of range.
template <typename C>
struct Target {
  AnyArray targets;
  bool is_sparse;
  int64_t first, label;
  C share, factor;  ///< t = share + factor * (what is given, or 1 at the label)

  __device__ Target(const CrossEntropyWork &work, const AnyArray &targets_, int64_t row, bool is_inside)
      : targets(targets_),
        is_sparse(work.is_sparse),
        first(row * work.classes),
        label(-1),
        share(static_cast<C>(work.smoothing / static_cast<double>(work.classes))),
        factor(static_cast<C>(1 - work.smoothing)) {
    if (!is_sparse || !is_inside) return;
    const int64_t given = load_any<int64_t>(targets, row);
    if (given >= 0 && given < work.classes) label = given;
  }

  __device__ bool is_usable() const { return !is_sparse || label >= 0; }

  /// Of classes position .. position + V - 1.
  template <int V>
  __device__ void load(int64_t position, C (&t)[V]) const {
    if (is_sparse) {
      for (int v = 0; v < V; ++v)
        t[v] = position + v == label ? C(1) : C(0);
    } else {
      load_any<V>(targets, first + position, t);
    }
    for (int v = 0; v < V; ++v)
      t[v] = share + factor * t[v];
  }
};

/// One thread of a row says that its label is out of range.
__device__ inline void report_label(const CrossEntropyWork &work, const AnyArray &targets, int64_t row) {
  report_fault(work.faults, work.fault, row, load_any<int64_t>(targets, row));
}

template <typename T, int V>
__global__ void cross_entropy_rows(const RowLayout layout, const CrossEntropyWork work, const AnyArray targets) {
  using C = Computed<T>;
  // Of a label without smoothing, one logit alone counts; else the row is read once more.
  const bool takes_all = !work.is_sparse || work.smoothing != 0;
  const bool is_first = static_cast<int>(threadIdx.x) % layout.lanes == 0;
  for_group_rows(layout, [&](int64_t index, bool is_inside) {
    const T *const x = static_cast<const T *>(work.logits) + index * layout.length;
    Row<T, V, 0> row(x, layout.length, layout.lanes, is_inside);
    const Target<C> target(work, targets, index, is_inside);
    const LogShare<C> log_share(row_exp_sum(row, layout.lanes));
    C loss = 0;
    if (takes_all) {
      row.each([&](int64_t position, C(&pack)[V]) {
        C t[V];
        target.load(position, t);
        for (int v = 0; v < V; ++v)
          loss -= t[v] == 0 ? C(0) : t[v] * log_share(pack[v]);
      });
      loss = group_sum(loss, layout.lanes);
    }
    if (!is_inside || !is_first) return;
    if (!target.is_usable()) {
      loss = NAN;
      report_label(work, targets, index);
    } else if (!takes_all) {
      loss = -log_share(widen(x[target.label]));
    }
    store_element<C>(work.loss, work.result, index, loss);
  });
}

template <typename T, int V, int N>
__global__ void cross_entropy_gradient_rows(const RowLayout layout, const CrossEntropyWork work,
                                            const AnyArray targets) {
  using C = Computed<T>;
  const bool is_first = static_cast<int>(threadIdx.x) % layout.lanes == 0;
  for_group_rows(layout, [&](int64_t index, bool is_inside) {
    const int64_t first = index * layout.length;
    Row<T, V, N> row(static_cast<const T *>(work.logits) + first, layout.length, layout.lanes, is_inside);
    const Target<C> target(work, targets, index, is_inside);
    const LogShare<C> log_share(row_exp_sum(row, layout.lanes));
    C weight = 1;
    if (!work.is_sparse) {
      weight = 0;
      row.each([&](int64_t position, C(&)[V]) {
        C t[V];
        target.load(position, t);
        for (int v = 0; v < V; ++v)
          weight += t[v];
      });
      weight = group_sum(weight, layout.lanes);
    }
    if (!is_inside) return;
    C dloss = load_element<C>(work.loss, work.dloss, index);
    if (!target.is_usable()) {
      if (is_first) report_label(work, targets, index);
      dloss = C(NAN);
    }
    row.each([&](int64_t position, C(&pack)[V]) {
      C t[V];
      target.load(position, t);
      for (int v = 0; v < V; ++v)
        pack[v] = (std::exp(log_share(pack[v])) * weight - t[v]) * dloss;
      store_pack<V>(static_cast<T *>(work.result) + first, position, pack);
    });
  });
}

// ---- long rows of labels, each of a block: whatever its first element, it is read in packs ----

/// Labels and what is t elsewhere and at them.
template <typename C>
struct Labels {
  AnyArray given;
  C share, at_label;

  explicit Labels(const CrossEntropyWork &work)
      : given(any_array(work.targets, work.target)),
        share(static_cast<C>(work.smoothing / static_cast<double>(work.classes))),
        at_label(share + static_cast<C>(1 - work.smoothing)) {}

  /// -1 where it is out of range.
  __device__ int32_t of(int64_t row, int32_t classes) const {
    const int64_t label = load_any<int64_t>(given, row);
    return label >= 0 && label < classes ? static_cast<int32_t>(label) : -1;
  }

  /// pack[v] - t of class position + v.
  template <int V>
  __device__ void subtract(int32_t label, int32_t position, C (&pack)[V]) const {
    const int32_t place = label - position;
    if (place < 0 || place >= V) {
      for (int v = 0; v < V; ++v)
        pack[v] -= share;
    } else {
      for (int v = 0; v < V; ++v)
        pack[v] -= v == place ? at_label : share;
    }
  }
};

/// Without smoothing.
template <typename T, int V>
__global__ void long_cross_entropy_rows(const CrossEntropyWork work, const Labels<Computed<T>> labels) {
  using C = Computed<T>;
  const auto *const logits = static_cast<const T *>(work.logits);
  const auto classes = static_cast<int32_t>(work.classes);
  for (int64_t index = blockIdx.x; index < work.rows; index += gridDim.x) {
    ExpSum<C> total = no_exp_sum<C>();
    for_parts<4>(LongRow<T, V, kBlockThreads>(logits, index, classes, true),
                 [&](const auto &x) { add_exps<T>(total, x); });
    total = block_exp_sum(total);
    if (threadIdx.x != 0) continue;
    const int32_t label = labels.of(index, classes);
    C loss = NAN;
    if (label >= 0)
      loss = -LogShare<C>(total)(widen(logits[index * classes + label]));
    else
      report_label(work, labels.given, index);
    store_element<C>(work.loss, work.result, index, loss);
  }
}

/// Rows of N packs per thread at most, read once; the next is on its way while results of one are computed.
template <typename T, int V, int N>
__global__ void __launch_bounds__(kLongRowThreads, 1)
    long_cross_entropy_gradient_rows(const CrossEntropyWork work, const Labels<Computed<T>> labels) {
  using C = Computed<T>;
  const auto *const logits = static_cast<const T *>(work.logits);
  const auto classes = static_cast<int32_t>(work.classes);
  using Row = KeptLongRow<T, V, N>;
  const auto row_at = [&](int64_t index) { return typename Row::Place(logits, index, classes, index < work.rows); };
  Row row(row_at(blockIdx.x));
  for (int64_t index = blockIdx.x; index < work.rows; index += gridDim.x) {
    const int32_t label = labels.of(index, classes);
    C dloss = load_element<C>(work.loss, work.dloss, index);
    if (label < 0) {
      if (threadIdx.x == 0) report_label(work, labels.given, index);
      dloss = C(NAN);
    }
    ExpSum<C> total = no_exp_sum<C>();
    row.each([&](const auto &x) { total.largest = largest_of(total.largest, x); });
    total.largest = block_largest(total.largest);
    const C from = subtrahend(total.largest);
    row.each([&](const auto &x) { total.sum = added_exps<T>(total.sum, x, from); });
    total.sum = block_total(total.sum);
    const LogShare<C> log_share(total);
    row.replace(row_at(index + gridDim.x), static_cast<T *>(work.result) + index * classes,
                [&](int32_t position, auto &x) {
                  for (auto &element : x)
                    element = exp_for<T>(log_share(element));
                  labels.subtract(label, position, x);
                  for (auto &element : x)
                    element *= dloss;
                });
  }
}

template <typename T, int V>
__global__ void in_top_k_rows(const RowLayout layout, const CrossEntropyWork work, const AnyArray labels, int64_t k) {
  using C = Computed<T>;
  for_group_rows(layout, [&](int64_t index, bool is_inside) {
    const T *const x = static_cast<const T *>(work.logits) + index * layout.length;
    Row<T, V, 0> row(x, layout.length, layout.lanes, is_inside);
    const Target<C> target(work, labels, index, is_inside);
    const C mine = target.label >= 0 ? widen(x[target.label]) : C(NAN);
    int64_t larger = 0;
    row.each([&](int64_t, C(&pack)[V]) {
      for (int v = 0; v < V; ++v)
        larger += pack[v] > mine ? 1 : 0;
    });
    larger = group_sum(larger, layout.lanes);
    if (is_inside && static_cast<int>(threadIdx.x) % layout.lanes == 0)
      static_cast<uint8_t *>(work.result)[index] = mine - mine == 0 && larger < k ? 1 : 0;
  });
}

/// Rows that are read once and not kept.
template <typename Function>
gpuError_t visit_passing_rows(const CrossEntropyWork &work, Function function) {
  if (work.rows * work.classes == 0) return gpuSuccess;
  return visit_floats(work.dtype, is_wide(work.dtype, work.classes, {work.logits}), [&](auto storage) {
    return function(storage, row_layout(work.rows, work.classes, decltype(storage)::kWidth, 4, work.order));
  });
}

/// May rows of labels be taken as long ones, of more than `packs` packs each?
bool has_long_rows(const CrossEntropyWork &work, std::initializer_list<const void *> arrays, int64_t packs) {
  return work.is_sparse && work.order == SumOrder::by_shape && is_wide(work.dtype, 0, arrays) && work.rows > 0 &&
         work.classes > packs * pack_width(work.dtype) && work.classes < INT32_MAX / 2;
}

/// Calls function(Storage<T, V>()) for packs of what is computed with in float.
template <typename Function>
gpuError_t visit_long_rows(DType dtype, Function function) {
  switch (dtype) {
    case DType::f32:
      return function(Storage<float, 4>());
    case DType::f16:
      return function(Storage<Float16, 8>());
    case DType::bf16:
      return function(Storage<BFloat16, 8>());
    default:
      return gpuErrorInvalidValue;
  }
}

gpuError_t launch_long_rows(const CrossEntropyWork &work, gpuStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min(work.rows, kMostBlocks));
  return visit_long_rows(work.dtype, [&](auto storage) {
    using S = decltype(storage);
    return gpu_launch(long_cross_entropy_rows<typename S::type, S::kWidth>, blocks, kBlockThreads, 0, stream, work,
                      Labels<float>(work));
  });
}

template <int N>
gpuError_t launch_long_gradient_rows(const CrossEntropyWork &work, gpuStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min(work.rows, kFillingBlocks));
  return visit_long_rows(work.dtype, [&](auto storage) {
    using S = decltype(storage);
    return gpu_launch(long_cross_entropy_gradient_rows<typename S::type, S::kWidth, N>, blocks, kLongRowThreads, 0,
                      stream, work, Labels<float>(work));
  });
}

}  // namespace

gpuError_t launch_cross_entropy(const CrossEntropyWork &work, gpuStream_t stream) {
  if (work.dtype != DType::f64 && work.smoothing == 0 && has_long_rows(work, {work.logits}, 2 * kBlockThreads))
    return launch_long_rows(work, stream);
  return visit_passing_rows(work, [&](auto storage, const RowLayout &layout) {
    using S = decltype(storage);
    return gpu_launch(cross_entropy_rows<typename S::type, S::kWidth>, layout.blocks(), kBlockThreads, 0, stream,
                      layout, work, any_array(work.targets, work.target));
  });
}

gpuError_t launch_cross_entropy_gradient(const CrossEntropyWork &work, gpuStream_t stream) {
  const int64_t packs = work.classes / pack_width(work.dtype);
  if (work.dtype != DType::f64 && packs <= 8 * kLongRowThreads &&
      has_long_rows(work, {work.logits, work.result}, kLongRowThreads))
    return packs <= 4 * kLongRowThreads ? launch_long_gradient_rows<4>(work, stream)
                                        : launch_long_gradient_rows<8>(work, stream);
  const bool wide = is_wide(work.dtype, work.classes, {work.logits, work.result});
  return visit_rows(
      work.dtype, wide, work.order, work.rows, work.classes, [&](auto storage, auto shape, const RowLayout &layout) {
        using Shape = decltype(shape);
        return gpu_launch(cross_entropy_gradient_rows<typename decltype(storage)::type, Shape::kWidth, Shape::kPacks>,
                          layout.blocks(), kBlockThreads, 0, stream, layout, work,
                          any_array(work.targets, work.target));
      });
}

gpuError_t launch_in_top_k(const CrossEntropyWork &work, int64_t k, gpuStream_t stream) {
  return visit_passing_rows(work, [&](auto storage, const RowLayout &layout) {
    using S = decltype(storage);
    return gpu_launch(in_top_k_rows<typename S::type, S::kWidth>, layout.blocks(), kBlockThreads, 0, stream, layout,
                      work, any_array(work.targets, work.target), k);
  });
}

}  // namespace tutti::impl::backend::gpu
