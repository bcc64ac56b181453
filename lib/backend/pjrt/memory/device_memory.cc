// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/memory/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace tutti::impl::backend::pjrt {

using base::Result;
using base::Status;
using tensor::DType;

// ---- pieces ----

void Piece::own_host_bytes() {
  if (host_.storage != nullptr) return;
  host_.storage.reset(new std::byte[static_cast<size_t>(std::max<int64_t>(bytes_, 1))]());
  host_.begin = 0;
}

Status Piece::bring_to_host() {
  if (has_host_) return Status();
  own_host_bytes();
  TUTTI_ASSIGN(Completion done, client_->download(array_, dims_.size(), host_data(), bytes_));
  TUTTI_TRY(done.wait());
  has_host_ = true;
  return Status();
}

Result<abi::Buffer *> Piece::on_device(DType dtype, const std::vector<int64_t> &dims) {
  std::lock_guard lock(mutex_);
  const bool fits = dtype_ == dtype && dims_ == dims;
  if (array_ && fits) return array_.get();
  if (array_) TUTTI_TRY(bring_to_host());
  own_host_bytes();
  TUTTI_ASSIGN(array_, client_->upload(device_, dtype, dims, host_data()));
  dtype_ = dtype;
  dims_ = dims;
  return array_.get();
}

void Piece::take(DeviceArray array, DType dtype, const std::vector<int64_t> &dims) {
  std::lock_guard lock(mutex_);
  array_ = std::move(array);
  has_host_ = false;
  dtype_ = dtype;
  dims_ = dims;
}

Result<Completion> Piece::read(int64_t offset, void *destination, int64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!has_host_ && offset == 0 && bytes == bytes_) return client_->download(array_, dims_.size(), destination, bytes);
  TUTTI_TRY(bring_to_host());
  if (host_.storage == nullptr) {
    std::memset(destination, 0, static_cast<size_t>(bytes));
  } else {
    std::memcpy(destination, host_data() + offset, static_cast<size_t>(bytes));
  }
  return Completion();
}

Status Piece::write(int64_t offset, const void *source, int64_t bytes) {
  std::lock_guard lock(mutex_);
  // Whole arrays that a program has asked for go straight to the device.
  if (offset == 0 && bytes == bytes_ && array_) {
    TUTTI_ASSIGN(array_, client_->upload(device_, dtype_, dims_, source));
    has_host_ = false;
    return Status();
  }
  if (offset != 0 || bytes != bytes_) TUTTI_TRY(bring_to_host());
  own_host_bytes();
  std::memcpy(host_data() + offset, source, static_cast<size_t>(bytes));
  has_host_ = true;
  array_ = DeviceArray();
  return Status();
}

Status Piece::fill_zero(int64_t offset, int64_t bytes) {
  std::lock_guard lock(mutex_);
  if (offset == 0 && bytes == bytes_) {
    host_ = HostBytes();
  } else {
    TUTTI_TRY(bring_to_host());
    if (host_.storage != nullptr) std::memset(host_data() + offset, 0, static_cast<size_t>(bytes));
  }
  has_host_ = true;
  array_ = DeviceArray();
  return Status();
}

// ---- memory ----

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::create(ClientRef client, size_t device, int64_t bytes) {
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(std::move(client), device, bytes));
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t reserved = (static_cast<size_t>(bytes) / page + 1) * page;
  void *const address = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return base::resource_exhausted("cannot reserve ", bytes, " bytes of addresses");
  memory->address_ = static_cast<std::byte *>(address);
  memory->reserved_ = reserved;
  if (bytes > 0) memory->pieces_[0] = std::make_shared<Piece>(memory->client_, device, bytes);
  return memory;
}

DeviceMemory::~DeviceMemory() {
  for (const auto &[offset, piece] : pieces_)
    piece->is_stale_.store(true, std::memory_order_release);  // another memory may come to have the addresses
  if (address_ != nullptr) munmap(address_, reserved_);
}

