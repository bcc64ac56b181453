// SPDX-License-Identifier: Apache-2.0
#include "emulated_library.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "backend/gpu/device/device-inl.h"
#include "backend/gpu/device/device_reduce.h"
#include "backend/gpu/fusion/norm_sources.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/fusion/product_sums.h"
#include "backend/gpu/kernel/kernels.h"
#include "backend/gpu/kernels/reduced_trees.h"
#include "backend/gpu/library/algorithm_probes.h"
#include "emulated_convolution.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;
using base::Status;

namespace {

/// For each channel the sum of x, then of its squares, as libraries give them: in f32, which loses digits, by tiles.
__global__ void add_up(tensor::DType dtype, const void *x, int64_t rows, int64_t channels, float *sums) {
  for (int64_t channel = grid_thread(); channel < channels; channel += grid_threads()) {
    constexpr int64_t kTile = 64;
    float sum = 0, squares = 0;
    for (int64_t tile = 0; tile < rows; tile += kTile) {
      float tile_sum = 0, tile_squares = 0;
      for (int64_t row = tile; row < rows && row < tile + kTile; ++row) {
        const float value = load_element<float>(dtype, x, row * channels + channel);
        tile_sum += value;
        tile_squares += value * value;
      }
      sum += tile_sum;
      squares += tile_squares;
    }
    sums[channel] = sum;
    sums[squares_at(channels) + channel] = squares;
  }
}

/// A convolution, the sums of its results, and what a normalisation makes of them. Elements of f32 have lost no digits
/// yet: there it is the normalisation's own kernel.
Result<Kernel> find_norm(KernelRequest &request) {
  const LoweredValue &x = request.input(0);
  if (x.dtype == tensor::DType::f64 || x.elements == 0) return Kernel();
  KernelRequest source{request.lowered, *request.source, nullptr, request.faults};
  TUTTI_ASSIGN(const Kernel convolution, find_kernel(source.node.op)(source));
  TUTTI_ASSIGN(const NormOfSums norm, NormOfSums::make(request));
  Kernel exact;
  if (x.dtype == tensor::DType::f32) {
    request.scratch_bytes = 0;
    TUTTI_ASSIGN(exact, find_kernel(request.node.op)(request));
  }
  const int64_t scratch = request.reserve_scratch(source.scratch_bytes);
  request.kernel_name = "emulated";
  return Kernel([convolution, norm, exact, scratch, dtype = x.dtype, rows = x.elements / x.dims.back(),
                 channels = x.dims.back()](const Frame &frame) -> Status {
    void *const table[] = {const_cast<void *>(norm.image(frame)), const_cast<void *>(norm.kernel(frame)),
                           norm.result(frame)};
    constexpr int32_t kInputs[] = {0, 1}, kOutputs[] = {2};
    TUTTI_TRY(convolution(Frame(table, kInputs, kOutputs, frame.scratch_as<char>(scratch), frame.context())));
    if (exact) return exact(frame);
    TUTTI_TRY(status_of(gpu_launch(add_up, blocks_for(channels), kBlockThreads, 0, frame.stream(), dtype,
                                   norm.result(frame), rows, channels, norm.sums(frame)),
                        "launching sums"));
    return norm.issue(frame);
  });
}

Result<Kernel> find_sum(KernelRequest &request) {
  TUTTI_ASSIGN(const Kernel product, find_kernel(request.node.op)(request));
  TUTTI_ASSIGN(ReduceWork work, reduce_work_of(request.lowered, request.lowered.step(request.sum->sum)));
  const int64_t scratch = request.reserve_scratch(reduce_scratch_bytes(work));
  request.kernel_name = "emulated";
  return Kernel([product, work, scratch, factor = request.sum->factor](const Frame &frame) -> Status {
    TUTTI_TRY(product(frame));
    ReduceWork issued = work;
    issued.x = frame.input(factor);
    issued.y = frame.output(1);
    issued.scratch = frame.scratch_as<char>(scratch);
    return status_of(launch_reduce(issued, frame.stream()), "launching a reduction");
  });
}

/// Where a call of a product with its tail has its operands in the memory of a probe.
struct ProbedProduct {
  NanProbe probe;
  std::vector<int64_t> at;  // inputs, what the tail reads, the result, scratch memory
};

ProbedProduct probed_product(const KernelRequest &request) {
  ProbedProduct made;
  const auto add = [&](int64_t bytes) {
    made.at.push_back(made.probe.bytes);
    made.probe.bytes += (bytes + 255) / 256 * 256;
  };
  for (size_t i = 0; i < request.input_count(); ++i)
    add(request.input(i).bytes);
  for (const graph::ValueId read : request.tail->reads)
    add(request.lowered.value(read).bytes);
  const LoweredValue &result = request.lowered.value(request.lowered.step(request.tail->root()).outputs[0]);
  add(result.bytes);
  made.probe.result_at = made.at.back();
  made.probe.result_bytes = result.bytes;
  made.probe.result = result.dtype;
  add(request.scratch_bytes);
  made.probe.shape = base::concat("emulated ", request.name(), " of ", made.probe.bytes, " bytes");
  made.probe.algorithm = "0";
  return made;
}

/// A product with a tail that ends with relu, if the probe says that it keeps a NaN.
Result<Kernel> find_relu(KernelRequest &request, bool drops_nan) {
  const Epilogue &epilogue = request.tail->epilogue;
  if (request.tail->keeps()) return Kernel();
  const bool ends_with_relu = epilogue.step_count > 0 && epilogue.steps[epilogue.step_count - 1].op == ElementOp::relu;
  if (request.node.op != "matmul" || !ends_with_relu || request.probes == nullptr) return Kernel();
  TUTTI_ASSIGN(const Kernel product, find_kernel(request.node.op)(request));
  ProbedProduct probed = probed_product(request);
  probed.probe.issue = [&](char *memory, gpuStream_t stream) -> Status {
    std::vector<void *> table;
    std::vector<int32_t> places;
    for (const int64_t at : probed.at) {
      places.push_back(static_cast<int32_t>(table.size()));
      table.push_back(memory + at);
    }
    IssueContext context;
    context.stream = stream;
    TUTTI_TRY(product(Frame(table.data(), places.data(), places.data() + places.size() - 2, table.back(), context)));
    if (!drops_nan) return Status();
    const auto bytes = static_cast<size_t>(probed.probe.result_bytes);
    return status_of(gpuMemsetAsync(memory + probed.probe.result_at, 0, bytes, stream), "dropping what is NaN");
  };
  if (!request.probes->keeps_nan(probed.probe)) return Kernel();
  request.kernel_name = "emulated";
  return product;
}

/// Is the tail what is kept, then gelu of it? Where that has 16 bits, gelu reads it rounded, and what it gives is
/// rounded when it is stored.
bool is_gelu_of_kept(const ProductEpilogue &tail) {
  const Epilogue &epilogue = tail.epilogue;
  return tail.keeps() && epilogue.step_count == tail.kept_after + 1 &&
         epilogue.steps[tail.kept_after].op == ElementOp::gelu_tanh;
}

/// The product twice: what is kept is stored first.
Result<Kernel> find_gelu(KernelRequest &request) {
  const ProductEpilogue &tail = *request.tail;
  if (!is_gelu_of_kept(tail)) return Kernel();
  ProductEpilogue front = tail;
  front.epilogue.step_count = tail.kept_after;
  front.epilogue.dtype = request.lowered.value(request.lowered.step(tail.kept).outputs[0]).dtype;
  KernelRequest kept_request{request.lowered, request.node, nullptr, request.faults};
  kept_request.tail = &front;
  TUTTI_ASSIGN(const Kernel kept, find_kernel(request.node.op)(kept_request));
  TUTTI_ASSIGN(const Kernel whole, find_kernel(request.node.op)(request));
  if (!kept || !whole) return Kernel();
  const int64_t scratch = request.reserve_scratch(kept_request.scratch_bytes);
  const auto inputs = static_cast<int32_t>(request.input_count() + tail.reads.size());
  request.kernel_name = "emulated";
  return Kernel([=](const Frame &frame) -> Status {
    std::vector<void *> table;
    std::vector<int32_t> places;
    for (int32_t i = 0; i < inputs; ++i) {
      places.push_back(i);
      table.push_back(const_cast<void *>(frame.input(i)));
    }
    table.push_back(frame.output(1));
    TUTTI_TRY(kept(Frame(table.data(), places.data(), &inputs, frame.scratch_as<char>(scratch), frame.context())));
    return whole(frame);
  });
}

/// Products with relu, and nothing else.
class EmulatedRelu final : public Library {
 public:
  explicit EmulatedRelu(bool drops_nan) : drops_nan_(drops_nan) {}
  Result<Kernel> find(KernelRequest &request) override {
    return request.tail == nullptr ? Kernel() : find_relu(request, drops_nan_);
  }
  std::string describe() const override { return "emulated"; }

