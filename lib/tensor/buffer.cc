// SPDX-License-Identifier: Apache-2.0
#include "tensor/buffer.h"

#include <new>

#include "base/memory.h"

namespace tutti::impl::tensor {

namespace {

using base::AlignedMemory;

class OwnedBuffer final : public Buffer {
 public:
  OwnedBuffer(void *data, int64_t size_bytes, AlignedMemory memory)
      : Buffer(data, size_bytes, Access::read_write), memory_(std::move(memory)) {}

 private:
  AlignedMemory memory_;
};

// A buffer at the beginning of the very memory it owns: one allocation instead of two.
class InlineBuffer final : public Buffer {
 public:
  static constexpr size_t kHeader = base::kAlignment;

  InlineBuffer(void *data, int64_t size_bytes, AlignedMemory memory)
      : Buffer(data, size_bytes, Access::read_write), memory_(std::move(memory)) {}

 private:
  void destroy() noexcept override {
    const AlignedMemory memory = std::move(memory_);
    this->~InlineBuffer();
  }

  AlignedMemory memory_;
};
static_assert(sizeof(InlineBuffer) <= InlineBuffer::kHeader);

class BorrowedBuffer final : public Buffer {
 public:
  BorrowedBuffer(void *data, int64_t size_bytes, std::function<void()> release, Access access)
      : Buffer(data, size_bytes, access), release_(std::move(release)) {}
  ~BorrowedBuffer() override {
    if (release_) release_();
  }

 private:
  std::function<void()> release_;
};

class SliceBuffer final : public Buffer {
 public:
  SliceBuffer(void *data, int64_t size_bytes, Ref<Buffer> parent)
      : Buffer(data, size_bytes, parent->read_only() ? Access::read_only : Access::read_write),
        parent_(std::move(parent)) {}

 private:
  Ref<Buffer> parent_;
};

using Allocate = base::Result<AlignedMemory> (*)(size_t);

base::Result<Ref<Buffer>> make_owned(int64_t size_bytes, Allocate allocate) {
  if (size_bytes < 0) return base::invalid_argument("buffer size: expected 0 or more bytes, got ", size_bytes);
  const auto size = static_cast<size_t>(size_bytes);
  if (size >= base::kHugeFrom) {
    TUTTI_ASSIGN(AlignedMemory memory, allocate(size));
    void *data = memory.get();
    return Ref<Buffer>(base::make_ref<OwnedBuffer>(data, size_bytes, std::move(memory)));
  }
  TUTTI_ASSIGN(AlignedMemory memory, allocate(InlineBuffer::kHeader + size));
  char *start = static_cast<char *>(memory.get());
  return Ref<Buffer>::adopt(new (start) InlineBuffer(start + InlineBuffer::kHeader, size_bytes, std::move(memory)));
}

}  // namespace

base::Result<Ref<Buffer>> Buffer::allocate(int64_t size_bytes) {
  return make_owned(size_bytes, base::allocate_aligned);
}

base::Result<Ref<Buffer>> Buffer::allocate_zeroed(int64_t size_bytes) {
  return make_owned(size_bytes, base::allocate_zeroed);
}

Ref<Buffer> Buffer::borrow(void *data, int64_t size_bytes, std::function<void()> release, Access access) {
  return base::make_ref<BorrowedBuffer>(data, size_bytes, std::move(release), access);
}

base::Result<Ref<Buffer>> Buffer::slice(Ref<Buffer> parent, int64_t offset_bytes, int64_t size_bytes) {
  if (parent == nullptr) return base::invalid_argument("slice of a buffer: expected a buffer, got none");
  const int64_t limit = parent->size_bytes();
  if (offset_bytes < 0 || size_bytes < 0 || offset_bytes > limit || size_bytes > limit - offset_bytes) {
    return base::out_of_range("slice of ", size_bytes, " bytes at ", offset_bytes, " does not lie in a buffer of ",
                              limit);
  }
  char *data = static_cast<char *>(parent->data());
  if (data != nullptr) data += offset_bytes;
  return Ref<Buffer>(base::make_ref<SliceBuffer>(data, size_bytes, std::move(parent)));
}

}  // namespace tutti::impl::tensor
