// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/background_saver.h"

#include <errno.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "base/file.h"
#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/reader.h"
#include "testing.h"

namespace background_saver_test {

using namespace tutti::impl;
using namespace tutti::impl::checkpoint;

namespace {

// A version that can only be read once somebody opens the gate.
class GatedVersion : public WeightVersion {
 public:
  explicit GatedVersion(int64_t step) : inner_(small_version(step)) {}
  int64_t step() const override { return inner_->step(); }
  const std::vector<StateEntry> &entries() const override { return inner_->entries(); }
  base::Result<tensor::Tensor> read(size_t index) const override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
    return inner_->read(index);
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  base::Ref<WeightVersion> inner_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool open_ = false;
};

BackgroundSaver::Options options_for(const TemporaryDirectory &directory) {
  BackgroundSaver::Options options;
  options.directory = directory.path() + "/run";
  return options;
}

void test_saves_in_order_and_keeps_the_newest(void **) {
  TemporaryDirectory directory;
  std::mutex mutex;
  std::vector<int64_t> saved;
  BackgroundSaver::Options options = options_for(directory);
  options.keep_max = 2;
  options.on_saved = [&](int64_t step, const std::string &path) {
    std::lock_guard lock(mutex);
    if (base::path_exists(path + "/manifest.json")) saved.push_back(step);
  };
  auto saver = assert_ok_value(BackgroundSaver::start(std::move(options)));
  for (int64_t step = 0; step < 6; ++step)
    assert_ok(saver->save(small_snapshot(step), nullptr));
  assert_ok(saver->flush(nullptr));
  assert_int_equal(saver->saved_count(), 6);
  assert_true(saved == std::vector<int64_t>({0, 1, 2, 3, 4, 5}));
  assert_ok(saver->close(nullptr));
  assert_ok(saver->close(nullptr));
  assert_int_equal(saver->save(small_snapshot(9), nullptr).code(), base::Code::failed_precondition);
  const auto kept = assert_ok_value(list_checkpoints(directory.path() + "/run"));
  assert_int_equal(kept.size(), 2);
  assert_int_equal(kept[0].step, 4);
}

void test_save_waits_only_when_the_disk_is_behind(void **) {
  TemporaryDirectory directory;
  BackgroundSaver::Options options = options_for(directory);
  options.max_waiting = 2;
  auto saver = assert_ok_value(BackgroundSaver::start(std::move(options)));
  const auto gate = base::make_ref<GatedVersion>(1);
  Snapshot blocked = small_snapshot(1);
  blocked.state = gate;
  assert_ok(saver->save(blocked, nullptr));
  assert_ok(saver->save(small_snapshot(2), nullptr));
  // The first may still be waiting or already be in the writer's hands: three fit at the latest once it is.
  const auto short_time = base::CancelToken::create(base::Deadline::after_ms(20));
  base::Status status;
  int64_t accepted = 2;
  for (int64_t step = 3; step < 6 && (status = saver->save(small_snapshot(step), short_time.get())).ok(); ++step) {
    ++accepted;
  }
  assert_int_equal(status.code(), base::Code::deadline_exceeded);
  assert_true(accepted == 2 || accepted == 3);
  assert_true(saver->wait_count() >= 1);
  gate->open();
  assert_ok(saver->close(nullptr));
  assert_int_equal(saver->saved_count(), accepted);
}

void test_a_failed_save_is_reported_and_final(void **) {
  TemporaryDirectory directory;
  RememberingLogger log;
  BackgroundSaver::Options options = options_for(directory);
  options.logger = log.logger();
  auto saver = assert_ok_value(BackgroundSaver::start(std::move(options)));
  assert_ok(saver->save(small_snapshot(1), nullptr));
  assert_ok(saver->flush(nullptr));
  base::fail_file_operation(base::FileOperation::write, 1, ENOSPC);
  assert_ok(saver->save(small_snapshot(2), nullptr));
  const base::Status status = saver->flush(nullptr);
  base::fail_file_operation(base::FileOperation::write, 0, 0);
  assert_int_equal(status.code(), base::Code::resource_exhausted);
  assert_error_contains(status, "step 2");
  assert_int_equal(saver->save(small_snapshot(3), nullptr).code(), base::Code::resource_exhausted);
  assert_contains(log.text().c_str(), "No space left");
  assert_int_equal(saver->close(nullptr).code(), base::Code::resource_exhausted);
  assert_int_equal(assert_ok_value(list_checkpoints(directory.path() + "/run")).size(), 1);
  assert_int_equal(assert_ok_value(base::list_directory(directory.path() + "/run")).size(), 1);
}

void test_close_can_be_cancelled(void **) {
  TemporaryDirectory directory;
  auto saver = assert_ok_value(BackgroundSaver::start(options_for(directory)));
  const auto gate = base::make_ref<GatedVersion>(1);
  Snapshot blocked = small_snapshot(1);
  blocked.state = gate;
  assert_ok(saver->save(blocked, nullptr));
  assert_ok(saver->save(small_snapshot(2), nullptr));
  const auto token = base::CancelToken::create();
  token->cancel();
  base::Thread opener = assert_ok_value(base::Thread::start("opener", [&] {
    usleep(20000);
    gate->open();
  }));
  assert_int_equal(saver->close(token.get()).code(), base::Code::cancelled);
  assert_int_equal(assert_ok_value(base::list_directory(directory.path() + "/run")).size(), 0);
}

void test_a_directory_that_cannot_be_written_is_known_at_once(void **) {
  TemporaryDirectory directory;
  assert_ok(base::write_file_synced(directory.path() + "/run", "a file where the directory should be"));
  const auto saver = BackgroundSaver::start(options_for(directory));
  assert_error_contains(saver, "cannot keep checkpoints in");
  assert_error_contains(saver, directory.path() + "/run");
}

void test_destroying_gives_up(void **) {
  TemporaryDirectory directory;
  auto saver = assert_ok_value(BackgroundSaver::start(options_for(directory)));
  for (int64_t step = 0; step < 2; ++step)
    assert_ok(saver->save(small_snapshot(step), nullptr));
  saver.reset();
  for (const CheckpointName &name : assert_ok_value(list_checkpoints(directory.path() + "/run"))) {
    assert_ok(read_checkpoint(name.path, {}));
  }
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_saves_in_order_and_keeps_the_newest),
      cmocka_unit_test(test_save_waits_only_when_the_disk_is_behind),
      cmocka_unit_test(test_a_failed_save_is_reported_and_final),
      cmocka_unit_test(test_close_can_be_cancelled),
      cmocka_unit_test(test_a_directory_that_cannot_be_written_is_known_at_once),
      cmocka_unit_test(test_destroying_gives_up),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace background_saver_test
