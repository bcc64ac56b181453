// SPDX-License-Identifier: Apache-2.0
//
// tests lib/data/transform/map_process.cc, worker_process.cc, process_channel.cc, process_elements.cc and serve_map.cc:
// elements that processes map, processes that die, hang and talk nonsense, and what is left of them.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/temporary_directory.h"
#include "base/thread.h"
#include "conformance/dataset_conformance.h"
#include "data/pipeline/serve_map.h"
#include "data/process/process_channel.h"
#include "sample_data.h"
#include "tensor/bytes_tensor.h"

namespace map_process_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::CancelToken;
using base::Code;
using base::Deadline;
using base::Status;
using data::ComponentSpec;
using data::DatasetRef;
using data::Element;
using data::ElementSpec;
using data::Pipeline;
using data::Role;
using tensor::DType;
using tensor::Tensor;

namespace {

using Strings = std::vector<std::string>;

Strings worker(Strings arguments) {
  arguments.insert(arguments.begin(), MAP_WORKER);
  return arguments;
}

Pipeline mapped(Pipeline pipeline, Strings arguments, int64_t processes = 2, std::optional<ElementSpec> like = {}) {
  data::TransformArguments more;
  more.output_spec = std::move(like);
  return std::move(
      pipeline.apply("map_process", {{"command", std::move(arguments)}, {"processes", processes}}, std::move(more)));
}

std::unique_ptr<data::Iterator> walk(Pipeline pipeline, base::Ref<CancelToken> cancel = nullptr) {
  data::IteratorContext context;
  context.threads = 2;
  context.cancel = std::move(cancel);
  return assert_ok_value(assert_ok_value(pipeline.build())->make_iterator(context));
}

Strings all_of(data::Iterator &iterator) {
  Strings all;
  for (;;) {
    Element element;
    const base::Result<bool> more = iterator.next(element);
    if (more.ok() && !*more) return all;
    all.push_back(more.ok() ? fingerprint(element) : failure(more.status()));
  }
}

Strings all_of(Pipeline pipeline) { return all_of(*walk(std::move(pipeline))); }

size_t open_descriptors() {
  size_t count = 0;
  DIR *const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr)
    ++count;
  closedir(folder);
  return count;
}

bool has_children() { return waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD; }

// Everything that an element can be: each dtype, a scalar, nothing at all, texts.
Pipeline assorted() {
  std::vector<data::NamedTensor> slices;
  const auto add = [&](const char *name, Tensor tensor) { slices.push_back({name, std::move(tensor)}); };
  for (int32_t number = 1; number <= 13; ++number) {
    const auto dtype = static_cast<DType>(number);
    Tensor tensor = Tensor::zeros(dtype, {6, 2, 3}).take();
    auto *const bytes = static_cast<uint8_t *>(tensor.mutable_data());
    for (int64_t i = 0; i < tensor.size_bytes(); ++i)
      bytes[i] = static_cast<uint8_t>(dtype == DType::boolean ? i % 2 : 31 * i + number);
    add(base::concat("of ", dtype).c_str(), tensor);
  }
  add("scalar \"\xc3\xa4\"", counted(6));
  add("nothing", Tensor::zeros(DType::f32, {6, 0, 4}).take());
  add("text", tensor::make_bytes_tensor({6}, Strings{"", "a", std::string(100000, 'b'), {"\0\n", 2}, "d", ""}).take());
  add("texts",
      tensor::make_bytes_tensor({6, 2}, Strings{"", "", "1", "", "", "2", "34", "5", "", "6", "7", ""}).take());
  add("no texts", tensor::make_bytes_tensor({6, 0}, Strings{}).take());
  return Pipeline(data::from_slices(std::move(slices)));
}