Status DeviceMemory::check_range(int64_t offset, int64_t bytes) const {
  if (offset >= 0 && bytes >= 0 && bytes <= bytes_ - offset) return Status();
  return base::out_of_range(bytes, " bytes at ", offset, " of device memory of ", bytes_, " bytes");
}

/// Afterwards a piece begins at `begin` and one at `end`; what is cut shares the host's bytes.
Status DeviceMemory::cut(int64_t begin, int64_t end) {
  for (const int64_t at : {begin, end}) {
    if (at == bytes_ || pieces_.contains(at)) continue;
    const auto found = std::prev(pieces_.upper_bound(at));
    const int64_t first = found->first;
    const PieceRef whole = found->second;
    std::lock_guard lock(whole->mutex_);
    TUTTI_TRY(whole->bring_to_host());
    const auto part = [&](int64_t from, int64_t to) {
      auto made = std::make_shared<Piece>(client_, device_, to - from);
      made->host_ = {whole->host_.storage, whole->host_.begin + from - first};
      pieces_[from] = std::move(made);
    };
    part(first, at);
    part(at, first + whole->bytes_);
    whole->is_stale_.store(true, std::memory_order_release);
  }
  return Status();
}

Result<PieceRef> DeviceMemory::piece(int64_t offset, int64_t bytes) {
  TUTTI_TRY(check_range(offset, bytes));
  std::lock_guard lock(mutex_);
  if (bytes == 0) return std::make_shared<Piece>(client_, device_, 0);  // lies nowhere
  TUTTI_TRY(cut(offset, offset + bytes));
  PieceRef found = pieces_.at(offset);
  if (found->bytes() != bytes) {  // made of several: joined by way of the host
    auto joined = std::make_shared<Piece>(client_, device_, bytes);
    joined->own_host_bytes();
    for (auto at = pieces_.find(offset); at != pieces_.end() && at->first < offset + bytes;) {
      TUTTI_ASSIGN(Completion done, at->second->read(0, joined->host_data() + at->first - offset, at->second->bytes()));
      TUTTI_TRY(done.wait());
      at->second->is_stale_.store(true, std::memory_order_release);
      at = pieces_.erase(at);
    }
    pieces_[offset] = joined;
    found = std::move(joined);
  }
  return found;
}

template <typename Function>
Status DeviceMemory::for_pieces(int64_t offset, int64_t bytes, Function function) {
  TUTTI_TRY(check_range(offset, bytes));
  std::lock_guard lock(mutex_);
  for (int64_t at = offset; at < offset + bytes;) {
    const auto found = std::prev(pieces_.upper_bound(at));
    const int64_t inside = at - found->first;
    const int64_t count = std::min(found->second->bytes() - inside, offset + bytes - at);
    TUTTI_TRY(function(*found->second, inside, count, at - offset));
    at += count;
  }
  return Status();
}

Status DeviceMemory::read(int64_t offset, void *destination, int64_t bytes, std::vector<Completion> &pending) {
  return for_pieces(offset, bytes, [&](Piece &piece, int64_t inside, int64_t count, int64_t at) -> Status {
    TUTTI_ASSIGN(Completion done, piece.read(inside, static_cast<std::byte *>(destination) + at, count));
    pending.push_back(std::move(done));
    return Status();
  });
}

Status DeviceMemory::write(int64_t offset, const void *source, int64_t bytes) {
  return for_pieces(offset, bytes, [&](Piece &piece, int64_t inside, int64_t count, int64_t at) {
    return piece.write(inside, static_cast<const std::byte *>(source) + at, count);
  });
}

Status DeviceMemory::fill_zero(int64_t offset, int64_t bytes) {
  return for_pieces(offset, bytes, [&](Piece &piece, int64_t inside, int64_t count, int64_t) {
    return piece.fill_zero(inside, count);
  });
}

}  // namespace tutti::impl::backend::pjrt
