// SPDX-License-Identifier: Apache-2.0
//
// Device memory as tutti sees it (ranges of bytes with addresses) over what PJRT has: typed arrays that change identity
// with every run. A memory reserves a range of addresses, which nothing ever reads, and is divided into pieces, each of
// which is one array of a program: a state entry, an input, a result. A piece's contents are with the host, on the
// device, or both. Programs look their pieces up when they are bound; whoever asks for a range that is no piece has
// the pieces there cut, by way of the host.
//
//   DeviceMemory memory(client, 0, bytes);
//   TUTTI_TRY(memory.write(0, data, bytes));                                 // from the host
//   TUTTI_ASSIGN(PieceRef piece, memory.piece(0, 784 * 512 * 4));
//   TUTTI_ASSIGN(abi::Buffer *argument, piece->on_device(DType::f32, {784, 512}));
//   piece->take(std::move(result), DType::f32, {784, 512});                  // what a run has left
//
// Threads: functions of a memory may be called from any thread. Who changes a piece has it alone, as
// <tutti/plugin/backend.h> asks of whoever binds programs; reading it from several threads is fine.
#ifndef TUTTI_BACKEND_PJRT_MEMORY_DEVICE_MEMORY_H_
#define TUTTI_BACKEND_PJRT_MEMORY_DEVICE_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/pjrt/interface/pjrt_client.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::pjrt {

class Piece;
using PieceRef = std::shared_ptr<Piece>;

/// Bytes of the host that pieces may share, each its own part. Null storage: zeros.
struct HostBytes {
  std::shared_ptr<std::byte[]> storage;
  int64_t begin = 0;
};

class Piece {
 public:
  /// Zeros, of no type yet.
  Piece(ClientRef client, size_t device, int64_t bytes)
      : client_(std::move(client)), device_(device), bytes_(bytes), dims_({bytes}) {}

  int64_t bytes() const { return bytes_; }
  /// It was cut, or its memory is gone: what was looked up is to be looked up again.
  bool is_stale() const { return is_stale_.load(std::memory_order_acquire); }

  /// The array for a program, of the type that it asks for: another one, or what is with the host, is brought there.
  /// Valid until the piece changes.
  base::Result<abi::Buffer *> on_device(tensor::DType dtype, const std::vector<int64_t> &dims);
  /// The contents from now on; what was there before is let go.
  void take(DeviceArray array, tensor::DType dtype, const std::vector<int64_t> &dims);

  /// Copies to the host; the completion is empty where that is done on return.
  base::Result<Completion> read(int64_t offset, void *destination, int64_t bytes);
  base::Status write(int64_t offset, const void *source, int64_t bytes);
  base::Status fill_zero(int64_t offset, int64_t bytes);

 private:
  friend class DeviceMemory;
  base::Status bring_to_host();
  void own_host_bytes();
  std::byte *host_data() const { return host_.storage.get() + host_.begin; }

  const ClientRef client_;
  const size_t device_;
  const int64_t bytes_;
  std::atomic<bool> is_stale_{false};

  std::mutex mutex_;
  // Guarded by mutex_:
  tensor::DType dtype_ = tensor::DType::u8;
  std::vector<int64_t> dims_;
  bool has_host_ = true;
  HostBytes host_;  // zeros at first
  DeviceArray array_;
};

class DeviceMemory {
 public:
  /// Reserves `bytes` of addresses, which may be 0. RESOURCE_EXHAUSTED where there are none.
  static base::Result<std::unique_ptr<DeviceMemory>> create(ClientRef client, size_t device, int64_t bytes);
  ~DeviceMemory();

  std::byte *address() const { return address_; }
  int64_t bytes() const { return bytes_; }
  bool contains(const void *address) const {
    const auto *const byte = static_cast<const std::byte *>(address);
    return byte >= address_ && byte < address_ + reserved_;
  }

  /// The piece that is these bytes.
  base::Result<PieceRef> piece(int64_t offset, int64_t bytes);
  /// Of any pieces. Completions of what has not ended yet are added.
  base::Status read(int64_t offset, void *destination, int64_t bytes, std::vector<Completion> &pending);
  base::Status write(int64_t offset, const void *source, int64_t bytes);
  base::Status fill_zero(int64_t offset, int64_t bytes);

 private:
  DeviceMemory(ClientRef client, size_t device, int64_t bytes)
      : client_(std::move(client)), device_(device), bytes_(bytes) {}
  base::Status check_range(int64_t offset, int64_t bytes) const;
  base::Status cut(int64_t begin, int64_t end);
  /// Calls function(piece, offset in it, bytes of it, offset in the range) for each piece that a range touches.
  template <typename Function>
  base::Status for_pieces(int64_t offset, int64_t bytes, Function function);

  const ClientRef client_;
  const size_t device_;
  const int64_t bytes_;
  std::byte *address_ = nullptr;
  size_t reserved_ = 0;

  std::mutex mutex_;
  std::map<int64_t, PieceRef> pieces_;  // guarded by mutex_; by offset, without gaps
};

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_MEMORY_DEVICE_MEMORY_H_
