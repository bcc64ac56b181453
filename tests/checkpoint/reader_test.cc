// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/reader.h"

#include <stdlib.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "base/file.h"
#include "checkpoint/averaged_version.h"
#include "checkpoint/checkpoint_testing.h"
#include "testing.h"

namespace reader_test {

using namespace tutti::impl;
using namespace tutti::impl::checkpoint;

namespace {

void assert_is_version(const WeightVersion &got, const WeightVersion &expected, bool slots) {
  assert_int_equal(got.step(), expected.step());
  size_t count = 0;
  for (size_t i = 0; i < expected.entries().size(); ++i) {
    const StateEntry &entry = expected.entries()[i];
    if (entry.role == StateRole::slot && !slots) continue;
    ++count;
    const int64_t at = got.find(entry.role, entry.name);
    assert_true(at >= 0);
    assert_true(
        tensor::identical(assert_ok_value(got.read(static_cast<size_t>(at))), assert_ok_value(expected.read(i))));
  }
  assert_int_equal(got.entries().size(), count);
}

void test_reads_what_was_written(void **) {
  TemporaryDirectory directory;
  const Snapshot snapshot = small_snapshot(5);
  const std::string path = assert_ok_value(write_checkpoint(directory.path(), snapshot, nullptr));
  const Checkpoint all = assert_ok_value(read_checkpoint(path, {}));
  assert_is_version(*all.state, *snapshot.state, true);
  assert_string_equal(all.graph_text.c_str(), snapshot.graph_text.c_str());
  assert_true(all.manifest.run == snapshot.run && all.manifest.iterator == snapshot.iterator);
  ReadOptions no_slots;
  no_slots.slots = false;
  assert_is_version(*assert_ok_value(read_checkpoint(path, no_slots)).state, *snapshot.state, false);
}

// They lie beside the other slots, so that predicting need not read those.
void test_averages(void **) {
  TemporaryDirectory directory;
  Snapshot snapshot = small_snapshot(5);
  const WeightVersion &plain = *snapshot.state;
  std::vector<StateEntry> entries = plain.entries();
  std::vector<tensor::Tensor> tensors;
  for (size_t i = 0; i < entries.size(); ++i)
    tensors.push_back(assert_ok_value(plain.read(i)));
  entries.push_back({"dense/kernel/average", StateRole::slot, tensor::DType::f32, tensor::Shape{2, 3}});
  tensors.push_back(*tensor::Tensor::from_values<float>({2, 3}, {9, 8, 7, 6, 5, 4}));
  snapshot.state = base::make_ref<TensorVersion>(5, entries, tensors);
  const std::string path = assert_ok_value(write_checkpoint(directory.path(), snapshot, nullptr));
  assert_is_version(*assert_ok_value(read_checkpoint(path, {})).state, *snapshot.state, true);
  ReadOptions no_slots;
  no_slots.slots = false;
  const Checkpoint lean = assert_ok_value(read_checkpoint(path, no_slots));
  assert_int_equal(lean.state->find(StateRole::slot, "dense/kernel/velocity"), -1);
  assert_true(lean.state->find(StateRole::slot, "dense/kernel/average") >= 0);
  const base::Ref<WeightVersion> averaged = with_averages(lean.state);
  assert_int_equal(averaged->entries().size(), 2);
  const auto kernel = averaged->find(StateRole::weight, "dense/kernel");
  assert_true(tensor::identical(assert_ok_value(averaged->read(static_cast<size_t>(kernel))), tensors.back()));
  const auto bias = averaged->find(StateRole::weight, "dense/bias");
  assert_true(tensor::identical(assert_ok_value(averaged->read(static_cast<size_t>(bias))), tensors[1]));
  flip_bit(path + "/averages.safetensors", 40);
  assert_int_equal(read_checkpoint(path, no_slots).code(), base::Code::data_loss);
}

void test_nothing_there(void **) {
  TemporaryDirectory directory;
  RememberingLogger log;
  assert_int_equal(read_checkpoint(directory.path() + "/checkpoint-1", {}).code(), base::Code::not_found);
  const auto newest = read_newest_checkpoint(directory.path(), {}, *log.logger());
  assert_int_equal(newest.code(), base::Code::not_found);
  assert_error_contains(newest, directory.path());
  const auto nowhere = read_newest_checkpoint("/nowhere/at/all", {}, *log.logger());
  assert_int_equal(nowhere.code(), base::Code::not_found);
  assert_error_contains(nowhere, "there is no checkpoint in '/nowhere/at/all': the directory does not exist");
  assert_null(strstr(newest.status().message().c_str(), "does not exist"));
  assert_string_equal(log.text().c_str(), "");
}

void test_newest_by_number_not_by_name(void **) {
  TemporaryDirectory directory;
  RememberingLogger log;
  for (const int64_t step : {9, 10, 100}) {
    assert_ok(write_checkpoint(directory.path(), small_snapshot(step), nullptr));
  }
  assert_ok(base::make_directories(directory.path() + "/checkpoint-0200"));
  assert_ok(base::make_directories(directory.path() + "/checkpoint-99999999999999999999"));
  assert_int_equal(assert_ok_value(read_newest_checkpoint(directory.path(), {}, *log.logger())).manifest.step, 100);
  const auto direct = read_checkpoint_or_newest(directory.path() + "/checkpoint-9", {}, *log.logger());
  assert_int_equal(assert_ok_value(direct).manifest.step, 9);
  assert_int_equal(assert_ok_value(read_checkpoint_or_newest(directory.path(), {}, *log.logger())).manifest.step, 100);
}

// Each way of damage to each file of the newest checkpoint: fall back, and say what was wrong.
void test_damage_falls_back(void **) {
  enum Damage { flip, cut, remove_it, empty, longer, much_longer };
  for (const char *name : {"weights.safetensors", "slots.safetensors", "graph.json", "manifest.json"}) {
    for (const Damage damage : {flip, cut, remove_it, empty, longer, much_longer}) {
      TemporaryDirectory directory;
      RememberingLogger log;
      assert_ok(write_checkpoint(directory.path(), small_snapshot(1), nullptr));
      const std::string newest = assert_ok_value(write_checkpoint(directory.path(), small_snapshot(2), nullptr));
      const std::string path = newest + "/" + name;
      const auto size = static_cast<size_t>(assert_ok_value(base::file_size_bytes(path)));
      if (damage == flip) flip_bit(path, size / 2, 3);
      if (damage == cut) truncate_file(path, size - 1);
      if (damage == empty) truncate_file(path, 0);
      if (damage == longer) truncate_file(path, size + 1);
      if (damage == much_longer) truncate_file(path, size + (size_t{70} << 20));
      if (damage == remove_it) assert_ok(base::remove_file(path));
      const Checkpoint read = assert_ok_value(read_newest_checkpoint(directory.path(), {}, *log.logger()));
      assert_int_equal(read.manifest.step, 1);
      assert_contains(log.text().c_str(), "WARNING: ignoring a bad checkpoint");
      assert_contains(log.text().c_str(), name);
      assert_contains(log.text().c_str(), "falling back to checkpoint");
      assert_int_equal(read_checkpoint(newest, {}).code(), base::Code::data_loss);
    }
  }
}

// In bytes, as RLIMIT_DATA counts; 0 where the system does not say.
rlim_t data_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmData:")) return std::stoul(line.substr(7)) << 10;
  return 0;
}

// Want of memory says nothing about a checkpoint.
void test_without_memory_nothing_older_is_taken(void **) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  test_skip();  // a sanitizer's memory is more than any limit
#endif
  const rlim_t held = data_of_this_process();
  if (held == 0) test_skip();
  TemporaryDirectory directory;
  for (const int64_t step : {1, 2}) {
    Snapshot snapshot = small_snapshot(step);
    const std::vector<StateEntry> entries = {
        {"large", StateRole::weight, tensor::DType::f32, tensor::Shape{step << 23}}};
    const std::vector<tensor::Tensor> tensors = {
        assert_ok_value(tensor::Tensor::zeros(tensor::DType::f32, {step << 23}))};
    snapshot.state = base::make_ref<TensorVersion>(step, entries, tensors);
    assert_ok(write_checkpoint(directory.path(), snapshot, nullptr));
  }
  RememberingLogger log;
  rlimit before;
  assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
  // Enough for the first checkpoint, not for the second.
  const rlimit narrow{held + (rlim_t{48} << 20), before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_DATA, &narrow), 0);
  const auto read = read_newest_checkpoint(directory.path(), {}, *log.logger());
  assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
  assert_int_equal(read.code(), base::Code::resource_exhausted);
  assert_error_contains(read, "out of memory");
  assert_null(strstr(log.text().c_str(), "falling back"));
  assert_int_equal(assert_ok_value(read_newest_checkpoint(directory.path(), {}, *log.logger())).manifest.step, 2);
}

