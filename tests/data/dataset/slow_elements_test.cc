// SPDX-License-Identifier: Apache-2.0
//
// Elements that take long to make, with nothing to wait for: a deadline ends the call with the one that is under way
// (interrupt_check.h), and the walk goes on with the next call.
#include <atomic>
#include <chrono>
#include <thread>

#include "base/function_token.h"
#include "data/dataset/interrupt_check.h"
#include "data/dataset/stage.h"
#include "interrupt_cases.h"

namespace slow_elements_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Deadline;
using data::Dataset;
using data::Stage;

namespace {

// Calls of a function with which a deadline passes.
struct LateCalls {
  Ref<CancelToken> token = CancelToken::create();
  std::atomic<int64_t> count{0};
  void add(int64_t calls) {
    count += calls;
    token->set_deadline(Deadline::after_ms(0));
  }
};

// All answers of a walk in which each call of next() has at most so many calls of the function.
std::vector<std::string> late_walk(const char *name, const DatasetRef &dataset, LateCalls &late, int64_t most) {
  auto iterator = assert_ok_value(dataset->make_iterator(context_of(late.token)));
  std::vector<std::string> answers;
  int64_t interrupts = 0;
  for (Element element;;) {
    const int64_t before = late.count;
    late.token->set_deadline(Deadline::never());
    const Result<bool> more = iterator->next(element);
    if (late.count - before > most) print_error("%s: %d calls at once\n", name, static_cast<int>(late.count - before));
    assert_true(late.count - before <= most);
    if (base::is_interrupt(more.status())) {
      assert_true(++interrupts <= 200);
      continue;
    }
    if (more.ok() && !*more) break;
    assert_true(answers.size() < 100);
    answers.push_back(answer_of(more, element));
  }
  return answers;
}

// Whatever puts elements together, a function that was slow is not called again for one call of next().
void a_wait_ends_with_the_element_under_way(void **) {
  for (const Case &one : cases()) {
    if (one.in_background) continue;
    const auto walk = [&one](LateCalls &of_function, LateCalls &of_walk) {
      data::TransformArguments slow = with_map([&of_function](const Element &input, Element &output) -> Status {
        output = input;
        of_function.add(1);
        return Status();
      });
      Pipeline source = sample(kElements);
      source.apply("map_callback", {}, std::move(slow));
      return late_walk(one.name, assert_ok_value(one.build(std::move(source)).build()), of_walk, 1);
    };
    LateCalls unheard, never, late;
    const std::vector<std::string> expected = walk(unheard, never);
    check_equal(one.name, walk(late, late), expected, 0, "with slow elements");
    assert_true(late.count >= 1);
  }
}

// Rows 0, 1, 2, ... computed two at a time, slowly.
class SlowRows : public data::RandomAccess {
 public:
  explicit SlowRows(LateCalls &late) : late_(late) {}
  int64_t size() const override { return kElements; }
  int64_t rows_at_once() const override { return 2; }
  int64_t lineage(int64_t position) const override { return position; }
  Status element(int64_t position, Element &element) override {
    late_.add(1);
    element.components.resize(1);
    TUTTI_ASSIGN(element.components[0], Tensor::scalar(static_cast<int32_t>(position)));
    return Status();
  }
  Status gather(std::span<int64_t> positions, std::span<const data::RowTarget> targets) override {
    late_.add(static_cast<int64_t>(positions.size()));
    for (size_t i = 0; i < positions.size(); ++i)
      reinterpret_cast<int32_t *>(targets[0].data)[i] = static_cast<int32_t>(positions[i]);
    return Status();
  }

 private:
  LateCalls &late_;
};

class SlowRowsDataset : public Dataset {
 public:
  explicit SlowRowsDataset(LateCalls &late)
      : Dataset("slow_rows", {{{"y", data::Role::label, tensor::DType::i32, {}}}},
                data::Cardinality::exactly(kElements), {}),
        late_(late) {}
  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return data::open_indexed(*this, context);
  }
  Result<std::unique_ptr<data::RandomAccess>> random_access(const IteratorContext &, Access) const override {
    return std::unique_ptr<data::RandomAccess>(std::make_unique<SlowRows>(late_));
  }

 private:
  LateCalls &late_;
};

