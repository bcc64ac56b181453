// SPDX-License-Identifier: Apache-2.0
//
// What a manifest keeps of a run, written and read again.
#include "estimator/run_state.h"

#include "testing.h"

namespace tutti::impl::estimator::run_state_test {
namespace {

RunState read(const base::Json &run) { return assert_ok_value(RunState::from_json(run, {}, {})); }

void test_scale_of_the_loss(void **) {
  RunState state;
  state.batch_counter = 7;
  assert_null(strstr(state.run_json().dump().c_str(), "loss_scale"));
  assert_true(read(state.run_json()).loss_scale == distribute::LossScaleState());
  state.loss_scale = {32768, 1999, 3};
  const RunState again = read(state.run_json());
  assert_true(again.loss_scale == state.loss_scale);
  assert_int_equal(again.batch_counter, 7);
}

void test_scales_that_are_none(void **) {
  for (const int64_t scale : {int64_t{0}, int64_t{-2}, int64_t{3}, int64_t{65535}}) {
    const base::Json run = base::JsonObject{
        {"loss_scale", base::JsonObject{{"scale", scale}, {"good_steps", int64_t{0}}, {"skipped_steps", int64_t{0}}}}};
    assert_error_contains(RunState::from_json(run, {}, {}).status(), "expected a power of two");
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_scale_of_the_loss),
    cmocka_unit_test(test_scales_that_are_none),
};
TEST_MAIN(tests)

}  // namespace tutti::impl::estimator::run_state_test
