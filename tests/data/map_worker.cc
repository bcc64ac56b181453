// SPDX-License-Identifier: Apache-2.0
//
// map_worker WHAT [...]: the worker process of the tests. Most of what it does it does by serve_map(), what no program
// should do by hand.
//
//   copy                  gives what it gets
//   chat                  copies, and prints
//   fail                  copies, with an error where the last component is 5
//   measure               of "x" the sum, and as many texts as it is long, of 0, 1, 2, ... times "#"
//   late FOLDER           copies, but at 5 it waits until there is a file "go" in the folder
//   die FOLDER HOW        copies; at 5 it kills itself ("signal") or exits with 3 ("exit"), once: then there is "died"
//   clean                 copies, when its descriptors and signals are as they should be
//   process               gives the number of its process
//   stay                  copies; stays when its input has ended
//   say READY ANSWER DATA talks by hand: two headers, each sent where it is not empty, and the data behind the second
//   print TEXT ANSWER     prints the text before the first answer, of which it sends the header, then waits
//   close                 closes its streams in place of the first answer, then waits
//   early                 fills its output before it has read an element
#include <dirent.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/pipeline/serve_map.h"
#include "tensor/bytes_tensor.h"

using namespace tutti::impl;
using base::Status;
using data::Element;
using tensor::Tensor;

namespace {

std::vector<std::string> arguments;

std::string argument(size_t index) { return index < arguments.size() ? arguments[index] : std::string(); }

// The last component where that is one number.
int64_t last_number(const Element &input) {
  const Tensor &last = input.components.back();
  if (last.elements() != 1 || !tensor::is_integer(last.dtype())) return -1;
  return last.dtype() == tensor::DType::i32 ? *last.data_as<int32_t>() : *last.data_as<int64_t>();
}

Status copy(const Element &input, Element &output) {
  output = input;
  return Status();
}

Status print_and_copy(const Element &input, Element &output) {
  printf("element %lld\n", static_cast<long long>(input.lineage.index));
  fflush(stdout);
  return copy(input, output);
}

Status fail(const Element &input, Element &output) {
  if (last_number(input) == 5) return base::out_of_range("five is not allowed").with_cause(base::not_found("six"));
  return copy(input, output);
}

Status measure(const Element &input, Element &output) {
  TUTTI_ASSIGN(const std::span<const float> values, input.components[0].values<float>());
  double sum = 0;
  std::vector<std::string> texts;
  for (const float value : values) {
    sum += value;
    texts.emplace_back(texts.size(), '#');
  }
  TUTTI_ASSIGN(Tensor total, Tensor::scalar(sum));
  TUTTI_ASSIGN(Tensor marks, tensor::make_bytes_tensor({static_cast<int64_t>(texts.size())}, texts));
  output.components = {std::move(total), std::move(marks)};
  return Status();
}

Status wait_and_copy(const Element &input, Element &output) {
  while (last_number(input) == 5 && !base::path_exists(argument(2) + "/go"))
    usleep(1000);
  return copy(input, output);
}

Status die_and_copy(const Element &input, Element &output) {
  const std::string mark = argument(2) + "/died";
  if (last_number(input) == 5 && !base::path_exists(mark)) {
    TUTTI_TRY(base::write_file_atomically(mark, "once"));
    if (argument(3) == "exit") _exit(3);
    kill(getpid(), SIGKILL);
  }
  return copy(input, output);
}

Status give_process(const Element &, Element &output) {
  TUTTI_ASSIGN(Tensor number, Tensor::scalar(static_cast<int64_t>(getpid())));
  output.components.push_back(std::move(number));
  return Status();
}

// Nothing but the standard streams is open, no signal is blocked or ignored, and the group is its own.
bool is_clean() {
  DIR *const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return false;
  bool clean = getpgrp() == getpid();
  while (const dirent *const entry = readdir(folder))
    clean = clean && (atoi(entry->d_name) <= 2 || atoi(entry->d_name) == dirfd(folder));
  closedir(folder);
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  for (int number = 1; number < 32; ++number) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    clean = clean && sigismember(&blocked, number) == 0 && action.sa_handler != SIG_IGN;
  }
  return clean;
}

// ---- by hand ----

// Reads a message without data, or what comes of one.
void read_header() {
  uint64_t size = 0;
  std::string header;
  if (fread(&size, 1, sizeof(size), stdin) != sizeof(size)) _exit(0);
  header.resize(size);
  if (fread(header.data(), 1, size, stdin) != size) _exit(0);
}

void write_message(const std::string &header, const std::string &data) {
  const uint64_t size = header.size();
  if (size == 0) return;
  std::string all(reinterpret_cast<const char *>(&size), sizeof(size));
  all += header + data;
  fwrite(all.data(), 1, all.size(), stdout);
  fflush(stdout);
}

[[noreturn]] void wait_for_ever() {
  for (;;)
    pause();
}

[[noreturn]] void talk_by_hand(const std::string &what) {
  read_header();
  write_message(what == "say" ? argument(2) : "{\"ready\":1}", "");
  if (what == "early") {
    const std::string much(size_t{4} << 20, 'x');
    fwrite(much.data(), 1, much.size(), stdout);
    wait_for_ever();
  }
  read_header();
  if (what == "say") write_message(argument(3), argument(4));
  if (what == "print") {
    fputs(argument(2).c_str(), stdout);
    fflush(stdout);
    write_message(argument(3), "");
  }
  if (what == "close") {
    close(0);
    close(1);
  }
  wait_for_ever();
}

data::MapFunction function_of(const std::string &what) {
  if (what == "copy") return copy;
  if (what == "chat") return print_and_copy;
  if (what == "fail") return fail;
  if (what == "measure") return measure;
  if (what == "late") return wait_and_copy;
  if (what == "die") return die_and_copy;
  if (what == "process") return give_process;
  if (what == "clean" && !is_clean()) return nullptr;
  return what == "clean" || what == "stay" ? copy : data::MapFunction();
}

}  // namespace

int main(int count, char **values) {
  arguments.assign(values, values + count);
  const std::string what = argument(1);
  for (const char *name : {"say", "print", "close", "early"}) {
    if (what == name) talk_by_hand(what);
  }
  const data::MapFunction function = function_of(what);
  if (function == nullptr) return 4;
  const Status status = data::serve_map([&](const data::ElementSpec &) { return function; }, nullptr);
  if (!status.ok()) fprintf(stderr, "map_worker: %s\n", status.to_string().c_str());
  if (what == "stay") {
    signal(SIGTERM, SIG_IGN);
    wait_for_ever();
  }
  return status.ok() ? 0 : 1;
}