void test_none_good_is_a_clear_error(void **) {
  TemporaryDirectory directory;
  RememberingLogger log;
  for (const int64_t step : {1, 2}) {
    const std::string path = assert_ok_value(write_checkpoint(directory.path(), small_snapshot(step), nullptr));
    flip_bit(path + "/weights.safetensors", 40);
  }
  const auto read = read_newest_checkpoint(directory.path(), {}, *log.logger());
  assert_int_equal(read.code(), base::Code::data_loss);
  assert_error_contains(read, "none of the 2 checkpoints");
  assert_error_contains(read, "checkpoint-2/weights.safetensors");
}

void test_a_renamed_checkpoint_is_not_believed(void **) {
  TemporaryDirectory directory;
  RememberingLogger log;
  assert_ok(write_checkpoint(directory.path(), small_snapshot(1), nullptr));
  assert_ok(write_checkpoint(directory.path(), small_snapshot(2), nullptr));
  assert_ok(base::rename_synced(directory.path() + "/checkpoint-2", directory.path() + "/checkpoint-3"));
  assert_int_equal(assert_ok_value(read_newest_checkpoint(directory.path(), {}, *log.logger())).manifest.step, 1);
  assert_contains(log.text().c_str(), "contains step 2");
}

// It is good: to train on from an older one would be to write over it.
void test_a_newer_release_is_not_passed_over(void **) {
  TemporaryDirectory directory;
  RememberingLogger log;
  assert_ok(write_checkpoint(directory.path(), small_snapshot(1), nullptr));
  assert_ok(write_checkpoint(directory.path(), small_snapshot(2), nullptr));
  const std::string path = directory.path() + "/checkpoint-2/manifest.json";
  Manifest manifest = assert_ok_value(parse_manifest(assert_ok_value(base::read_file(path))));
  manifest.format_version = kManifestFormatVersion + 1;
  assert_ok(base::write_file_synced(path, manifest_text(manifest)));
  const auto read = read_newest_checkpoint(directory.path(), {}, *log.logger());
  assert_int_equal(read.code(), base::Code::failed_precondition);
  assert_error_contains(read, path);
  assert_error_contains(read, "format version 2 was written by a newer release; this one reads up to 1");
  assert_string_equal(log.text().c_str(), "");
}

