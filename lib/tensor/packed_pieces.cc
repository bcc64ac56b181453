// SPDX-License-Identifier: Apache-2.0
#include "tensor/packed_pieces.h"

#include <cstdint>
#include <cstring>

namespace tutti::impl::tensor {

using base::Result;
using base::Status;

namespace {

void put(std::vector<std::byte> &bytes, const void *data, size_t size) {
  const auto *first = static_cast<const std::byte *>(data);
  bytes.insert(bytes.end(), first, first + size);
}

void put_number(std::vector<std::byte> &bytes, int64_t number) { put(bytes, &number, sizeof number); }

/// Takes what put() has written, from the front.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  Result<std::span<const std::byte>> take(int64_t size) {
    if (size < 0 || static_cast<uint64_t>(size) > rest_.size())
      return base::data_loss("the values of another worker are cut off");
    const std::span<const std::byte> taken = rest_.first(static_cast<size_t>(size));
    rest_ = rest_.subspan(static_cast<size_t>(size));
    return taken;
  }
  Result<int64_t> number() {
    TUTTI_ASSIGN(const std::span<const std::byte> bytes, take(sizeof(int64_t)));
    int64_t number;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }

 private:
  std::span<const std::byte> rest_;
};

Result<Tensor> read_piece(Reader &reader, int64_t rank) {
  TUTTI_ASSIGN(const int64_t number, reader.number());
  TUTTI_ASSIGN(const DType dtype, dtype_from_number(static_cast<int32_t>(number)));
  if (rank < 0 || rank > Shape::kMaxRank) return base::data_loss("a tensor of ", rank, " dimensions");
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < rank; ++i) {
    TUTTI_ASSIGN(const int64_t dim, reader.number());
    dims.push_back(dim);
  }
  TUTTI_ASSIGN(const Shape shape, Shape::make(dims));
  TUTTI_ASSIGN(const int64_t size, reader.number());
  TUTTI_ASSIGN(const std::span<const std::byte> data, reader.take(size));
  if (size != shape.elements() * static_cast<int64_t>(size_bytes(dtype)))
    return base::data_loss(size, " bytes for ", name(dtype), " ", shape);
  return Tensor::copy_of(dtype, shape, data.data(), size);
}

constexpr int64_t kNoRows = -1;

}  // namespace

std::vector<std::byte> pieces_to_bytes(std::span<const Tensor> pieces) {
  std::vector<std::byte> bytes;
  for (const Tensor &piece : pieces) {
    if (piece.empty()) {
      put_number(bytes, kNoRows);
      continue;
    }
    put_number(bytes, piece.rank());
    put_number(bytes, static_cast<int64_t>(piece.dtype()));
    for (const int64_t dim : piece.shape())
      put_number(bytes, dim);
    put_number(bytes, piece.size_bytes());
    put(bytes, piece.data(), static_cast<size_t>(piece.size_bytes()));
  }
  return bytes;
}

Status pieces_from_bytes(std::span<const std::byte> bytes, std::vector<Tensor> &pieces) {
  for (Reader reader(bytes); !reader.at_end();) {
    TUTTI_ASSIGN(const int64_t rank, reader.number());
    if (rank == kNoRows) {
      pieces.emplace_back();
      continue;
    }
    TUTTI_ASSIGN(Tensor piece, read_piece(reader, rank));
    pieces.push_back(std::move(piece));
  }
  return Status();
}

}  // namespace tutti::impl::tensor