void elements_come_back_as_they_went(void **) {
  const Strings expected = all_of(assorted());
  assert_int_equal(expected.size(), 6);
  for (int64_t processes = 1; processes <= 8; ++processes)
    assert_true(all_of(mapped(assorted(), worker({"copy"}), processes)) == expected);
  assert_true(all_of(mapped(assorted(), worker({"copy"}), 0)) == expected);
  assert_true(all_of(mapped(sample(3), worker({"chat"}))) == all_of(sample(3)));
  // More than a socket holds at a time.
  const Strings large = all_of(sample(3, 1 << 20));
  assert_true(all_of(mapped(sample(3, 1 << 20), worker({"copy"}))) == large);
  assert_true(all_of(mapped(sample(12).batch(5), worker({"copy"}))) == all_of(sample(12).batch(5)));
  assert_true(all_of(mapped(sample(0), worker({"copy"}))).empty());
}

void what_comes_out_is_like_the_dataset_said(void **) {
  const ElementSpec like{
      {{"sum", Role::feature, DType::f64, {}}, {"marks", Role::label, DType::bytes, {data::unknown_dim()}}}};
  const auto iterator = walk(mapped(sample(3), worker({"measure"}), 2, like));
  assert_true(iterator->spec() == like);
  Element element;
  for (int i = 0; i < 3; ++i) {
    assert_true(assert_ok_value(iterator->next(element)));
    assert_true(assert_ok_value(element.components[0].scalar_value<double>()) == 300 * i + 3);
    assert_int_equal(element.components[1].elements(), 3);
    assert_true(tensor::bytes_at(element.components[1], 2) == "##");
  }
  assert_false(assert_ok_value(iterator->next(element)));
}

void errors_of_the_worker_are_those_of_elements(void **) {
  const auto iterator = walk(mapped(sample(8), worker({"fail"}), 1));
  Element element;
  for (int i = 0; i < 8; ++i) {
    const base::Result<bool> more = iterator->next(element);
    if (i != 5) {
      assert_true(assert_ok_value(more));
      continue;
    }
    assert_int_equal(static_cast<int>(more.code()), static_cast<int>(Code::out_of_range));
    assert_error_contains(more,
                          base::concat("the worker process '", MAP_WORKER, " fail' failed for element 5 of epoch 0"));
    assert_error_contains(more, "five is not allowed; caused by: NOT_FOUND: six");
    assert_string_equal(more.status().error()->find_detail("element")->c_str(), "5");
    assert_string_equal(more.status().error()->find_detail("stage")->c_str(), "map_process");
  }
  assert_false(assert_ok_value(iterator->next(element)));
  assert_int_equal(all_of(mapped(sample(8), worker({"fail"})).apply("ignore_errors")).size(), 7);
}

void a_process_that_dies_is_replaced(void **) {
  for (const bool by_signal : {true, false}) {
    const TemporaryDirectory folder;
    const Strings plain = all_of(sample(9));
    const Strings got = all_of(mapped(sample(9), worker({"die", folder.path(), by_signal ? "signal" : "exit"})));
    assert_int_equal(got.size(), 9);
    for (size_t i = 0; i < 9; ++i) {
      if (i != 5) assert_true(got[i] == plain[i]);
    }
    assert_contains(got[5].c_str(), "failed: UNAVAILABLE: worker process");
    assert_contains(got[5].c_str(), by_signal
                                        ? ") was terminated by signal 9 (Killed) while it computed element 5 of epoch 0"
                                        : ") ended with exit status 3 while it computed element 5 of epoch 0");
    assert_contains(got[5].c_str(), "element=5");
  }
}

int64_t process_of(data::Iterator &iterator) {
  Element element;
  assert_true(assert_ok_value(iterator.next(element)));
  return assert_ok_value(element.components[0].scalar_value<int64_t>());
}

void processes_serve_all_passes_of_a_walk(void **) {
  const ElementSpec like{{{"process", Role::feature, DType::i64, {}}}};
  const auto iterator = walk(std::move(mapped(range(3), worker({"process"}), 1, like).repeat(3)));
  const int64_t first = process_of(*iterator);
  for (int i = 1; i < 8; ++i)
    assert_int_equal(process_of(*iterator), first);
  assert_int_equal(kill(static_cast<pid_t>(first), 0), 0);
}

