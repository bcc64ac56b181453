// SPDX-License-Identifier: Apache-2.0
//
// Deadlines that end a call of next() in the middle of an element: every stage keeps what it has gathered, the walk
// goes on with the next call, and what was saved in between continues the same way (stage.h, Interrupts).
#include <thread>

#include "data/dataset/stage.h"
#include "interrupt_cases.h"

namespace interrupt_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Deadline;
using data::Dataset;
using data::Feed;
using data::Stage;

namespace {

// A source that the test gives elements to as it likes.
class Drip {
 public:
  Drip()
      : feed_(Feed::create({{{"x", data::Role::feature, tensor::DType::f32, {3}},
                             {"y", data::Role::label, tensor::DType::i32, {}}}},
                           kElements)
                  .take()) {}

  Pipeline source() { return Pipeline(feed_->dataset()); }
  // Begins where a restored walk needs it.
  void begin() { next_ = feed_->resume_position(); }
  // One more element, or the end; false when there is nothing more to do.
  bool give() {
    if (next_ > kElements) return false;
    if (next_ == kElements) {
      ++next_;
      return feed_->end().ok();
    }
    Element element;
    element.components.push_back(x_.row(next_).take());
    element.components.push_back(Tensor::scalar(static_cast<int32_t>(next_++)).take());
    return feed_->push(std::move(element), nullptr, Deadline::after_ms(10000)).ok();
  }
  void give_all() {
    while (give()) {
    }
  }

 private:
  const Tensor x_ = numbered(kElements, 3);
  Ref<Feed> feed_;
  int64_t next_ = 0;
};

// All answers of a walk to which nothing comes late.
std::vector<std::string> whole_walk(const Case &one, const base::Json *state = nullptr) {
  Drip drip;
  const DatasetRef dataset = assert_ok_value(one.build(drip.source()).build());
  auto iterator = assert_ok_value(dataset->make_iterator(context_of(CancelToken::create(Deadline::after_ms(60000)))));
  if (state != nullptr) assert_ok(iterator->restore(*state));
  drip.begin();
  drip.give_all();
  std::vector<std::string> answers;
  Element element;
  for (;;) {
    const Result<bool> more = iterator->next(element);
    if (more.ok() && !*more) return answers;
    if (answers.size() >= 100) print_error("%s: %s\n", one.name, answers.back().c_str());
    assert_true(answers.size() < 100);
    answers.push_back(answer_of(more, element));
  }
}

void a_starved_feed_loses_nothing(void **) {
  for (const Case &one : cases()) {
    const std::vector<std::string> expected = whole_walk(one);
    Drip drip;
    const DatasetRef dataset = assert_ok_value(one.build(drip.source()).build());
    const Ref<CancelToken> token = CancelToken::create();
    auto iterator = assert_ok_value(dataset->make_iterator(context_of(token)));
    drip.give();
    drip.give();
    std::vector<std::string> answers;
    int64_t interrupts = 0;
    for (Element element;;) {
      token->set_deadline(Deadline::after_ms(2));
      const Result<bool> more = iterator->next(element);
      if (base::is_interrupt(more.status())) {
        assert_true(more.code() == base::Code::deadline_exceeded);
        ++interrupts;
        const base::Json state = iterator->save();
        check_equal(one.name, whole_walk(one, &state), expected, answers.size(), state.dump().c_str());
        drip.give();
        continue;
      }
      if (more.ok() && !*more) break;
      answers.push_back(answer_of(more, element));
    }
    check_equal(one.name, answers, expected, 0, "with interrupts");
    assert_true(interrupts > 0);
  }
}

// The rows of sample(), each of which comes at the second call only: what an interrupt is, without any waiting.
class ReluctantStage : public Stage {
 public:
  explicit ReluctantStage(std::unique_ptr<Stage> input) : input_(std::move(input)) {}

  Result<bool> next(Element &element) override {
    reluctant_ = !reluctant_;
    if (reluctant_) return CancelToken::create(Deadline::after_ms(0))->check();
    return input_->next(element);
  }
  void save(data::State &state) const override { input_->save(state); }
  Status restore(const base::JsonReader &state) override { return input_->restore(state); }

 private:
  std::unique_ptr<Stage> input_;
  bool reluctant_ = false;
};

class ReluctantDataset : public Dataset {
 public:
  explicit ReluctantDataset(const DatasetRef &input, bool is_reluctant)
      : Dataset("reluctant", input->spec(), input->cardinality(), {input}), is_reluctant_(is_reluctant) {}
  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->open(context));
    if (!is_reluctant_) return input;
    return std::unique_ptr<Stage>(std::make_unique<ReluctantStage>(std::move(input)));
  }

 private:
  bool is_reluctant_;
};

