// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/writer.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "base/file.h"
#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/layout.h"
#include "checkpoint/reader.h"
#include "testing.h"

namespace writer_test {

using namespace tutti::impl;
using namespace tutti::impl::checkpoint;

namespace {

std::vector<std::string> names_in(const std::string &path) {
  return base::list_directory(path).value_or(std::vector<std::string>());
}

void test_files_of_a_checkpoint(void **) {
  TemporaryDirectory directory;
  const std::string path = assert_ok_value(write_checkpoint(directory.path(), small_snapshot(12), nullptr));
  assert_string_equal(path.c_str(), (directory.path() + "/checkpoint-12").c_str());
  const std::vector<std::string> expected = {"graph.json", "manifest.json", "slots.safetensors", "weights.safetensors"};
  assert_true(names_in(path) == expected);
  assert_true(names_in(directory.path()) == std::vector<std::string>{"checkpoint-12"});
}

void test_equal_snapshots_give_equal_bytes(void **) {
  TemporaryDirectory one, two;
  const std::string a = assert_ok_value(write_checkpoint(one.path(), small_snapshot(3), nullptr));
  const std::string b = assert_ok_value(write_checkpoint(two.path(), small_snapshot(3), nullptr));
  for (const std::string &name : names_in(a)) {
    const std::string left = assert_ok_value(base::read_file(a + "/" + name));
    const std::string right = assert_ok_value(base::read_file(b + "/" + name));
    assert_true(left == right);
  }
}

void test_an_existing_checkpoint_is_replaced(void **) {
  TemporaryDirectory directory;
  assert_ok(write_checkpoint(directory.path(), small_snapshot(3), nullptr));
  Snapshot changed = small_snapshot(3);
  changed.metrics = base::JsonObject{{"loss", 99.0}};
  const std::string path = assert_ok_value(write_checkpoint(directory.path(), changed, nullptr));
  const Checkpoint read = assert_ok_value(read_checkpoint(path, {}));
  assert_true(read.manifest.metrics == changed.metrics);
  assert_true(names_in(directory.path()) == std::vector<std::string>{"checkpoint-3"});
}

// As workers do whose hooks save into one directory.
void test_several_writers_of_one_step(void **) {
  TemporaryDirectory directory;
  constexpr int kWriters = 4, kSteps = 100;
  std::barrier together(kWriters);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kWriters; ++t) {
    threads.emplace_back([&] {
      for (int64_t step = 0; step < kSteps; ++step) {
        together.arrive_and_wait();
        failed += write_checkpoint(directory.path(), small_snapshot(step), nullptr).ok() ? 0 : 1;
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  assert_int_equal(failed, 0);
  assert_int_equal(names_in(directory.path()).size(), kSteps);
  for (int64_t step = 0; step < kSteps; ++step)
    assert_ok(read_checkpoint(checkpoint_path(directory.path(), step), {}));
}

// Whatever call fails, and however often: nothing is visible and nothing is left.
void test_a_full_disk_leaves_nothing(void **) {
  TemporaryDirectory directory;
  assert_ok(write_checkpoint(directory.path(), small_snapshot(1), nullptr));
  struct Fault {
    base::FileOperation operation;
    int error;
    const char *text;
  };
  const Fault faults[] = {{base::FileOperation::write, ENOSPC, "No space left"},
                          {base::FileOperation::sync, EIO, "Input/output error"},
                          {base::FileOperation::rename, EIO, "Input/output error"},
                          {base::FileOperation::open, EMFILE, "Too many open files"}};
  for (const Fault &fault : faults) {
    int failures = 0;
    for (int64_t n = 1; n <= 64; ++n) {
      base::fail_file_operation(fault.operation, n, fault.error);
      const auto written = write_checkpoint(directory.path(), small_snapshot(2), nullptr);
      base::fail_file_operation(fault.operation, 0, 0);
      if (written.ok()) {
        assert_ok(read_checkpoint(*written, {}));
        assert_ok(base::remove_tree(directory.path(), "checkpoint-2"));
        break;
      }
      ++failures;
      assert_error_contains(written, "cannot write the checkpoint of step 2");
      assert_error_contains(written, fault.text);
      // When only the last fsync failed, the new name may be there; then it is complete.
      if (base::path_exists(directory.path() + "/checkpoint-2")) {
        assert_ok(read_checkpoint(directory.path() + "/checkpoint-2", {}));
        assert_ok(base::remove_tree(directory.path(), "checkpoint-2"));
      }
      assert_true(names_in(directory.path()) == std::vector<std::string>{"checkpoint-1"});
    }
    assert_true(failures > 0 && failures < 64);
  }
  assert_ok(read_checkpoint(directory.path() + "/checkpoint-1", {}));
}

void test_cancel_leaves_nothing(void **) {
  TemporaryDirectory directory;
  const auto token = base::CancelToken::create();
  token->cancel();
  assert_int_equal(write_checkpoint(directory.path(), small_snapshot(1), token.get()).code(), base::Code::cancelled);
  assert_true(names_in(directory.path()).empty());
}

void test_a_directory_that_cannot_be_written(void **) {
  TemporaryDirectory directory;
  const std::string file = directory.path() + "/file";
  assert_ok(base::write_file_synced(file, "x"));
  assert_error_contains(write_checkpoint(file + "/run", small_snapshot(1), nullptr), "file/run");
}

void test_retention(void **) {
  TemporaryDirectory directory;
  for (const int64_t step : {1, 9, 10, 100, 5}) {
    assert_ok(write_checkpoint(directory.path(), small_snapshot(step), nullptr));
  }
  assert_ok(base::make_directories(directory.path() + "/checkpoint-7.backup"));
  assert_ok(remove_old_checkpoints(directory.path(), 100, 0));
  assert_int_equal(assert_ok_value(list_checkpoints(directory.path())).size(), 5);
  assert_ok(remove_old_checkpoints(directory.path(), 5, 2));
  assert_int_equal(assert_ok_value(list_checkpoints(directory.path())).size(), 5);
  assert_ok(remove_old_checkpoints(directory.path(), 100, 3));
  const auto kept = assert_ok_value(list_checkpoints(directory.path()));
  assert_int_equal(kept.size(), 3);
  assert_int_equal(kept[0].step, 9);
  assert_int_equal(kept[2].step, 100);
  const std::vector<std::string> expected = {"checkpoint-10", "checkpoint-100", "checkpoint-7.backup", "checkpoint-9"};
  assert_true(names_in(directory.path()) == expected);
}

void test_unfinished_ones_are_removed(void **) {
  TemporaryDirectory directory;
  assert_ok(write_checkpoint(directory.path(), small_snapshot(1), nullptr));
  assert_ok(base::make_directories(directory.path() + "/.unfinished-checkpoint-2.77.0"));
  assert_ok(base::write_file_synced(directory.path() + "/.unfinished-checkpoint-2.77.0/weights.safetensors", "half"));
  assert_ok(base::write_file_synced(directory.path() + "/notes.txt", "mine"));
  assert_int_equal(assert_ok_value(list_checkpoints(directory.path())).size(), 1);
  assert_ok(remove_unfinished(directory.path()));
  const std::vector<std::string> expected = {"checkpoint-1", "notes.txt"};
  assert_true(names_in(directory.path()) == expected);
  assert_ok(remove_unfinished(directory.path() + "/none"));
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_files_of_a_checkpoint),
      cmocka_unit_test(test_equal_snapshots_give_equal_bytes),
      cmocka_unit_test(test_several_writers_of_one_step),
      cmocka_unit_test(test_an_existing_checkpoint_is_replaced),
      cmocka_unit_test(test_a_full_disk_leaves_nothing),
      cmocka_unit_test(test_cancel_leaves_nothing),
      cmocka_unit_test(test_a_directory_that_cannot_be_written),
      cmocka_unit_test(test_retention),
      cmocka_unit_test(test_unfinished_ones_are_removed),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace writer_test
