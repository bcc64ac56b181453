// SPDX-License-Identifier: Apache-2.0
//
// Matrices are transposed, on the emulated GPU: whole tiles, parts of tiles, rows and columns of one element.
#include "backend/gpu/device/device_transpose.h"

#include <vector>

#include "testing.h"

using namespace tutti::impl::backend::gpu;

namespace {

template <typename T>
void check(int64_t rows, int64_t columns) {
  std::vector<T> matrix(static_cast<size_t>(rows * columns)), found(matrix.size());
  for (size_t i = 0; i < matrix.size(); ++i)
    matrix[i] = static_cast<T>(i * 2654435761u);
  const size_t bytes = matrix.size() * sizeof(T);
  gpuStream_t stream = nullptr;
  void *from = nullptr, *to = nullptr;
  assert_int_equal(gpuStreamCreateWithFlags(&stream, gpuStreamNonBlocking), gpuSuccess);
  assert_int_equal(gpuMalloc(&from, bytes + 1), gpuSuccess);
  assert_int_equal(gpuMalloc(&to, bytes + 1), gpuSuccess);
  assert_int_equal(gpuMemcpyAsync(from, matrix.data(), bytes, gpuMemcpyHostToDevice, stream), gpuSuccess);
  assert_int_equal(launch_transpose(to, from, rows, columns, sizeof(T), stream), gpuSuccess);
  assert_int_equal(gpuMemcpyAsync(found.data(), to, bytes, gpuMemcpyDeviceToHost, stream), gpuSuccess);
  assert_int_equal(gpuStreamSynchronize(stream), gpuSuccess);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column)
      assert_true(found[static_cast<size_t>(column * rows + row)] ==
                  matrix[static_cast<size_t>(row * columns + column)]);
  }
  assert_int_equal(gpuFree(from), gpuSuccess);
  assert_int_equal(gpuFree(to), gpuSuccess);
  assert_int_equal(gpuStreamDestroy(stream), gpuSuccess);
}

void matrices_are_transposed(void **) {
  for (const auto &[rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 100}, {100, 1}, {32, 32}, {33, 31}, {64, 96}, {70, 45}, {0, 5}, {5, 0}}) {
    check<uint16_t>(rows, columns);
    check<uint32_t>(rows, columns);
    check<uint64_t>(rows, columns);
  }
}

void other_elements_are_refused(void **) {
  int word = 0;
  assert_int_equal(launch_transpose(&word, &word, 1, 1, 3, nullptr), gpuErrorInvalidValue);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(matrices_are_transposed),
      cmocka_unit_test(other_elements_are_refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
