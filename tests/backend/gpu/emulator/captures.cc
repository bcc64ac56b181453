// SPDX-License-Identifier: Apache-2.0
//
// Streams that are captured, and graphs. What two streams do is ordered in a graph by the events between them alone:
// work that could be done comes in the opposite order of its capture, so that an event that lacks is missed.
#include <algorithm>
#include <thread>
#include <utility>

#include "driver.h"
#include "host_call.h"
#include "streams.h"

namespace tutti_gpu_emulator {

namespace {

/// One launch of a graph.
class GraphRun {
 public:
  GraphRun(const EmulatedGraph &graph, const std::shared_ptr<Lane> &lane) {
    for (const GraphNode &node : graph.nodes)
      works_.push_back({node.at_launch(lane), node.after, false});
  }

  /// Does what can be done; true when all is.
  bool advance() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t i = works_.size(); i-- > 0 && !goes_on;)
        goes_on = is_next(works_[i]) && (works_[i].is_done = works_[i].work());
    }
    return std::ranges::all_of(works_, [](const One &one) { return one.is_done; });
  }

 private:
  struct One {
    Work work;
    std::vector<size_t> after;
    bool is_done;
  };
  bool is_next(const One &one) const {
    return !one.is_done && std::ranges::all_of(one.after, [&](size_t before) { return works_[before].is_done; });
  }

  std::vector<One> works_;
};

/// Captures under way that do not let others do what is unsafe meanwhile.
std::vector<Capture *> &guarded_captures() {
  static std::vector<Capture *> captures;
  return captures;
}

gpuStreamCaptureMode &mode_of_thread() {
  thread_local gpuStreamCaptureMode mode{};
  return mode;
}

/// Nodes that come before what the stream does next.
std::set<size_t> all_before(const Capture &capture, const std::vector<size_t> &tails) {
  std::set<size_t> found;
  std::vector<size_t> next = tails;
  while (!next.empty()) {
    const size_t node = next.back();
    next.pop_back();
    if (!found.insert(node).second) continue;
    const std::vector<size_t> &after = capture.graph.nodes[node].after;
    next.insert(next.end(), after.begin(), after.end());
  }
  return found;
}

bool is_joined(const Capture &capture) {
  const std::set<size_t> before = all_before(capture, capture.origin->tails);
  for (const EmulatedStream *const stream : capture.streams) {
    for (const size_t tail : stream->tails) {
      if (!before.contains(tail)) return false;
    }
  }
  return true;
}

}  // namespace

void add_to_capture(EmulatedStream &stream, LaunchedWork work) {
  std::vector<GraphNode> &nodes = stream.capture->graph.nodes;
  nodes.push_back({std::move(work), std::exchange(stream.tails, {nodes.size()})});
}

gpuError_t join_capture(EmulatedStream &stream, const EmulatedEvent &event) {
  if (event.capture->is_over) return gpuErrorCapturedEvent;
  if (stream.capture != nullptr && stream.capture != event.capture)
    return invalidate(*stream.capture, gpuErrorStreamCaptureIsolation);
  stream.capture = event.capture;
  stream.capture->streams.insert(&stream);
  for (const size_t tail : event.tails) {
    if (std::ranges::count(stream.tails, tail) == 0) stream.tails.push_back(tail);
  }
  return gpuSuccess;
}

gpuError_t invalidate(Capture &capture, gpuError_t error) {
  capture.is_invalid = true;
  return error;
}

gpuError_t refuse_captured(const EmulatedEvent &event) { return invalidate(*event.capture, gpuErrorCapturedEvent); }

gpuError_t refuse_unsafe() {
  if (mode_of_thread() == gpuStreamCaptureModeRelaxed || guarded_captures().empty()) return gpuSuccess;
  for (Capture *const capture : guarded_captures())
    capture->is_invalid = true;
  return gpuErrorStreamCaptureUnsupported;
}

}  // namespace tutti_gpu_emulator