void a_process_that_dies_while_it_is_free_costs_no_element(void **) {
  const ElementSpec like{{{"process", Role::feature, DType::i64, {}}}};
  // The second pass begins when the first one was taken to its end.
  const auto iterator = walk(std::move(mapped(range(2), worker({"process"}), 1, like).repeat(2)));
  const int64_t first = process_of(*iterator);
  assert_int_equal(process_of(*iterator), first);
  kill(static_cast<pid_t>(first), SIGKILL);
  while (kill(static_cast<pid_t>(first), 0) == 0 && has_children()) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(first), &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid != 0) break;
  }
  assert_true(process_of(*iterator) != first);
}

void a_deadline_ends_the_wait_and_not_the_work(void **) {
  for (const int64_t processes : {1, 3}) {
    const TemporaryDirectory folder;
    const auto iterator = walk(mapped(sample(8), worker({"late", folder.path()}), processes));
    Strings got;
    Element element;
    for (int i = 0; i < 5; ++i) {
      assert_true(assert_ok_value(iterator->next(element)));
      got.push_back(fingerprint(element));
    }
    for (int i = 0; i < 3; ++i) {
      iterator->token().set_deadline(Deadline::after_ms(5));
      assert_int_equal(static_cast<int>(iterator->next(element).code()), static_cast<int>(Code::deadline_exceeded));
    }
    iterator->token().set_deadline(Deadline::never());
    assert_ok(base::write_file_atomically(folder / "go", "go"));
    for (const std::string &rest : all_of(*iterator))
      got.push_back(rest);
    assert_true(got == all_of(sample(8)));
  }
}

void a_walk_is_left_while_its_processes_hang(void **) {
  const size_t before = open_descriptors();
  for (const bool is_cancelled : {true, false}) {
    const TemporaryDirectory folder;
    const base::Ref<CancelToken> cancel = CancelToken::create();
    auto iterator = walk(mapped(sample(8), worker({"late", folder.path()}), 3), cancel);
    Element element;
    for (int i = 0; i < 5; ++i)
      assert_true(assert_ok_value(iterator->next(element)));
    base::Thread canceller;
    if (is_cancelled) {
      canceller = assert_ok_value(base::Thread::start("canceller", [&] { cancel->cancel(); }));
      assert_int_equal(static_cast<int>(iterator->next(element).code()), static_cast<int>(Code::cancelled));
    }
    iterator.reset();
    assert_false(has_children());
  }
  assert_int_equal(open_descriptors(), before);
}

void nothing_is_left_of_processes(void **) {
  const size_t before = open_descriptors();
  assert_int_equal(all_of(mapped(sample(20), worker({"copy"}), 8)).size(), 20);
  // Opened and left; begun and left; one that does not want to end.
  (void)walk(mapped(sample(20), worker({"copy"}), 8));
  for (const char *what : {"copy", "stay"}) {
    const auto iterator = walk(mapped(sample(20), worker({what}), 2));
    Element element;
    assert_true(assert_ok_value(iterator->next(element)));
  }
  assert_false(has_children());
  assert_int_equal(open_descriptors(), before);
}

