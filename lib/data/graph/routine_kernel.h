// SPDX-License-Identifier: Apache-2.0
//
// What a kernel of the Routine (routine.h) is: a function made once per map from a node, then called for each element
// with values whose shapes are known only then. Kernels of ops that exist in routine form alone, and of a few others on
// dtype bytes, are listed in routine/kernel_list.cc.
//
//   Result<RoutineKernel> make_bytes_length(const RoutineNode &node) {
//     return RoutineKernel([](RoutineFrame &frame) -> Status {
//       const RoutineValue &x = frame.input(0);
//       TUTTI_ASSIGN(int64_t *const y, frame.output_as<int64_t>(0, x.shape));
//       for (int64_t i = 0; i < x.shape.elements(); ++i) y[i] = static_cast<int64_t>(x.text(i).size());
//       return Status();
//     });
//   }
//
// Threads: a RoutineKernel is immutable and called by many threads at a time; what a call wants to keep for the next
// one lies in RoutineFrame::state(), which belongs to the thread.
#ifndef TUTTI_DATA_GRAPH_ROUTINE_KERNEL_H_
#define TUTTI_DATA_GRAPH_ROUTINE_KERNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/random/philox.h"
#include "base/status.h"
#include "data/graph/pixel_window.h"
#include "graph/graph.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace tutti::impl::data {

/// A value while one element runs: what it is and where it lies, row-major and dense.
struct RoutineValue {
  tensor::DType dtype = tensor::DType::f32;
  tensor::Shape shape;
  const void *data = nullptr;   ///< the elements; for dtype bytes elements + 1 offsets (int64) into `texts`
  const char *texts = nullptr;  ///< for dtype bytes

  template <typename T>
  const T *as() const {
    return static_cast<const T *>(data);
  }
  /// Element `index` of dtype bytes.
  std::string_view text(int64_t index) const {
    const int64_t *const offsets = as<int64_t>() + index;
    return {texts + offsets[0], static_cast<size_t>(offsets[1] - offsets[0])};
  }
};

/// What one call sees of its node and its element.
class RoutineFrame {
 public:
  virtual ~RoutineFrame() = default;

  virtual bool has_input(size_t index) const = 0;
  virtual const RoutineValue &input(size_t index) const = 0;

  /// Memory for output `index` under this shape, aligned to its elements, contents undefined. Once per output and call;
  /// not for dtype bytes.
  virtual base::Result<void *> output(size_t index, const tensor::Shape &shape) = 0;
  template <typename T>
  base::Result<T *> output_as(size_t index, const tensor::Shape &shape) {
    TUTTI_ASSIGN(void *const memory, output(index, shape));
    return static_cast<T *>(memory);
  }
  /// Output `index` of dtype bytes: copies as many texts as the shape has elements.
  virtual base::Status output_texts(size_t index, const tensor::Shape &shape,
                                    std::span<const std::string_view> texts) = 0;
  /// Output `index` is input `from` under another shape of as many elements; nothing is copied.
  virtual base::Status output_view(size_t index, const tensor::Shape &shape, size_t from) = 0;

  /// The shape that the graph says output `index` has; an error where only the kernel can tell.
  virtual base::Result<tensor::Shape> known_shape(size_t index) const = 0;

  /// Random words for row `row` of the inputs: a function of (seed, key, epoch, the row's place in the source) alone.
  /// `key` 0 = the stable id of the node.
  virtual base::RandomStream random(int64_t key, int64_t row) const = 0;

  /// The part of image `row`, so large, of output 0 that anyone reads; what is around it may be left undefined.
  virtual PixelWindow window_read(const PixelSize &size, int64_t row) const = 0;

  /// What this node keeps from call to call on this thread; default-made on first use, always asked for as the same T.
  template <typename T>
  T &state() {
    std::shared_ptr<void> &slot = state_slot();
    if (slot == nullptr) slot = std::make_shared<T>();
    return *static_cast<T *>(slot.get());
  }

 protected:
  virtual std::shared_ptr<void> &state_slot() = 0;
};

/// What a factory sees: the node, whose attributes are normal, and its graph.
struct RoutineNode {
  const graph::Graph &graph;
  const graph::Node &node;

  const graph::ValueInfo &input(size_t index) const { return graph.value(node.inputs[index]); }
  const graph::ValueInfo &output(size_t index) const { return graph.value(node.outputs[index]); }
};

using RoutineKernel = std::function<base::Status(RoutineFrame &frame)>;
using RoutineKernelFactory = base::Result<RoutineKernel> (*)(const RoutineNode &node);

/// The factory for an op, or null.
RoutineKernelFactory find_routine_kernel(std::string_view op);

/// Which part of image `row`, so large, of its input 0 a kernel reads: known before the image is, so that files are
/// decoded only where they are looked at. May lie outside of the image where the kernel is going to fail.
using RoutineWindow = std::function<PixelWindow(const RoutineFrame &frame, const PixelSize &size, int64_t row)>;
using RoutineWindowFactory = base::Result<RoutineWindow> (*)(const RoutineNode &node);

/// The factory for an op, or null where all of the image is read; what it makes may be empty, which says the same.
RoutineWindowFactory find_routine_window(std::string_view op);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_GRAPH_ROUTINE_KERNEL_H_