std::vector<std::string> patient_walk(const Case &one, bool is_reluctant, const base::Json *state,
                                      std::vector<std::pair<size_t, base::Json>> *states) {
  const DatasetRef rows = sample(kElements).build().value();
  const DatasetRef dataset =
      assert_ok_value(one.build(Pipeline(DatasetRef(base::make_ref<ReluctantDataset>(rows, is_reluctant)))).build());
  auto iterator = assert_ok_value(dataset->make_iterator(context_of(nullptr)));
  if (state != nullptr) assert_ok(iterator->restore(*state));
  std::vector<std::string> answers;
  for (Element element;;) {
    const Result<bool> more = iterator->next(element);
    if (base::is_interrupt(more.status())) {
      if (states != nullptr) states->emplace_back(answers.size(), iterator->save());
      continue;
    }
    if (more.ok() && !*more) return answers;
    assert_true(answers.size() < 100);
    answers.push_back(answer_of(more, element));
  }
}

// The same with a source whose size is known, which a shuffle behind a cache asks for.
void every_stage_goes_on_behind_an_interrupt(void **) {
  for (const Case &one : cases()) {
    if (one.in_background) continue;
    const std::vector<std::string> expected = patient_walk(one, false, nullptr, nullptr);
    std::vector<std::pair<size_t, base::Json>> states;
    check_equal(one.name, patient_walk(one, true, nullptr, &states), expected, 0, "with interrupts");
    assert_true(!states.empty());
    for (const auto &[given, state] : states)
      check_equal(one.name, patient_walk(one, true, &state, nullptr), expected, given, state.dump().c_str());
  }
}

// A deadline that has passed and one that comes while nothing moves; then a real cancel.
void the_token_governs_each_call(void **) {
  Drip drip;
  const DatasetRef dataset = assert_ok_value(drip.source().batch(2).prefetch(2).build());
  const Ref<CancelToken> token = CancelToken::create(Deadline::after_ms(0));
  auto iterator = assert_ok_value(dataset->make_iterator(context_of(token)));
  drip.give();
  drip.give();
  Element element;
  assert_true(iterator->next(element).code() == base::Code::deadline_exceeded);
  token->set_deadline(Deadline::never());
  assert_true(assert_ok_value(iterator->next(element)));
  std::thread interrupter([&] { token->set_deadline(Deadline::after_ms(0)); });
  assert_true(iterator->next(element).code() == base::Code::deadline_exceeded);
  interrupter.join();
  token->set_deadline(Deadline::never());
  std::thread canceller([&] { token->cancel(); });
  assert_true(iterator->next(element).code() == base::Code::cancelled);
  canceller.join();
}

// What was looked at in vain is looked at again.
void a_peek_may_be_interrupted(void **) {
  Drip drip;
  const DatasetRef dataset = assert_ok_value(drip.source().batch(2).build());
  const Ref<CancelToken> token = CancelToken::create();
  auto iterator = assert_ok_value(dataset->make_iterator(context_of(token)));
  drip.give();
  token->set_deadline(Deadline::after_ms(2));
  Element element;
  assert_true(iterator->peek(element).code() == base::Code::deadline_exceeded);
  token->set_deadline(Deadline::never());
  drip.give();
  assert_true(assert_ok_value(iterator->peek(element)));
  assert_true(assert_ok_value(iterator->next(element)));
  assert_int_equal(element.rows(), 2);
}

// Where the rest of an element is not there yet, nobody waits, and what is there stays.
void a_peek_need_not_wait(void **) {
  Drip drip;
  const DatasetRef dataset = assert_ok_value(drip.source().batch(2).build());
  const Ref<CancelToken> token = CancelToken::create();
  auto iterator = assert_ok_value(dataset->make_iterator(context_of(token)));
  token->set_deadline(Deadline::after_ms(0));
  Element element;
  for (int i = 0; i < 3; ++i) {
    drip.give();
    assert_true(iterator->peek_if_ready(element).code() == base::Code::deadline_exceeded);
    drip.give();
    assert_true(assert_ok_value(iterator->peek_if_ready(element)));
    assert_true(assert_ok_value(iterator->next(element)));
    assert_int_equal(element.rows(), 2);
  }
}

const CMUnitTest tests[] = {
    cmocka_unit_test(a_starved_feed_loses_nothing), cmocka_unit_test(every_stage_goes_on_behind_an_interrupt),
    cmocka_unit_test(the_token_governs_each_call),  cmocka_unit_test(a_peek_may_be_interrupted),
    cmocka_unit_test(a_peek_need_not_wait),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace interrupt_test