// A checkpoint of the first release: every later one must read it.
void test_fixture(void **) {
  const char *testdata = getenv("TUTTI_TESTDATA");
  if (testdata == nullptr) test_skip();
  const std::string path = base::concat(testdata, "/checkpoint/0.1/checkpoint-12");
  const Checkpoint read = assert_ok_value(read_checkpoint(path, {}));
  assert_is_version(*read.state, *small_version(12), true);
  assert_true(read.manifest.run == small_snapshot(12).run);
  assert_true(read.manifest.metrics == small_snapshot(12).metrics);
  assert_int_equal(read.manifest.format_version, 1);
}

}  // namespace

// With an argument: writes the checkpoint that is kept as a fixture of this release below that directory.
static int run_all(int argument_count, char **arguments) {
  if (argument_count > 1) return write_checkpoint(arguments[1], small_snapshot(12), nullptr).ok() ? 0 : 1;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_reads_what_was_written),
      cmocka_unit_test(test_averages),
      cmocka_unit_test(test_nothing_there),
      cmocka_unit_test(test_newest_by_number_not_by_name),
      cmocka_unit_test(test_damage_falls_back),
      cmocka_unit_test(test_without_memory_nothing_older_is_taken),
      cmocka_unit_test(test_none_good_is_a_clear_error),
      cmocka_unit_test(test_a_renamed_checkpoint_is_not_believed),
      cmocka_unit_test(test_a_newer_release_is_not_passed_over),
      cmocka_unit_test(test_fixture),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace reader_test
