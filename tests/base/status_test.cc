// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cerrno>

#include "testing.h"

namespace status_test {

using namespace tutti::impl::base;

namespace {

Result<int> parse_positive(int value) {
  if (value <= 0) return invalid_argument("expected a positive number, got ", value);
  return value;
}

Status check_twice(int a, int b) {
  TUTTI_TRY(parse_positive(a));
  TUTTI_TRY(parse_positive(b));
  return Status();
}

Result<std::string> describe_sum(int a, int b) {
  TUTTI_TRY(check_twice(a, b));
  TUTTI_ASSIGN(const int x, parse_positive(a));
  TUTTI_ASSIGN(const int y, parse_positive(b));
  return concat("sum ", x + y);
}

void ok_is_empty(void **) {
  const Status status;
  assert_true(status.ok());
  assert_int_equal(static_cast<int>(status.code()), 0);
  assert_string_equal(status.message().c_str(), "");
  assert_string_equal(status.to_string().c_str(), "OK");
  assert_null(status.root_cause());
  assert_true(status.with_detail("rank", "1").ok());
  assert_true(status.wrap("context").ok());
  assert_true(Status(Code::ok, "nothing").ok());
}

void makers_carry_code_and_message(void **) {
  const Status status = out_of_range("row ", 7, " of ", 3.5, ", ", true, ' ', std::string("end"));
  assert_int_equal(static_cast<int>(status.code()), 11);
  assert_string_equal(status.message().c_str(), "row 7 of 3.5, true end");
  assert_string_equal(name(Code::out_of_range).data(), "OUT_OF_RANGE");
  assert_true(code_from_number(16) == Code::unauthenticated);
  assert_true(code_from_number(17) == Code::unknown);
  assert_true(code_from_number(-1) == Code::unknown);
}

void causes_chain(void **) {
  const Status first = data_loss("bad checksum").with_detail("file", "weights");
  const Status second = first.wrap("cannot read checkpoint 12");
  const Status third = second.wrap(Code::failed_precondition, "cannot resume").with_detail("rank", "2");
  assert_string_equal(third.to_string().c_str(),
                      "FAILED_PRECONDITION: cannot resume [rank=2]; caused by: DATA_LOSS: cannot read checkpoint 12; "
                      "caused by: DATA_LOSS: bad checksum [file=weights]");
  assert_string_equal(third.root_cause()->message().c_str(), "bad checksum");
  const Status joined = aborted("step").with_cause(third).with_cause(not_found("peer"));
  assert_string_equal(joined.root_cause()->message().c_str(), "peer");
  // The chain that was extended did not change itself.
  assert_string_equal(third.root_cause()->message().c_str(), "bad checksum");
}

void details_are_replaced_by_key(void **) {
  const Status status = internal_error("x").with_detail("rank", "1").with_detail("step", "5").with_detail("rank", "2");
  assert_int_equal(status.error()->details().size(), 2);
  assert_string_equal(status.error()->find_detail("rank")->c_str(), "2");
  assert_null(status.error()->find_detail("node"));
}

void errno_becomes_a_code(void **) {
  const Status full = status_from_errno(ENOSPC, "cannot write 'a'");
  assert_true(full.code() == Code::resource_exhausted);
  assert_string_equal(full.error()->domain().c_str(), "errno");
  assert_int_equal(full.error()->subcode(), ENOSPC);
  assert_contains(full.message().c_str(), "cannot write 'a': No space left");
  assert_true(status_from_errno(EACCES, "x").code() == Code::permission_denied);
  assert_true(status_from_errno(ENOENT, "x").code() == Code::not_found);
}

void macros_leave_with_the_status(void **) {
  assert_string_equal(assert_ok_value(describe_sum(2, 3)).c_str(), "sum 5");
  assert_error_contains(describe_sum(2, -3), "expected a positive number, got -3");
  assert_error_contains(check_twice(0, 1), "got 0");
}

void results_convert_and_move(void **) {
  struct Base {
    virtual ~Base() = default;
    virtual int value() const { return 1; }
  };
  struct Derived : Base {
    int value() const override { return 2; }
  };
  Result<std::unique_ptr<Base>> direct = std::make_unique<Derived>();
  assert_int_equal((*direct)->value(), 2);
  Result<std::unique_ptr<Derived>> derived = std::make_unique<Derived>();
  Result<std::unique_ptr<Base>> converted = std::move(derived);
  assert_int_equal(converted.take()->value(), 2);
  const Result<int> bad = not_found("nothing");
  assert_int_equal(bad.value_or(9), 9);
  assert_true(bad.code() == Code::not_found);
  const Result<int> wrong = Status();
  assert_false(wrong.ok());
  assert_true(wrong.code() == Code::internal);
}

void long_chains_are_released(void **) {
  Status status = internal_error("first");
  for (int i = 0; i < 200000; ++i)
    status = status.wrap("next");
  assert_string_equal(status.root_cause()->message().c_str(), "first");
}

/// What others wrote may have any length: the middle is left out, whole characters, and the length is told.
void long_texts_are_shortened(void **) {
  for (const char *const character : {"a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    std::string text = "begin";
    while (text.size() < 1000003)
      text += character;
    text += "end";
    const Status status = invalid_argument("no file '", text, "' in ", text);
    const std::string &message = status.message();
    assert_true(message.size() < 2000);
    assert_true(is_utf8(message));
    assert_true(message.starts_with("no file 'begin") && message.ends_with("end"));
    assert_contains(message.c_str(), concat(" ... (", text.size(), " bytes in all) ... ").c_str());
    assert_contains(message.c_str(), "end' in begin");
    const Status outer = status.wrap(concat("cannot open '", text, "'")).with_detail("path", text);
    assert_true(outer.message().size() < 1500 && outer.error()->find_detail("path")->size() < 1000);
    assert_true(status_from_errno(ENOENT, text).message().size() < 1500);
    assert_true(Status(Code::internal, text).message().size() < 70000);
  }
  const std::string fits(800, 'x');
  assert_string_equal(invalid_argument(fits).message().c_str(), fits.c_str());
  // Bytes that are no characters end it, too.
  assert_true(invalid_argument(std::string(5000, '\x80')).message().size() < 1000);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(ok_is_empty),
    cmocka_unit_test(makers_carry_code_and_message),
    cmocka_unit_test(causes_chain),
    cmocka_unit_test(details_are_replaced_by_key),
    cmocka_unit_test(errno_becomes_a_code),
    cmocka_unit_test(macros_leave_with_the_status),
    cmocka_unit_test(results_convert_and_move),
    cmocka_unit_test(long_chains_are_released),
    cmocka_unit_test(long_texts_are_shortened),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace status_test
