// SPDX-License-Identifier: Apache-2.0
//
// Programs of several threads, everything cut that can be cut: training is repeatable bit by bit for a number of
// threads and close to one thread's, predictions are bitwise one thread's; the threads are the device's, OpenMP is left
// as it was, and one thread needs none.
#include <omp.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/step_models.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace threads_test {

namespace {

namespace backend = tutti::impl::backend;
using tutti::testing::StepModel;
using tutti::testing::StepPredictor;
using tutti::testing::StepTrainer;

constexpr const char *kModels[] = {"toy", "mlp", "cnn", "resnet20", "separable", "resnet18", "gpt2_tiny"};

int32_t process_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int32_t>(std::distance(begin(tasks), end(tasks)));
}

backend::BackendRef open_cpu() { return assert_ok_value(tutti::impl::runtime::open_backend("cpu", "{}", {})); }

StepTrainer make_trainer(const backend::BackendRef &cpu, const StepModel &model, int64_t batch, int32_t threads,
                         backend::Level level = backend::Level::repeatable) {
  return assert_ok_value(StepTrainer::create(cpu, model, batch, level, 0, threads));
}

using Weights = std::vector<std::vector<float>>;

Weights weights_after(const backend::BackendRef &cpu, const StepModel &model, int64_t batch, int32_t threads,
                      int steps) {
  StepTrainer trainer = make_trainer(cpu, model, batch, threads);
  for (int step = 0; step < steps; ++step)
    assert_ok(trainer.step());
  Weights weights;
  for (const auto &variable : model.variables)
    weights.push_back(assert_ok_value(trainer.values("weight/", variable.name)));
  return weights;
}

/// Root of the mean square of the differences, in shares of the numbers'.
double difference(const Weights &a, const Weights &b) {
  double error = 0, size = 0;
  for (size_t v = 0; v < a.size(); ++v) {
    for (size_t i = 0; i < a[v].size(); ++i) {
      const double x = a[v][i], y = b[v][i];
      error += (x - y) * (x - y);
      size += x * x;
    }
  }
  return std::sqrt(error / size);
}

void training_is_repeatable(void **) {
  const backend::BackendRef cpu = open_cpu();
  for (const char *name : kModels) {
    const StepModel model = assert_ok_value(tutti::testing::make_step_model(name, 4));
    for (int64_t batch : {1, 5}) {
      // One step: Adam divides by the size of gradients, later steps make much of little.
      const Weights alone = weights_after(cpu, model, batch, 1, 1);
      for (int32_t threads : {2, 3, 4}) {
        const Weights once = weights_after(cpu, model, batch, threads, 3);
        assert_true(once == weights_after(cpu, model, batch, threads, 3));
        const double off = difference(alone, weights_after(cpu, model, batch, threads, 1));
        if (off > 2e-3) print_message("%s, batch %d, %d threads: %g\n", name, static_cast<int>(batch), threads, off);
        assert_true(off <= 2e-3);
      }
    }
  }
}

void predictions_are_those_of_one_thread(void **) {
  const backend::BackendRef cpu = open_cpu();
  for (const char *name : kModels) {
    const StepModel model = assert_ok_value(tutti::testing::make_step_model(name, 4));
    for (int64_t batch : {1, 2, 7}) {
      std::vector<float> alone;
      for (int32_t threads : {1, 2, 3, 4}) {
        auto predictor =
            assert_ok_value(StepPredictor::create(cpu, model, batch, backend::Level::repeatable, 0, threads));
        assert_ok(predictor.predict());
        const std::vector<float> logits = predictor.logits();
        if (threads == 1) alone = logits;
        if (logits != alone) print_message("%s, batch %d, %d threads\n", name, static_cast<int>(batch), threads);
        assert_true(logits == alone);
      }
    }
  }
}

void threads_belong_to_the_device(void **) {
  const StepModel model = assert_ok_value(tutti::testing::make_step_model("cnn", 4));
  const int32_t before = process_threads();
  {
    const backend::BackendRef cpu = open_cpu();
    StepTrainer alone = make_trainer(cpu, model, 6, 1);
    assert_ok(alone.step());
    assert_int_equal(process_threads(), before);
    StepTrainer first = make_trainer(cpu, model, 6, 3), second = make_trainer(cpu, model, 6, 2);
    assert_int_equal(process_threads(), before + 2);
    assert_ok(first.step());
    assert_ok(second.step());
    // Nobody woke OpenMP's pool.
    assert_int_equal(process_threads(), before + 2);
  }
}

void openmp_is_left_as_it_was(void **) {
  const backend::BackendRef cpu = open_cpu();
  const StepModel model = assert_ok_value(tutti::testing::make_step_model("cnn", 4));
  StepTrainer trainer = make_trainer(cpu, model, 6, 2);
  const int threads_before = omp_get_max_threads();
  omp_set_num_threads(5);
  assert_ok(trainer.step());
  assert_int_equal(omp_get_max_threads(), 5);
  omp_set_num_threads(threads_before);
}

/// Hosts may call from threads of their own pools, several at a time on one device.
void programs_run_inside_parallel_regions(void **) {
  const backend::BackendRef cpu = open_cpu();
  const StepModel model = assert_ok_value(tutti::testing::make_step_model("cnn", 4));
  std::vector<StepTrainer> trainers;
  for (int i = 0; i < 3; ++i)
    trainers.push_back(make_trainer(cpu, model, 6, 2));
  std::atomic<int> failures{0};
#pragma omp parallel for num_threads(3)
  for (size_t i = 0; i < 3; ++i) {
    for (int step = 0; step < 5; ++step)
      failures += trainers[i].step().ok() ? 0 : 1;
  }
  assert_int_equal(failures, 0);
  const std::string name = model.variables.front().name;
  const std::vector<float> first = assert_ok_value(trainers[0].values("weight/", name));
  for (const StepTrainer &trainer : trainers)
    assert_true(assert_ok_value(trainer.values("weight/", name)) == first);
}

}  // namespace

static int run_all(int, char **) {
  backend::cpu::cut_everything = true;
  const CMUnitTest tests[] = {
      cmocka_unit_test(threads_belong_to_the_device),         cmocka_unit_test(training_is_repeatable),
      cmocka_unit_test(predictions_are_those_of_one_thread),  cmocka_unit_test(openmp_is_left_as_it_was),
      cmocka_unit_test(programs_run_inside_parallel_regions),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace threads_test