 private:
  const bool drops_nan_;
};

/// Sums beside products; gelu of what is kept, if that is wanted; and nothing else.
class EmulatedTraining final : public Library {
 public:
  explicit EmulatedTraining(bool has_gelu) : has_gelu_(has_gelu) {}
  Result<Kernel> find(KernelRequest &request) override {
    if (request.source != nullptr) return find_norm(request);
    if (request.sum != nullptr) return find_sum(request);
    return has_gelu_ && request.tail != nullptr ? find_gelu(request) : Kernel();
  }
  bool has_channel_sums() const override { return true; }
  std::string describe() const override { return "emulated"; }

 private:
  const bool has_gelu_;
};

/// Convolutions, and nothing else.
class EmulatedConvolutions final : public Library {
 public:
  explicit EmulatedConvolutions(bool folds) : folds_(folds) {}
  Result<Kernel> find(KernelRequest &request) override { return find_convolution(request, folds_); }
  std::string describe() const override { return "emulated"; }

 private:
  const bool folds_;
};

/// None, once somebody has asked.
class EmulatedMissing final : public Library {
 public:
  Result<Kernel> find(KernelRequest &) override {
    is_asked_ = true;
    return Kernel();
  }
  std::string describe() const override {
    return is_asked_ ? "the emulated library is missing: it was ordered so" : "";
  }
  std::vector<std::string> missing() const override {
    return is_asked_ ? std::vector<std::string>{describe()} : std::vector<std::string>();
  }

 private:
  bool is_asked_ = false;
};

}  // namespace

Result<std::unique_ptr<Library>> open_emulated_library() {
  const char *const wanted = std::getenv("TUTTI_EMULATED_LIBRARY");
  const std::string_view name = wanted == nullptr ? "" : wanted;
  if (name == "sums" || name == "gelu") return std::unique_ptr<Library>(new EmulatedTraining(name == "gelu"));
  if (name == "relu" || name == "relu without nan") return std::unique_ptr<Library>(new EmulatedRelu(name != "relu"));
  if (name == "even padding" || name == "folded strides")
    return std::unique_ptr<Library>(new EmulatedConvolutions(name == "folded strides"));
  if (name == "missing") return std::unique_ptr<Library>(new EmulatedMissing);
  return std::unique_ptr<Library>();
}

}  // namespace tutti::impl::backend::gpu::platform
