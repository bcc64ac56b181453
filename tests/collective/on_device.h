// SPDX-License-Identifier: Apache-2.0
//
// What every group must do, in memory of devices: a group whose operations are on memory of the host, and are done in
// that of a device.
#ifndef TUTTI_TESTS_COLLECTIVE_ON_DEVICE_H_
#define TUTTI_TESTS_COLLECTIVE_ON_DEVICE_H_

#include <memory>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "conformance/group_conformance.h"

namespace tutti::testing {

/// Takes operations on memory of the host and has them done in memory of a device.
class OnDevice : public Group {
 public:
  OnDevice(std::unique_ptr<Group> inner, impl::backend::DeviceRef device)
      : inner_(std::move(inner)), device_(std::move(device)), stream_(std::move(*device_->create_stream())) {}
  ~OnDevice() override { inner_.reset(); }  // before the memory that it may be copying

  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  int32_t parts() const override { return inner_->parts(); }

  Result<Ticket> begin(const Operation &operation) override {
    Posted posted{operation, {}, {}, {}, {}};
    if (operation.kind == impl::collective::Kind::barrier) return inner_->begin(operation);
    for (int32_t p = 0; p < parts(); ++p) {
      posted.host.push_back(operation.buffers[p]);
      TUTTI_ASSIGN(impl::backend::Buffer buffer, device_->allocate(bytes_of(operation)));
      TUTTI_TRY(buffer.write(0, operation.buffers[p], bytes_of(operation), &stream_));
      posted.pointers.push_back(buffer.device_pointer());
      posted.buffers.push_back(std::move(buffer));
    }
    Operation moved = operation;
    moved.buffers = posted.pointers.data();
    moved.stream = &stream_;
    if (operation.gathered != nullptr) {
      TUTTI_ASSIGN(posted.gathered, device_->allocate(bytes_of(operation) * contributors()));
      moved.gathered = posted.gathered.device_pointer();
    }
    const Result<Ticket> ticket = inner_->begin(moved);
    posted_.push_back(std::move(posted));  // also after an error: its memory is still being written to
    if (!ticket.ok()) (void)stream_.synchronize();
    return ticket;
  }

  Status wait(Ticket ticket) override {
    if (const Status status = inner_->wait(ticket); !status.ok()) {
      (void)stream_.synchronize();  // nothing reads what the caller takes back
      return status;
    }
    for (Posted &posted : posted_) {
      const int64_t bytes = bytes_of(posted.operation);
      for (size_t p = 0; p < posted.buffers.size(); ++p)
        TUTTI_TRY(posted.buffers[p].read(0, posted.host[p], bytes, &stream_));
      if (posted.gathered.empty()) continue;
      TUTTI_TRY(posted.gathered.read(0, posted.operation.gathered, bytes * contributors(), &stream_));
    }
    TUTTI_TRY(stream_.synchronize());
    posted_.clear();
    return Status();
  }

  Status settle() override { return inner_->settle(); }
  void abort(const Status &cause) override { inner_->abort(cause); }
  Status error() const override { return inner_->error(); }
  void set_cancel(const impl::base::CancelToken *token) override { inner_->set_cancel(token); }

 private:
  struct Posted {
    Operation operation;
    std::vector<impl::backend::Buffer> buffers;
    std::vector<void *> host, pointers;
    impl::backend::Buffer gathered;
  };

  static int64_t bytes_of(const Operation &operation) {
    return operation.count * static_cast<int64_t>(impl::tensor::size_bytes(operation.dtype));
  }
  std::unique_ptr<Group> inner_;
  const impl::backend::DeviceRef device_;
  impl::backend::Stream stream_;
  std::vector<Posted> posted_;
};

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_COLLECTIVE_ON_DEVICE_H_