using namespace tutti_gpu_emulator;

gpuError_t gpuStreamBeginCapture(gpuStream_t stream, gpuStreamCaptureMode mode) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  const std::lock_guard guard(work_lock());
  if (stream->capture) return gpuErrorStreamCaptureUnsupported;
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->streams.insert(stream);
  stream->tails.clear();
  if (mode != gpuStreamCaptureModeRelaxed) guarded_captures().push_back(stream->capture.get());
  return gpuSuccess;
}

gpuError_t gpuStreamEndCapture(gpuStream_t stream, gpuGraph_t *graph) {
  const HostCall host;
  const std::lock_guard guard(work_lock());
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return gpuErrorInvalidValue;
  if (capture->origin != stream) return invalidate(*capture, gpuErrorStreamCaptureUnmatched);
  const bool joined = is_joined(*capture);
  for (EmulatedStream *const member : std::exchange(capture->streams, {})) {
    member->capture = nullptr;
    member->tails.clear();
  }
  capture->is_over = true;
  std::erase(guarded_captures(), capture.get());
  EmulatedGraph made = std::move(capture->graph);
  if (capture->is_invalid) return gpuErrorStreamCaptureInvalidated;
  if (!joined) return gpuErrorStreamCaptureUnjoined;
  *graph = new EmulatedGraph(std::move(made));
  return gpuSuccess;
}

gpuError_t gpuThreadExchangeStreamCaptureMode(gpuStreamCaptureMode *mode) {
  std::swap(*mode, mode_of_thread());
  return gpuSuccess;
}

gpuError_t gpuGraphInstantiate(gpuGraphExec_t *executable, gpuGraph_t graph, unsigned long long) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  const DriverCall call("making a graph ready", current_device());
  *executable = new EmulatedGraph(*graph);
  return gpuSuccess;
}

gpuError_t gpuGraphUpload(gpuGraphExec_t executable, gpuStream_t) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  const DriverCall call("making a graph ready", current_device());
  executable->is_uploaded = true;
  return gpuSuccess;
}

gpuError_t gpuGraphDestroy(gpuGraph_t graph) {
  const HostCall host;
  delete graph;
  return gpuSuccess;
}

gpuError_t gpuGraphExecDestroy(gpuGraphExec_t executable) {
  const HostCall host;
  const DriverCall call("destroying a graph", current_device());
  delete executable;
  return gpuSuccess;
}

gpuError_t gpuGraphLaunch(gpuGraphExec_t executable, gpuStream_t stream) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  if (!executable->is_uploaded) (void)gpuGraphUpload(executable, stream);
  const DriverPause behind;
  const DriverCall call;
  const std::lock_guard guard(work_lock());
  // A graph within a graph is nothing that is asked of a GPU here.
  if (stream->capture) return invalidate(*stream->capture, gpuErrorStreamCaptureUnsupported);
  write_journal("graph_launch", executable->nodes.size());
  // The graph may be destroyed while it runs; its work is copied, as the real one's is.
  issue(stream, [run = std::make_shared<GraphRun>(*executable, stream->lane)] { return run->advance(); });
  return gpuSuccess;
}

const char *gpuGetErrorString(gpuError_t error) {
  switch (error) {
    case gpuSuccess:
      return "no error";
    case gpuErrorInvalidValue:
      return "invalid argument";
    case gpuErrorMemoryAllocation:
      return "out of memory";
    case gpuErrorNoDevice:
      return "no device";
    case gpuErrorInvalidDeviceFunction:
      return "invalid device function";
    case gpuErrorNoKernelImage:
      return "no kernel image is available for execution on the device";
    case gpuErrorNotReady:
      return "not ready";
    case gpuErrorNotSupported:
      return "operation not supported";
    case gpuErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case gpuErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case gpuErrorStreamCaptureUnmatched:
      return "capture was not ended in the same stream as it began";
    case gpuErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
    case gpuErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case gpuErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
  }
  return "unknown error";
}
