// SPDX-License-Identifier: Apache-2.0
//
// Graphs do the same when kernels are in place of what fills memory: values of 1, 2 and 4 bytes, lines with something
// between them, unaligned beginnings, and the order of what is before and behind. On a real GPU.
#include "backend/cuda/fill_nodes.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "testing.h"

using tutti::impl::backend::cuda::replace_fills;

namespace {

constexpr size_t kBytes = size_t{1} << 16;

/// Memory of the GPU, all 0x11, and a graph that changes it.
class Changed {
 public:
  Changed() {
    assert_int_equal(cudaMalloc(reinterpret_cast<void **>(&memory_), kBytes), cudaSuccess);
    assert_int_equal(cudaMemset(memory_, 0x11, kBytes), cudaSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);  // for streams that do not wait for it
    assert_int_equal(cudaGraphCreate(&graph_, 0), cudaSuccess);
  }
  ~Changed() {
    (void)cudaGraphDestroy(graph_);
    (void)cudaFree(memory_);
  }

  char *memory() const { return memory_; }

  /// Behind what was added last.
  void add_fill(size_t at, unsigned value, unsigned element_bytes, size_t width, size_t height, size_t pitch) {
    cudaMemsetParams fill{};
    fill.dst = memory_ + at;
    fill.pitch = pitch;
    fill.value = value;
    fill.elementSize = element_bytes;
    fill.width = width;
    fill.height = height;
    cudaGraphNode_t node = nullptr;
    assert_int_equal(cudaGraphAddMemsetNode(&node, graph_, &last_, last_ == nullptr ? 0 : 1, &fill), cudaSuccess);
    last_ = node;
  }
  void add_copy(size_t to, size_t from, size_t bytes) {
    cudaGraphNode_t node = nullptr;
    assert_int_equal(cudaGraphAddMemcpyNode1D(&node, graph_, &last_, last_ == nullptr ? 0 : 1, memory_ + to,
                                              memory_ + from, bytes, cudaMemcpyDeviceToDevice),
                     cudaSuccess);
    last_ = node;
  }

  /// What the memory has when the graph was launched twice; `replaced`: how many of its fills became kernels.
  std::vector<unsigned char> run(int replaced) {
    assert_int_equal(replace_fills(graph_), replaced);
    cudaGraphExec_t ready = nullptr;
    assert_int_equal(cudaGraphInstantiate(&ready, graph_, 0), cudaSuccess);
    for (int i = 0; i < 2; ++i)
      assert_int_equal(cudaGraphLaunch(ready, nullptr), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(nullptr), cudaSuccess);
    std::vector<unsigned char> found(kBytes);
    assert_int_equal(cudaMemcpy(found.data(), memory_, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    assert_int_equal(cudaGraphExecDestroy(ready), cudaSuccess);
    return found;
  }

 private:
  char *memory_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphNode_t last_ = nullptr;
};

struct Fill {
  size_t at;
  unsigned value, element_bytes;
  size_t width, height, pitch;
};

void fills_are_kernels(void **) {
  const Fill fills[] = {{3, 0xab, 1, 1001, 1, 0},     {4096, 0x1234, 2, 777, 1, 0}, {8192, 0xdeadbeef, 4, 5, 1, 0},
                        {16384, 0x5a, 1, 4096, 1, 0}, {24576, 0xbeef, 2, 64, 1, 0}, {32768, 0x01020304, 4, 7, 5, 64},
                        {40960, 0x77, 1, 32, 9, 512}, {49152, 0, 4, 1024, 1, 0},    {57344, 0xff, 1, 3, 4, 7}};
  Changed changed;
  std::vector<unsigned char> expected(kBytes, 0x11);
  for (const Fill &fill : fills) {
    changed.add_fill(fill.at, fill.value, fill.element_bytes, fill.width, fill.height, fill.pitch);
    for (size_t line = 0; line < fill.height; ++line)
      for (size_t i = 0; i < fill.width; ++i)
        std::memcpy(&expected[fill.at + line * fill.pitch + i * fill.element_bytes], &fill.value, fill.element_bytes);
  }
  assert_true(changed.run(static_cast<int>(std::size(fills))) == expected);
}

/// Each fill is behind what reads the memory before it, and in front of what reads it then.
void order_stays(void **) {
  Changed changed;
  changed.add_copy(4096, 0, 1024);
  changed.add_fill(0, 0x22, 1, 1024, 1, 0);
  changed.add_copy(8192, 0, 1024);
  changed.add_fill(0, 0x33, 1, 1024, 1, 0);
  changed.add_fill(0, 0x44, 1, 512, 1, 0);
  changed.add_copy(12288, 0, 1024);
  changed.add_fill(0, 0x11, 1, 1024, 1, 0);
  std::vector<unsigned char> expected(kBytes, 0x11);
  std::fill_n(&expected[8192], 1024, 0x22);
  std::fill_n(&expected[12288], 1024, 0x33);
  std::fill_n(&expected[12288], 512, 0x44);
  assert_true(changed.run(4) == expected);
}

/// A graph that was captured: with kernels of a library it looks the same.
void captures_are_changed(void **) {
  Changed memory;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  assert_int_equal(cudaMemsetAsync(memory.memory(), 0x66, 100, stream), cudaSuccess);
  assert_int_equal(cudaMemcpyAsync(memory.memory() + 512, memory.memory(), 100, cudaMemcpyDeviceToDevice, stream),
                   cudaSuccess);
  assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  assert_int_equal(replace_fills(graph), 1);
  assert_int_equal(replace_fills(graph), 0);
  assert_int_equal(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
  assert_int_equal(cudaGraphLaunch(ready, stream), cudaSuccess);
  assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
  unsigned char found[101];
  assert_int_equal(cudaMemcpy(found, memory.memory() + 512, 101, cudaMemcpyDeviceToHost), cudaSuccess);
  assert_true(std::all_of(found, found + 100, [](unsigned char byte) { return byte == 0x66; }) && found[100] == 0x11);
  assert_int_equal(cudaGraphExecDestroy(ready), cudaSuccess);
  assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
  assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace

int main() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::fprintf(stderr, "skipped: there is no NVIDIA GPU, or no driver for it\n");
    return 77;
  }
  const CMUnitTest tests[] = {
      cmocka_unit_test(fills_are_kernels),
      cmocka_unit_test(order_stays),
      cmocka_unit_test(captures_are_changed),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