void rows_that_are_computed_end_a_wait(void **) {
  const std::vector<std::pair<const char *, Build>> builds = {
      {"batch", [](Pipeline p) { return std::move(p.batch(12)); }},
      {"shuffle, batch", [](Pipeline p) { return std::move(p.shuffle(100).batch(12)); }},
      {"shuffle with a buffer, batch", [](Pipeline p) { return std::move(p.shuffle(4).batch(12)); }},
      {"skip, batch",
       [](Pipeline p) {
         return std::move(p.apply("skip", {{"count", int64_t{1}}}).batch(12));
       }},
      {"window, batch",
       [](Pipeline p) {
         return std::move(p.apply("window", {{"size", int64_t{2}}, {"drop_remainder", true}}).batch(5));
       }},
      {"zip, batch",
       [](Pipeline p) {
         Pipeline first(data::from_slices({{"x", numbered(kElements, 3)}}));
         return std::move(first.apply("zip", {}, with_others({p.build().value()})).batch(12));
       }},
      {"enumerate, batch", [](Pipeline p) { return std::move(p.apply("enumerate").batch(12)); }},
      {"concatenate, batch",
       [](Pipeline p) { return std::move(p.apply("concatenate", {}, with_others({p.build().value()})).batch(20)); }},
  };
  for (const auto &[name, build] : builds) {
    const auto walk = [&, &name = name, &build = build](LateCalls &of_rows, LateCalls &of_walk) {
      Pipeline rows{DatasetRef(base::make_ref<SlowRowsDataset>(of_rows))};
      return late_walk(name, assert_ok_value(build(std::move(rows)).build()), of_walk, 2);
    };
    LateCalls unheard, never, late;
    const std::vector<std::string> expected = walk(unheard, never);
    check_equal(name, walk(late, late), expected, 0, "with slow rows");
  }
}

// What takes long is not ready, although nothing is waited for.
void a_slow_function_is_not_ready(void **) {
  const auto slow = with_map([](const Element &input, Element &output) -> Status {
    output = input;
    std::this_thread::sleep_for(std::chrono::milliseconds(data::CurrentDraw::kReadyMilliseconds / 2 + 1));
    return Status();
  });
  Pipeline pipeline = sample(kElements);
  const DatasetRef dataset =
      assert_ok_value(pipeline.apply("map_callback", {}, data::TransformArguments(slow)).batch(3).build());
  const Ref<CancelToken> token = CancelToken::create(Deadline::after_ms(0));
  auto iterator = assert_ok_value(dataset->make_iterator(context_of(token)));
  Element element;
  assert_true(iterator->next_if_ready(element).code() == base::Code::deadline_exceeded);
  // The third is there at once.
  assert_true(assert_ok_value(iterator->next_if_ready(element)));
  assert_int_equal(element.rows(), 3);
}

// Whoever looks for what is ready lets functions finish: they do not see the deadline that has passed before.
void a_function_is_not_told_of_a_look(void **) {
  std::vector<bool> had_token, had_ended;
  const auto asking = with_map([&](const Element &input, Element &output) -> Status {
    const Ref<CancelToken> token = base::FunctionToken::current();
    had_token.push_back(token != nullptr);
    had_ended.push_back(!base::check(token.get()).ok());
    output = input;
    return Status();
  });
  Pipeline pipeline = sample(kElements);
  const DatasetRef dataset =
      assert_ok_value(pipeline.apply("map_callback", {}, data::TransformArguments(asking)).batch(3).build());
  const Ref<CancelToken> token = CancelToken::create(Deadline::after_ms(0));
  auto iterator = assert_ok_value(dataset->make_iterator(context_of(token)));
  Element element;
  assert_true(assert_ok_value(iterator->next_if_ready(element)));
  assert_true(had_token == std::vector<bool>(3, true));
  assert_true(had_ended == std::vector<bool>(3, false));
  assert_true(base::FunctionToken::current() == nullptr);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(a_wait_ends_with_the_element_under_way),
    cmocka_unit_test(rows_that_are_computed_end_a_wait),
    cmocka_unit_test(a_slow_function_is_not_ready),
    cmocka_unit_test(a_function_is_not_told_of_a_look),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace slow_elements_test
