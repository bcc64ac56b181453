// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "testing.h"

namespace log_test {

using namespace tutti::impl::base;

namespace {

struct Loud {
  mutable int *formatted;
  std::string to_string() const {
    ++*formatted;
    return "loud";
  }
};

void lines_reach_the_sink(void **) {
  const Ref<Logger> logger = make_ref<Logger>();
  std::vector<std::string> lines;
  logger->info("dropped, there is no sink");
  logger->set_sink(
      [&](Severity severity, std::string_view text) { lines.push_back(concat(name(severity), " ", text)); });
  int formatted = 0;
  logger->debug(Loud{&formatted});
  logger->info("batch ", 64);
  logger->set_threshold(Severity::error);
  logger->warning(Loud{&formatted});
  logger->error("bad ", Loud{&formatted});
  assert_int_equal(formatted, 1);
  assert_int_equal(lines.size(), 2);
  assert_string_equal(lines[0].c_str(), "INFO batch 64");
  assert_string_equal(lines[1].c_str(), "ERROR bad loud");
  logger->set_threshold(Severity::none);
  logger->error("nobody hears");
  logger->set_threshold(Severity::debug);
  logger->set_sink(nullptr);
  assert_false(logger->enabled(Severity::error));
  assert_int_equal(lines.size(), 2);
}

void a_sink_may_throw_log_and_replace_itself(void **) {
  const Ref<Logger> logger = make_ref<Logger>();
  int depth = 0;
  logger->set_sink([&](Severity, std::string_view) {
    if (++depth == 1) logger->info("again");
    logger->set_sink(nullptr);
    throw std::runtime_error("x");
  });
  logger->info("once");
  assert_int_equal(depth, 2);
}

void sinks_change_while_others_log(void **) {
  const Ref<Logger> logger = make_ref<Logger>();
  std::atomic<int> lines{0};
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done)
      logger->info("line");
  });
  for (int i = 0; i < 2000; ++i) {
    logger->set_sink(
        [&lines, held = std::string(100, 'x')](Severity, std::string_view) { lines += held.size() == 100; });
  }
  while (lines == 0)
    std::this_thread::yield();
  done = true;
  other.join();
}

const CMUnitTest tests[] = {
    cmocka_unit_test(lines_reach_the_sink),
    cmocka_unit_test(a_sink_may_throw_log_and_replace_itself),
    cmocka_unit_test(sinks_change_while_others_log),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace log_test
