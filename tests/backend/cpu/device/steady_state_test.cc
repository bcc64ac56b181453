// SPDX-License-Identifier: Apache-2.0
//
// A replayed segment takes no lock and asks for no memory: counted over whole training steps of seven networks. Locks
// count inside the libraries beneath too. Memory does not within oneDNN's execute function, which makes a table of the
// arguments at each call, whoever calls it.
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/step_models.h"
#include "base/lock_probe.h"
#include "runtime/backend_list.h"
#include "testing.h"

// Stands before oneDNN's own function in this program.
extern "C" __attribute__((visibility("default"))) dnnl_status_t dnnl_primitive_execute(
    const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count, const dnnl_exec_arg_t *arguments) {
  static const auto execute =
      reinterpret_cast<decltype(&dnnl_primitive_execute)>(dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  const tutti::testing::LockProbe::Excuse excuse;
  return execute(primitive, stream, count, arguments);
}

namespace {

using tutti::testing::LockProbe;
using tutti::testing::StepModel;
using tutti::testing::StepTrainer;

void count_steps(const tutti::impl::backend::BackendRef &backend, const char *name, int32_t threads) {
  const StepModel model = assert_ok_value(tutti::testing::make_step_model(name, 4));
  StepTrainer trainer =
      assert_ok_value(StepTrainer::create(backend, model, 6, tutti::impl::backend::Level::fast, 0, threads));
  for (int warm = 0; warm < 3; ++warm)
    assert_ok(trainer.step());
  // The first call of a thread into a library makes its thread-local memory there, once: any thread of the team may
  // come late.
  int64_t locks = 0, heap_calls = 0;
  for (int32_t late = 0; late < threads; ++late) {
    const LockProbe probe;
    for (int step = 0; step < 10; ++step)
      assert_ok(trainer.step());
    locks = probe.locks(), heap_calls = probe.heap_calls();
    if (heap_calls == 0) break;
  }
  print_message("network %s, %d threads: %lld locks, %lld heap calls in 10 steps\n", name, threads,
                static_cast<long long>(locks), static_cast<long long>(heap_calls));
  assert_int_equal(locks, 0);
  assert_int_equal(heap_calls, 0);
}

void segments_take_no_lock_and_no_memory(void **) {
  if (!LockProbe::counts()) {
    print_message("skipped: a sanitizer has replaced the functions that are counted\n");
    test_skip();
  }
  auto backend = assert_ok_value(tutti::impl::runtime::open_backend("cpu", "{}", {}));
  for (const char *name : {"toy", "mlp", "cnn", "resnet20", "separable", "resnet18", "gpt2_tiny"}) {
    for (int32_t threads : {1, 3})
      count_steps(backend, name, threads);
  }
}

/// The probe sees what it should.
void the_probe_counts(void **) {
  if (!LockProbe::counts()) test_skip();
  const LockProbe probe;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  void *volatile block = malloc(10);
  free(block);
  assert_int_equal(probe.locks(), 1);
  assert_int_equal(probe.heap_calls(), 1);
  const LockProbe::Excuse excuse;
  block = malloc(10);
  free(block);
  assert_int_equal(probe.heap_calls(), 1);
}

}  // namespace

int main() {
  // So that the team has something to do.
  tutti::impl::backend::cpu::cut_everything = true;
  const CMUnitTest tests[] = {
      cmocka_unit_test(segments_take_no_lock_and_no_memory),
      cmocka_unit_test(the_probe_counts),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
