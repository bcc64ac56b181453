// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/serve_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "data/process/process_channel.h"
#include "data/process/process_elements.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::FileDescriptor;
using base::Json;
using base::JsonReader;
using base::Result;
using base::Status;

namespace {

// One talk: what was agreed on at its beginning.
class Server {
 public:
  explicit Server(ProcessChannel &channel) : channel_(channel) {}

  /// False when there is nobody to talk to.
  Result<bool> begin(const MapMaker &make) {
    Json greeting;
    TUTTI_ASSIGN(const bool has_greeting, channel_.receive_header(greeting));
    if (!has_greeting) return false;
    const Status status = agree(greeting);
    if (!status.ok()) {
      TUTTI_TRY(send_error(channel_, status, nullptr));
      return status;
    }
    function_ = make(outputs_);
    TUTTI_TRY(channel_.send(base::concat("{\"ready\":", kProcessProtocol, "}")));
    return true;
  }

  /// Maps one element; false when there are no more.
  Result<bool> next() {
    Json header;
    TUTTI_ASSIGN(const bool has_element, channel_.receive_header(header));
    if (!has_element) return false;
    TUTTI_ASSIGN(const Lineage lineage, lineage_in(header));
    TUTTI_TRY(receive_tensors(channel_, header, inputs_, input_));
    input_.lineage = lineage;
    output_.components.clear();
    Status status = function_(input_, output_);
    output_.lineage = lineage;
    if (status.ok()) status = check_element(output_, outputs_, "the result of the function");
    TUTTI_TRY(status.ok() ? send_element(channel_, outputs_, output_) : send_error(channel_, status, &lineage));
    return true;
  }

 private:
  Status agree(const Json &greeting) {
    TUTTI_ASSIGN(const int64_t protocol, JsonReader(greeting, "greeting").get_integer("protocol"));
    if (protocol != kProcessProtocol) {
      return base::failed_precondition("the process that started this one uses protocol ", protocol, ", expected ",
                                       kProcessProtocol, ": both should use the same release");
    }
    TUTTI_ASSIGN(inputs_, spec_in(greeting, "inputs"));
    TUTTI_ASSIGN(outputs_, spec_in(greeting, "outputs"));
    return Status();
  }

  ProcessChannel &channel_;
  ElementSpec inputs_, outputs_;
  MapFunction function_;
  Element input_, output_;
};

Status talk(ProcessChannel &channel, const MapMaker &make) {
  Server server(channel);
  Result<bool> more = server.begin(make);
  while (more.ok() && *more)
    more = server.next();
  return more.status();
}

// Another descriptor for one of the standard streams, and in the place of that the replacement.
Result<FileDescriptor> take_stream(int stream, int replacement) {
  FileDescriptor taken(fcntl(stream, F_DUPFD_CLOEXEC, 3));
  if (taken.get() < 0) return base::status_from_errno(errno, base::concat("cannot duplicate descriptor ", stream));
  if (dup2(replacement, stream) < 0)
    return base::status_from_errno(errno, base::concat("cannot replace descriptor ", stream));
  return taken;
}

}  // namespace

Status serve_map(int input, int output, const MapMaker &make, const CancelToken *token) {
  TUTTI_ASSIGN(const WakeEvent event, WakeEvent::create());
  ProcessChannel channel(input, output);
  const ProcessChannel::Guard guard(channel, token, event);
  const Status status = talk(channel, make);
  // Whoever started this process does not want the answer any more.
  return channel.is_closed() ? Status() : status;
}

Status serve_map(const MapMaker &make, const CancelToken *token) {
  if (isatty(0) != 0) {
    return base::failed_precondition(
        "standard input is a terminal: this program is a worker process, which the transform map_process starts");
  }
  const FileDescriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (nothing.get() < 0) return base::status_from_errno(errno, "cannot open /dev/null");
  TUTTI_ASSIGN(const FileDescriptor input, take_stream(0, nothing.get()));
  const bool has_error_stream = fcntl(2, F_GETFD) >= 0;
  TUTTI_ASSIGN(const FileDescriptor output, take_stream(1, has_error_stream ? 2 : nothing.get()));
  return serve_map(input.get(), output.get(), make, token);
}

}  // namespace tutti::impl::data