void processes_get_nothing_of_the_host(void **) {
  const int open_to_all = open("/dev/null", O_RDONLY);
  assert_true(open_to_all > 2);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto pipes = signal(SIGPIPE, SIG_IGN);
  assert_true(all_of(mapped(sample(4), worker({"clean"}), 2)) == all_of(sample(4)));
  signal(SIGPIPE, pipes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(open_to_all);
}

// The error of the first element.
Status first_error(Strings command, std::optional<ElementSpec> like = {}, Pipeline source = range(3)) {
  const auto iterator = walk(mapped(std::move(source), std::move(command), 1, std::move(like)));
  Element element;
  return iterator->next(element).status();
}

void programs_that_cannot_be_started_are_told(void **) {
  const Status missing = first_error({"/no/such/program", "at all"});
  assert_int_equal(static_cast<int>(missing.code()), static_cast<int>(Code::not_found));
  assert_error_contains(missing, "start worker process '/no/such/program at all': No such file or directory");
  assert_error_contains(missing, "element=0");
  const TemporaryDirectory folder;
  assert_error_contains(first_error({folder.path()}), "Permission denied");
  assert_error_contains(first_error(worker({"nonsense"})), "ended with exit status 4 before it was ready");
  assert_error_contains(first_error({"true"}), "ended with exit status 0 before it was ready");
  assert_error_contains(mapped(range(3), {}).build(),
                        "parameter 'command': expected a program and its arguments, got none");
  assert_error_contains(mapped(range(3), {"x"}, 257).build(), "parameter 'processes': expected from 0 to 256");
  assert_error_contains(range(3).apply("map_process").build(), "parameter 'command' is missing");
}

// What a worker says, and how the error says so.
struct Talk {
  std::string answer;
  std::string data;
  const char *error;
};

std::string answer(const std::string &name, const std::string &dtype, const std::string &shape,
                   const std::string &bytes) {
  return base::concat("{\"element\":0,\"tensors\":[{\"name\":", name, ",\"dtype\":", dtype, ",\"shape\":", shape,
                      ",\"bytes\":", bytes, "}]}");
}

void check_talks(const ElementSpec &like, const std::vector<Talk> &talks) {
  for (const Talk &talk : talks) {
    const Status status = first_error(worker({"say", "{\"ready\":1}", talk.answer, talk.data}), like);
    assert_error_contains(status, talk.error);
    assert_int_equal(static_cast<int>(status.code()), static_cast<int>(Code::data_loss));
    assert_error_contains(status, "the connection to worker process '" MAP_WORKER " say");
    assert_error_contains(status, "failed while it computed element 0 of epoch 0");
  }
}

void answers_that_do_not_fit_are_told(void **) {
  const std::string x = "\"x\"", f32 = "\"f32\"", eight(8, '\0');
  const ElementSpec like{{{"x", Role::feature, DType::f32, {2, data::unknown_dim()}}}};
  check_talks(like,
              {{"{}", "", "expected an answer with \"element\":0, got '{}'"},
               {"{\"element\":1,\"tensors\":[]}", "", "expected an answer with \"element\":0"},
               {"{\"element\":\"0\"}", "", "expected an answer with \"element\":0"},
               {"{\"element\":0}", "", "expected the 1 tensors (x: f32[2, unknown]), got"},
               {"{\"element\":0,\"tensors\":{}}", "", "expected the 1 tensors"},
               {"{\"element\":0,\"tensors\":[]}", "", "expected the 1 tensors"},
               {"{\"element\":0,\"tensors\":[7]}", "", "component 'x': expected this name, got nothing"},
               {answer("\"y\"", f32, "[2,1]", "8"), eight, "component 'x': expected this name, got "},
               {answer("1", f32, "[2,1]", "8"), eight, "component 'x': expected this name, got "},
               {answer(x, "\"f64\"", "[2,1]", "16"), eight + eight, "component 'x': expected dtype f32, got"},
               {answer(x, "null", "[2,1]", "8"), eight, "component 'x': expected dtype f32, got"},
               {answer(x, f32, "[2]", "8"), eight, "component 'x': expected a shape that fits [2, unknown], got '[2]'"},
               {answer(x, f32, "[3,1]", "12"), eight, "component 'x': expected a shape that fits [2, unknown]"},
               {answer(x, f32, "[2,-1]", "8"), eight, "component 'x': expected a shape that fits [2, unknown]"},
               {answer(x, f32, "[2,1.0]", "8"), eight, "component 'x': expected a shape that fits [2, unknown]"},
               {answer(x, f32, "2", "8"), eight, "component 'x': expected a shape that fits [2, unknown]"},
               {answer(x, f32, "[2,4611686018427387904]", "8"), eight, "component 'x': expected a shape that fits"},
               {answer(x, f32, "[2,68719476736]", "549755813888"), eight,
                "component 'x': expected at most 17179869184 elements"},
               {answer(x, f32, "[2,1]", "9"), eight, "component 'x': expected 8 bytes for f32[2, 1], got '9'"},
               {answer(x, f32, "[2,1]", "-8"), eight, "component 'x': expected 8 bytes for f32[2, 1]"},
               {answer(x, f32, "[2,1]", "\"8\""), eight, "component 'x': expected 8 bytes for f32[2, 1]"},
               {answer(x, f32, "[2,1]", "1e1"), eight, "component 'x': expected 8 bytes for f32[2, 1]"},
               {"{\"element\":0,", "", "expected a header in JSON"},
               {"[0]", "", "expected a message, got"},
               {"{\"element\":0,\"element\":0}", "", "expected a header in JSON"}});
}

void texts_that_do_not_fit_are_told(void **) {
  const ElementSpec like{{{"x", Role::feature, DType::bytes, {data::unknown_dim()}}}};
  const auto lengths = [](std::initializer_list<int64_t> values, const std::string &texts) {
    return std::string(reinterpret_cast<const char *>(values.begin()), values.size() * sizeof(int64_t)) + texts;
  };
  // Arguments of programs end at a zero byte; so numbers without one.
  constexpr int64_t kOnes = 0x0101010101010101;
  const auto announced = [](const char *shape, const char *bytes) {
    return answer("\"x\"", "\"bytes\"", shape, bytes);
  };
  check_talks(
      like,
      {{announced("[2]", "15"), "", "component 'x': expected from 16 to 68719476736 bytes for bytes[2], got '15'"},
       {announced("[2]", "68719476737"), "", "component 'x': expected from 16 to"},
       {announced("[1]", "11"), lengths({kOnes}, "abc"), "expected the lengths of 1 texts of 3 bytes together"},
       {announced("[1]", "11"), lengths({-1}, "abc"), "expected the lengths of 1 texts of 3 bytes together"},
       {announced("[0]", "3"), "abc", "expected the lengths of 0 texts of 3 bytes together"}});
  const ElementSpec truth{{{"x", Role::feature, DType::boolean, {2}}}};
  check_talks(truth, {{answer("\"x\"", "\"boolean\"", "[2]", "2"), "\1\2",
                       "component 'x': expected truth values 0 and 1, got 2"}});
}

void what_is_no_talk_at_all_is_told(void **) {
  const Status printed = first_error(worker({"print", "Hello, I am a worker, and here I am.\n"}));
  assert_error_contains(printed, "expected a message, got 'Hello, I am a worker");
  assert_error_contains(printed, "does the process print to its standard output?");
  // An empty line makes of a number of bytes another, and of so many nothing would come.
  assert_error_contains(first_error(worker({"print", "\n", "{\"element\":0,\"tensors\":[]}"})),
                        "expected a message, got");
  assert_error_contains(first_error(worker({"say", "{\"ready\":2}", "", ""})), "expected {\"ready\":1}, got '{");
  assert_error_contains(first_error(worker({"say", "{\"error\":\"no model\",\"code\":5}", "", ""})),
                        "caused by: NOT_FOUND: no model");
  assert_error_contains(
      first_error(worker({"say", "{\"ready\":1}", "{\"element\":0,\"error\":\"bad\",\"code\":99}", ""})),
      "UNKNOWN: bad");
  assert_error_contains(first_error(worker({"say", "{\"ready\":1}", "{\"element\":0,\"error\":{}}", ""})),
                        "UNKNOWN: {}");
  const Status closed = first_error(worker({"close"}));
  assert_int_equal(static_cast<int>(closed.code()), static_cast<int>(Code::unavailable));
  assert_error_contains(closed, "closed its output while it computed element 0 of epoch 0");
  assert_error_contains(first_error(worker({"early"}), {}, sample(1, 1 << 20)),
                        "expected the process to read a whole message before it writes, got 'xxxx");
  assert_false(has_children());
}

void walks_go_on_where_they_were_saved(void **) {
  const auto of = [](const char *name, const char *what, int64_t processes, bool fails) {
    return DatasetCase{name,
                       [=] {
                         Pipeline pipeline = mapped(std::move(sample(12).shuffle(5)), worker({what}), processes);
                         return DatasetInstance{pipeline.batch(5).repeat(2).build()};
                       },
                       64, nullptr, fails};
  };
  for (const DatasetCase &one : {of("copy", "copy", 1, false), of("copy, several", "copy", 3, false),
                                 of("copy, automatic", "copy", 0, false), of("fail", "fail", 2, true)}) {
    check_dataset_case(one);
    check_dataset_leaving(one);
  }
}

// The worker that README.md shows.
std::string python_worker() {
  const std::string text = assert_ok_value(base::read_file(DATA_README));
  const std::string margin = "    ";
  size_t at = text.find(margin + "import array, json, sys\n");
  assert_true(at != std::string::npos);
  std::string program;
  while (text.compare(at, margin.size(), margin) == 0 || text[at] == '\n') {
    const size_t end = text.find('\n', at);
    if (end > at) program += text.substr(at + margin.size(), end - at - margin.size());
    program += '\n';
    at = end + 1;
  }
  return program;
}

void a_worker_in_python_needs_its_standard_library_alone(void **) {
  if (system("python3 -c 'import array, json'") != 0) {
    print_message("skipped: no python3 here\n");
    test_skip();
  }
  const TemporaryDirectory folder;
  assert_ok(base::write_file_atomically(folder / "double.py", python_worker()));
  const Strings command{"python3", folder / "double.py"};
  const std::vector<float> got = values_of<float>(*walk(mapped(sample(20), command, 3)), "x");
  const std::vector<float> plain = values_of<float>(*walk(sample(20)), "x");
  assert_int_equal(got.size(), plain.size());
  for (size_t i = 0; i < got.size(); ++i)
    assert_true(got[i] == 2 * plain[i]);
  const Status status = first_error(command);
  assert_int_equal(static_cast<int>(status.code()), static_cast<int>(Code::invalid_argument));
  assert_error_contains(status, "expected f32, got i64");
}

void without_order_all_elements_come(void **) {
  Pipeline pipeline = mapped(sample(40), worker({"copy"}), 4);
  Strings got = all_of(std::move(pipeline.apply("options", {{"deterministic", false}}))), expected = all_of(sample(40));
  std::sort(got.begin(), got.end());
  std::sort(expected.begin(), expected.end());
  assert_true(got == expected);
}

// ---- the worker's side ----

struct Pair {
  Pair() {
    int sockets[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    here = sockets[0];
    there = sockets[1];
  }
  ~Pair() {
    close(here);
    close(there);
  }
  int here = -1, there = -1;
};

Status serve(int descriptor, const CancelToken *token = nullptr) {
  const auto copy = [](const ElementSpec &) {
    return [](const Element &input, Element &output) {
      output = input;
      return Status();
    };
  };
  return data::serve_map(descriptor, descriptor, copy, token);
}

// What a worker makes of these messages, behind which the input ends.
Status served(const Strings &messages) {
  const Pair pair;
  for (const std::string &header : messages) {
    const uint64_t size = header.size();
    assert_int_equal(write(pair.here, &size, sizeof(size)), sizeof(size));
    assert_int_equal(write(pair.here, header.data(), size), size);
  }
  shutdown(pair.here, SHUT_WR);
  return serve(pair.there);
}

void a_worker_checks_what_it_gets(void **) {
  const std::string specs = "\"inputs\":[{\"name\":\"x\",\"role\":\"feature\",\"dtype\":\"f32\",\"shape\":[2]}]";
  const std::string greeting = "{\"protocol\":1," + specs + ",\"outputs\":[]}";
  const auto outputs = [&](const std::string &list) {
    return "{\"protocol\":1," + specs + ",\"outputs\":[" + list + "]}";
  };
  const std::string good = outputs("{\"name\":\"x\",\"role\":\"label\",\"dtype\":\"f32\",\"shape\":[-1]}");
  assert_ok(served({}));
  assert_ok(served({good}));
  assert_error_contains(served({"{\"protocol\":2}"}), "uses protocol 2, expected 1");
  assert_error_contains(served({"{}"}), "protocol");
  assert_error_contains(served({"{\"protocol\":1}"}), "inputs");
  assert_error_contains(served({greeting}), "an element needs at least one component");
  assert_error_contains(served({outputs("{\"name\":\"x\",\"role\":\"none\",\"dtype\":\"f32\",\"shape\":[]}")}),
                        "role 'none'");
  assert_error_contains(served({outputs("{\"name\":\"x\",\"role\":\"label\",\"dtype\":\"f31\",\"shape\":[]}")}), "f31");
  assert_error_contains(served({outputs("{\"name\":\"x\",\"role\":\"label\",\"dtype\":\"f32\",\"shape\":[-2]}")}),
                        "-2");
  assert_error_contains(served({good, "{}"}), "element");
  assert_error_contains(served({good, "{\"element\":0,\"epoch\":0}"}), "expected the 1 tensors");
  assert_error_contains(served({"hello"}), "expected a message, got");
}

void a_worker_that_waits_can_be_cancelled(void **) {
  const Pair pair;
  const base::Ref<CancelToken> late = CancelToken::create(Deadline::after_ms(5));
  assert_int_equal(static_cast<int>(serve(pair.there, late.get()).code()), static_cast<int>(Code::deadline_exceeded));
  const base::Ref<CancelToken> token = CancelToken::create();
  const base::Thread canceller = assert_ok_value(base::Thread::start("canceller", [&] { token->cancel(); }));
  assert_int_equal(static_cast<int>(serve(pair.there, token.get()).code()), static_cast<int>(Code::cancelled));
  // A pipe, too.
  int pipes[2];
  assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
  assert_int_equal(static_cast<int>(serve(pipes[0], late.get()).code()), static_cast<int>(Code::deadline_exceeded));
  close(pipes[1]);
  assert_ok(serve(pipes[0]));
  close(pipes[0]);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(elements_come_back_as_they_went),
    cmocka_unit_test(what_comes_out_is_like_the_dataset_said),
    cmocka_unit_test(errors_of_the_worker_are_those_of_elements),
    cmocka_unit_test(a_process_that_dies_is_replaced),
    cmocka_unit_test(processes_serve_all_passes_of_a_walk),
    cmocka_unit_test(a_process_that_dies_while_it_is_free_costs_no_element),
    cmocka_unit_test(a_deadline_ends_the_wait_and_not_the_work),
    cmocka_unit_test(a_walk_is_left_while_its_processes_hang),
    cmocka_unit_test(nothing_is_left_of_processes),
    cmocka_unit_test(processes_get_nothing_of_the_host),
    cmocka_unit_test(programs_that_cannot_be_started_are_told),
    cmocka_unit_test(answers_that_do_not_fit_are_told),
    cmocka_unit_test(texts_that_do_not_fit_are_told),
    cmocka_unit_test(what_is_no_talk_at_all_is_told),
    cmocka_unit_test(walks_go_on_where_they_were_saved),
    cmocka_unit_test(without_order_all_elements_come),
    cmocka_unit_test(a_worker_in_python_needs_its_standard_library_alone),
    cmocka_unit_test(a_worker_checks_what_it_gets),
    cmocka_unit_test(a_worker_that_waits_can_be_cancelled),
};
TEST_MAIN(tests)

}  // namespace map_process_test
