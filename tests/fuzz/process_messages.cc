// SPDX-License-Identifier: Apache-2.0
// Any bytes are a talk with a worker process or an error, on both sides: what a worker gets, and what it answers.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "data/pipeline/serve_map.h"
#include "data/process/process_channel.h"
#include "data/process/process_elements.h"

using namespace tutti::impl;
using data::Element;
using data::ElementSpec;
using data::Role;

namespace {

// The answers to so much a socket takes while nobody reads them.
constexpr size_t kMostBytes = 4096;

// A socket that gives these bytes, and nothing behind them.
class Sender {
 public:
  Sender(const uint8_t *data, size_t size) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets_) != 0) std::abort();
    if (size > 0 && send(sockets_[0], data, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) std::abort();
    shutdown(sockets_[0], SHUT_WR);
  }
  ~Sender() {
    close(sockets_[0]);
    close(sockets_[1]);
  }
  Sender(const Sender &) = delete;
  Sender &operator=(const Sender &) = delete;
  int descriptor() const { return sockets_[1]; }

 private:
  int sockets_[2] = {-1, -1};
};

void answer(const Sender &sender) {
  const ElementSpec spec{{{"x", Role::feature, tensor::DType::f32, {2, data::unknown_dim()}},
                          {"words", Role::label, tensor::DType::bytes, {data::unknown_dim()}},
                          {"flags", Role::weight, tensor::DType::boolean, {2}}}};
  data::ProcessChannel channel(sender.descriptor(), sender.descriptor());
  base::Json header;
  Element element;
  for (;;) {
    const base::Result<bool> more = channel.receive_header(header);
    if (!more.ok() || !*more) return;
    static_cast<void>(data::error_in(header));
    if (!data::receive_tensors(channel, header, spec, element).ok()) return;
    if (!data::check_element(element, spec, "answer").ok()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > kMostBytes) return 0;
  const auto make = [](const ElementSpec &) {
    return [](const Element &input, Element &output) {
      output = input;
      return base::Status();
    };
  };
  const Sender elements(data, size), answers(data, size);
  static_cast<void>(data::serve_map(elements.descriptor(), elements.descriptor(), make, nullptr));
  answer(answers);
  return 0;
}
