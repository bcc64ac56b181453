// SPDX-License-Identifier: Apache-2.0
//
// Caches in files: tests lib/data/keep/cache_contents.cc, transform/cache.cc, transform/snapshot.cc, fingerprint.cc,
// element_file*.cc and source/element_files.cc. The oracle is the walk without a cache.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/temporary_directory.h"
#include "conformance/dataset_conformance.h"
#include "data/keep/element_file.h"
#include "sample_data.h"
#include "sample_files.h"

namespace file_cache_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Result;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using tensor::DType;
using tensor::Tensor;

namespace {

const std::string kKey = "1";

Pipeline cached(Pipeline pipeline, const std::string &path, const std::string &key = kKey) {
  return std::move(pipeline.apply("cache", {{"path", path}, {"key", key}}));
}

// Texts of growing number and length beside a number.
Pipeline texts(int64_t count) {
  data::TransformArguments arguments;
  arguments.map = [](const Element &input, Element &output) -> Status {
    TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
    std::vector<std::string> all;
    for (int64_t i = 0; i < value % 4; ++i)
      all.push_back(std::string(static_cast<size_t>(value * i), static_cast<char>('a' + value % 26)));
    output.components.push_back(input.components[0]);
    TUTTI_ASSIGN(Tensor made, tensor::make_bytes_tensor({value % 4}, all));
    output.components.push_back(std::move(made));
    TUTTI_ASSIGN(Tensor large, Tensor::zeros(DType::f32, {value % 3, 200}));
    output.components.push_back(std::move(large));
    return Status();
  };
  arguments.output_spec = data::ElementSpec{{{"value", data::Role::feature, DType::i64, {}},
                                             {"text", data::Role::label, DType::bytes, {data::unknown_dim()}},
                                             {"x", data::Role::feature, DType::f32, {data::unknown_dim(), 200}}}};
  return std::move(range(count).apply("map_callback", {}, std::move(arguments)));
}

Status fail_on_five(const Element &input, Element &output) {
  TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
  if (value == 5) return base::out_of_range("five is not allowed");
  output = input;
  return Status();
}

Pipeline failing(int64_t count) {
  data::TransformArguments arguments;
  arguments.map = fail_on_five;
  return std::move(range(count).apply("map_callback", {}, std::move(arguments)));
}

// Counts how often an element of the input is asked for.
Pipeline counting(std::atomic<int64_t> &calls, int64_t count = 10) {
  data::TransformArguments arguments;
  arguments.map = [&calls](const Element &input, Element &output) {
    ++calls;
    output = input;
    return Status();
  };
  return std::move(sample(count).apply("map_callback", {}, std::move(arguments)));
}

std::vector<std::string> elements_of(const DatasetRef &dataset, int64_t seed = 7) {
  data::IteratorContext context;
  context.seed = seed;
  auto iterator = assert_ok_value(dataset->make_iterator(context));
  std::vector<std::string> all;
  for (Element element;;) {
    const Result<bool> more = iterator->next(element);
    if (more.ok() && !*more) return all;
    all.push_back(more.ok() ? fingerprint(element) : more.status().to_string());
    assert_true(all.size() < 100000);
  }
}

std::vector<std::string> elements_of(Pipeline pipeline, int64_t seed = 7) {
  return elements_of(assert_ok_value(pipeline.build()), seed);
}

std::vector<std::string> names_in(const std::string &directory) {
  return assert_ok_value(base::list_directory(directory));
}

// --- conformance ----------------------------------------------------------------------------------------------------

struct Shape {
  const char *name;
  std::function<Pipeline()> input;
  std::function<Pipeline(Pipeline)> behind;
};

std::vector<Shape> shapes() {
  const auto nothing = [](Pipeline p) { return p; };
  return {
      {"rows", [] { return sample(); }, nothing},
      {"rows, shuffled before", [] { return std::move(sample().shuffle(10)); },
       [](Pipeline p) { return std::move(p.repeat(3)); }},
      {"rows, batch", [] { return sample(130, 16); }, [](Pipeline p) { return std::move(p.batch(32).repeat(2)); }},
      {"rows, permutation", [] { return sample(); }, [](Pipeline p) { return std::move(p.shuffle(10).batch(3)); }},
      {"rows, elements shuffled", [] { return forward_only(range(20)); },
       [](Pipeline p) { return std::move(p.shuffle(6).repeat(2)); }},
      {"batches", [] { return std::move(sample().batch(3)); }, [](Pipeline p) { return std::move(p.repeat(2)); }},
      {"texts", [] { return texts(12); }, nothing},
      {"texts, shuffle", [] { return texts(12); }, [](Pipeline p) { return std::move(p.shuffle(12).repeat(2)); }},
      {"texts, prefetch", [] { return texts(12); }, [](Pipeline p) { return std::move(p.prefetch(2)); }},
      {"nothing", [] { return sample(0); }, nothing},
      {"take", [] { return sample(); },
       [](Pipeline p) {
         return std::move(p.apply("take", {{"count", int64_t{4}}}).repeat(2));
       }},
  };
}

// Each walk over a file that is not there yet, then all over one that is; the same for snapshots.
void caches_in_files_conform(void **) {
  const TemporaryDirectory directory;
  int64_t next = 0;
  for (const Shape &one : shapes()) {
    const std::vector<std::string> plain = elements_of(one.input());
    for (const char *const how : {"filled", "kept", "snapshot"}) {
      const std::string transform = how == std::string("snapshot") ? "snapshot" : "cache";
      const bool is_kept = how != std::string("filled");
      const std::string name = base::concat(one.name, ", ", how);
      const auto fresh = [&, path = directory / name]() {
        return is_kept ? path : base::concat(directory.path(), "/", ++next, ".elements");
      };
      const auto make = [&, transform] {
        Pipeline p = one.input();
        p.apply(transform, {{"path", fresh()}, {"key", kKey}});
        return p;
      };
      assert_true(elements_of(make()) == plain);
      assert_true(elements_of(make()) == plain);
      const DatasetCase conformance{name, [&] { return DatasetInstance{one.behind(make()).build()}; }};
      check_dataset_case(conformance);
      check_dataset_leaving(conformance);
    }
  }
}

void a_pass_with_failures_is_not_kept(void **) {
  const TemporaryDirectory directory;
  const std::string path = directory / "cache";
  DatasetCase conformance{"failing", [&] { return DatasetInstance{cached(failing(10), path).repeat(2).build()}; }};
  conformance.fails = true;
  check_dataset_case(conformance);
  assert_false(base::path_exists(path));
  // In random order all are needed first.
  const DatasetRef shuffled = assert_ok_value(cached(failing(10), path).shuffle(10).build());
  auto iterator = assert_ok_value(shuffled->make_iterator({}));
  Element element;
  for (int i = 0; i < 2; ++i) {
    const Result<bool> more = iterator->next(element);
    assert_true(more.code() == base::Code::aborted);
    assert_error_contains(more.status(), "put ignore_errors before a cache in a file");
    assert_error_contains(more.status(), "five is not allowed");
  }
  assert_true(names_in(directory.path()).empty());
  const DatasetRef ignored =
      assert_ok_value(cached(std::move(failing(10).apply("ignore_errors")), path).shuffle(10).build());
  assert_int_equal(elements_of(ignored).size(), 9);
  assert_true(base::path_exists(path));
}

// --- fresh or stale -------------------------------------------------------------------------------------------------

void a_file_serves_later_datasets(void **) {
  const TemporaryDirectory directory;
  const std::string path = directory / "cache";
  std::atomic<int64_t> calls{0};
  const auto expected = elements_of(sample());
  for (int i = 0; i < 3; ++i) {
    assert_true(elements_of(cached(counting(calls), path), i) == expected);
    assert_int_equal(calls.load(), 10);
  }
  // Threads and prefetching change nothing.
  data::TransformArguments arguments;
  arguments.map = fail_on_five;
  assert_true(elements_of(cached(std::move(counting(calls).prefetch(3)), path)) == expected);
  assert_int_equal(calls.load(), 10);
  // Another key, another number of elements: both are seen.
  assert_true(elements_of(cached(counting(calls), path, "2")) == expected);
  assert_int_equal(calls.load(), 20);
  assert_true(elements_of(cached(counting(calls, 7), path, "2")) == elements_of(sample(7)));
  assert_int_equal(calls.load(), 27);
  assert_true(elements_of(cached(counting(calls), path)) == expected);
  assert_int_equal(calls.load(), 37);
  assert_int_equal(names_in(directory.path()).size(), 1);
}

void snapshots_lie_side_by_side(void **) {
  const TemporaryDirectory directory;
  const std::string folder = directory / "deep/snapshots";
  std::atomic<int64_t> calls{0};
  const auto run = [&](int64_t count, const std::string &key) {
    return elements_of(std::move(counting(calls, count).apply("snapshot", {{"path", folder}, {"key", key}})));
  };
  for (int i = 0; i < 2; ++i) {
    assert_true(run(10, "a") == elements_of(sample(10)));
    assert_true(run(7, "a") == elements_of(sample(7)));
    assert_true(run(7, "b") == elements_of(sample(7)));
    assert_int_equal(calls.load(), 24);
  }
  assert_int_equal(names_in(folder).size(), 3);
}

void the_seed_counts_where_it_matters(void **) {
  const TemporaryDirectory directory;
  const std::string path = directory / "cache";
  const auto shuffled = [&] { return cached(std::move(sample(20).shuffle(20)), path, ""); };
  const auto one = elements_of(std::move(sample(20).shuffle(20)), 1),
             two = elements_of(std::move(sample(20).shuffle(20)), 2);
  assert_true(one != two);
  assert_true(elements_of(shuffled(), 1) == one);
  assert_true(elements_of(shuffled(), 2) == two);
  assert_true(elements_of(shuffled(), 1) == one);
  std::atomic<int64_t> calls{0};
  (void)elements_of(cached(counting(calls), path), 1);
  (void)elements_of(cached(counting(calls), path), 2);
  assert_int_equal(calls.load(), 10);
}

Pipeline lines(const std::string &path) {
  return begin_with("text_lines", {{"paths", std::vector<std::string>{path}}});
}

// Files that change under way, and while a cache is filled.
void changed_files_are_seen(void **) {
  const TemporaryDirectory directory;
  const std::string source = directory / "lines.txt", path = directory / "cache";
  write_bytes(source, "a\nb\n");
  const auto read = [&] { return texts_of(assert_ok_value(cached(lines(source), path, "").build())); };
  assert_true(read() == (std::vector<std::string>{"a", "b"}));
  write_bytes(source, "a\nb\nc\n");
  assert_true(read() == (std::vector<std::string>{"a", "b", "c"}));
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  write_bytes(source, "x\ny\nz\n");
  assert_int_equal(utimensat(AT_FDCWD, source.c_str(), times, 0), 0);
  assert_true(read() == (std::vector<std::string>{"x", "y", "z"}));

  const DatasetRef dataset = assert_ok_value(cached(lines(source), directory / "other", "").build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  write_bytes(source, "a\nb\n");
  Element element;
  for (int i = 0; i < 2; ++i)
    assert_true(assert_ok_value(iterator->next(element)));
  assert_error_contains(iterator->next(element).status(), "have changed while");
  assert_false(assert_ok_value(iterator->next(element)));
  assert_false(base::path_exists(directory / "other"));
}

void what_cannot_be_told_needs_a_key(void **) {
  const TemporaryDirectory directory;
  std::atomic<int64_t> calls{0};
  const Status status = cached(counting(calls), directory / "cache", "").status();
  assert_error_contains(status, "changes in the results of 'map_callback' cannot be detected; set the parameter 'key'");
  // A command does not tell what its program does.
  const graph::Attributes program{{"command", std::vector<std::string>{"true"}}};
  assert_error_contains(cached(std::move(sample().apply("map_process", program)), directory / "cache", "").status(),
                        "changes in the results of 'map_process' cannot be detected; set the parameter 'key'");
  assert_error_contains(sample().apply("cache", {{"key", kKey}}).status(), "expected the parameter 'path'");
  assert_error_contains(cached(std::move(sample().repeat()), directory / "cache").status(), "never ends");
  // The key of a cache stands for what comes before it.
  assert_ok(cached(cached(counting(calls), directory / "cache"), directory / "second", "").status());
  const DatasetRef unkeyed = assert_ok_value(counting(calls).apply("cache", {{"key", std::string()}}).build());
  assert_error_contains(cached(Pipeline(unkeyed), directory / "third", "").status(), "set the parameter 'key'");
  const std::string other = directory / "notes.txt";
  write_bytes(other, "something of the user's");
  const DatasetRef dataset = assert_ok_value(cached(sample(), other, "").build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  assert_error_contains(iterator->next(element).status(), "is not an element file");
  assert_string_equal(assert_ok_value(base::read_file(other)).c_str(), "something of the user's");
}

// --- damage, crashes, races -----------------------------------------------------------------------------------------

// Whatever bit is changed: an error that names the file, or the right elements; never others.
void damage_is_found(void **) {
  const TemporaryDirectory directory;
  const std::string path = directory / "cache";
  for (const bool is_static : {true, false}) {
    const auto make = [&] { return is_static ? sample(5) : texts(5); };
    const auto expected = elements_of(cached(make(), path));
    const std::string good = assert_ok_value(base::read_file(path));
    int64_t found = 0;
    const auto check = [&](const std::string &bytes) {
      write_bytes(path, bytes);
      const auto file = data::ElementFile::open(path);
      if (!file.ok()) return static_cast<void>(++found);
      Element element;
      assert_int_equal((*file)->size(), 5);
      for (int64_t i = 0; i < 5; ++i) {
        element.lineage.index = (*file)->lineage(i);
        const Status status = (*file)->element(i, element);
        if (status.ok()) {
          assert_true(fingerprint(element) == expected[static_cast<size_t>(i)]);
          continue;
        }
        assert_true(status.code() == base::Code::data_loss);
        assert_error_contains(status, path.c_str());
        assert_error_contains(status, "at offset");
        assert_error_contains(status, "delete the file");
        ++found;
        break;
      }
    };
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
      check(bad);
      check(good.substr(0, at));
    }
    assert_true(found > static_cast<int64_t>(good.size()));
    write_bytes(path, good);
    assert_true(elements_of(cached(make(), path)) == expected);
    std::string bad = good;
    bad[good.size() / 2] ^= 1;
    write_bytes(path, bad);
    const auto answers = elements_of(cached(make(), path));
    assert_true(answers.size() >= 1 && answers[0].find("DATA_LOSS") != std::string::npos);
    assert_ok(base::remove_file(path));
  }
}

void a_walk_that_is_left_leaves_nothing(void **) {
  const TemporaryDirectory directory;
  const std::string path = directory / "cache";
  {
    const DatasetRef dataset = assert_ok_value(cached(sample(), path).build());
    auto iterator = assert_ok_value(dataset->make_iterator({}));
    Element element;
    assert_true(assert_ok_value(iterator->next(element)));
    assert_int_equal(names_in(directory.path()).size(), 1);
    assert_false(base::path_exists(path));
  }
  assert_true(names_in(directory.path()).empty());
  // A process that dies has put nothing at the path.
  const pid_t child = fork();
  if (child == 0) {
    const auto dataset = cached(sample(), path).build();
    auto file = data::ElementFileWriter::create(path, (*dataset)->spec(), "x");
    _exit(file.ok() ? 0 : 1);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_int_equal(WEXITSTATUS(how), 0);
  assert_false(base::path_exists(path));
  assert_true(elements_of(cached(sample(), path)) == elements_of(sample()));
}

void several_may_fill_at_once(void **) {
  const TemporaryDirectory directory;
  const std::string path = directory / "cache";
  const auto expected = elements_of(sample(500));
  std::atomic<int64_t> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int pass = 0; pass < 5; ++pass)
        good += elements_of(cached(sample(500), path)) == expected ? 1 : 0;
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  assert_int_equal(good.load(), 20);
  assert_int_equal(names_in(directory.path()).size(), 1);
}

// A full disk is one error; the walk goes on without a cache.
void what_cannot_be_written_is_told(void **) {
  const TemporaryDirectory directory;
  const std::string path = directory / "cache";
  using base::FileOperation;
  for (const FileOperation operation :
       {FileOperation::open, FileOperation::write, FileOperation::sync, FileOperation::rename}) {
    const DatasetRef dataset = assert_ok_value(cached(sample(), path).build());
    base::fail_file_operation(operation, operation == FileOperation::open ? 2 : 1, ENOSPC);
    const auto answers = elements_of(dataset);
    base::fail_file_operation(operation, 0, 0);
    int64_t errors = 0;
    for (const std::string &answer : answers)
      errors += answer.find("cache") != std::string::npos;
    assert_int_equal(errors, 1);
    assert_true(names_in(directory.path()).empty());
  }
}

// --- reading --------------------------------------------------------------------------------------------------------

void batches_are_views(void **) {
  const TemporaryDirectory directory;
  const std::string path = directory / "cache";
  (void)elements_of(cached(sample(256, 16), path));
  const DatasetRef dataset = assert_ok_value(cached(sample(256, 16), path).batch(64).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element first, second;
  assert_true(assert_ok_value(iterator->next(first)));
  assert_true(assert_ok_value(iterator->next(second)));
  assert_true(first.components[0].buffer() == second.components[0].buffer());
  assert_true(first.components[0].read_only());
  assert_int_equal(reinterpret_cast<uintptr_t>(second.components[0].data()) % 64, 0);
}

void element_files_are_read_without_the_pipeline(void **) {
  const TemporaryDirectory directory;
  const std::string folder = directory / "snapshots";
  std::atomic<int64_t> calls{0};
  (void)elements_of(std::move(counting(calls).apply("snapshot", {{"path", folder}, {"key", std::string("a")}})));
  (void)elements_of(std::move(counting(calls, 3).apply("snapshot", {{"path", folder}, {"key", std::string("b")}})));
  const auto read = [&] {
    return begin_with("element_files", {{"paths", std::vector<std::string>{folder + "/*.elements"}}});
  };
  const DatasetRef dataset = assert_ok_value(read().build());
  assert_int_equal(dataset->cardinality().value(), 13);
  assert_true(dataset->spec() == assert_ok_value(sample().build())->spec());
  std::vector<int32_t> rows = values_of<int32_t>(dataset, "y");
  std::sort(rows.begin(), rows.end());
  assert_true(rows == (std::vector<int32_t>{0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9}));
  const DatasetCase cases[] = {
      {"element_files", [&] { return DatasetInstance{read().build()}; }},
      {"element_files, batch", [&] { return DatasetInstance{read().batch(4).build()}; }},
      {"element_files, shuffle", [&] { return DatasetInstance{read().shuffle(13).batch(4).repeat(2).build()}; }},
  };
  for (const DatasetCase &one : cases)
    check_dataset_case(one);
  (void)elements_of(std::move(range(3).apply("snapshot", {{"path", folder}})));
  assert_error_contains(read().status(), "has the components");
  write_bytes(folder + "/0.elements", "no");
  assert_error_contains(read().status(), "is not an element file");
}

// Files that another program wrote from the description of the format.
void element_files_are_as_described(void **) {
  const auto read = [](const char *name) {
    return assert_ok_value(
        begin_with("element_files", {{"paths", std::vector<std::string>{base::concat(GOLDEN_FOLDER, "/", name)}}})
            .build());
  };
  const DatasetRef rows = read("rows.elements");
  assert_string_equal(rows->spec().to_string().c_str(), "(x: f32[2], y: i32[] label)");
  assert_true(values_of<float>(rows, "x") == (std::vector<float>{0, .5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5}));
  assert_true(values_of<int32_t>(rows, "y") == (std::vector<int32_t>{0, 10, 20, 30, 40}));
  const DatasetRef texts = read("texts.elements");
  assert_string_equal(texts->spec().to_string().c_str(), "(text: bytes[unknown])");
  assert_true(texts_of(texts) == (std::vector<std::string>{"one", "", "three words here"}));
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(caches_in_files_conform),
    cmocka_unit_test(a_pass_with_failures_is_not_kept),
    cmocka_unit_test(a_file_serves_later_datasets),
    cmocka_unit_test(snapshots_lie_side_by_side),
    cmocka_unit_test(the_seed_counts_where_it_matters),
    cmocka_unit_test(changed_files_are_seen),
    cmocka_unit_test(what_cannot_be_told_needs_a_key),
    cmocka_unit_test(damage_is_found),
    cmocka_unit_test(a_walk_that_is_left_leaves_nothing),
    cmocka_unit_test(several_may_fill_at_once),
    cmocka_unit_test(what_cannot_be_written_is_told),
    cmocka_unit_test(batches_are_views),
    cmocka_unit_test(element_files_are_read_without_the_pipeline),
    cmocka_unit_test(element_files_are_as_described),
};
TEST_MAIN(tests)

}  // namespace file_cache_test
