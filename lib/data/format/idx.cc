// SPDX-License-Identifier: Apache-2.0
#include "data/format/idx.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/gzip.h"
#include "data/pipeline/sources.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

// Of a file that is compressed, so that a small one cannot fill the memory.
constexpr int64_t kMostInflatedBytes = int64_t{4} << 30;

// The content of the file, inflated if need be, in order.
class Content {
 public:
  static Result<Content> open(std::string_view bytes, std::string_view name) {
    Content content(bytes, name);
    if (base::looks_like_gzip(bytes)) {
      TUTTI_ASSIGN(base::Inflater inflater, base::Inflater::create({INT64_MAX}));
      content.inflater_.emplace(std::move(inflater));
    }
    return content;
  }

  bool is_compressed() const { return inflater_.has_value(); }
  // Bytes that can follow at most.
  int64_t most_left() const {
    const auto left = static_cast<int64_t>(input_.size());
    return inflater_ ? left * base::kMostDeflateRatio + base::kDeflateRatioSlack : left;
  }
  int64_t offset() const { return offset_; }

  // Exactly `size` bytes; `what` they are.
  Status read(void *data, int64_t size, std::string_view what) {
    const Result<int64_t> got = read_some(static_cast<char *>(data), size);
    if (!got.ok()) return got.status().wrap(base::Code::data_loss, base::concat("corrupt IDX file '", name_, "'"));
    if (*got == size) return Status();
    return corrupt(base::concat("expected ", size, " bytes of ", what, ", the file ends after ", *got));
  }
  // Nothing may follow.
  Status expect_end() {
    char extra = 0;
    const Result<int64_t> got = read_some(&extra, 1);
    Status status = got.status();
    if (got.ok() && *got > 0) return corrupt("expected the end of the file, more bytes follow");
    if (status.ok() && inflater_) status = inflater_->finish();
    return status.ok() ? status : status.wrap(base::Code::data_loss, base::concat("corrupt IDX file '", name_, "'"));
  }
  Status corrupt(std::string_view text) const {
    return base::data_loss("corrupt IDX file '", name_, "' at offset ", offset_, ": ", text);
  }

 private:
  Content(std::string_view bytes, std::string_view name) : input_(bytes), name_(name) {}

  Result<int64_t> read_some(char *data, int64_t size) {
    int64_t got = 0;
    while (got < size) {
      if (!inflater_) {
        got = std::min<int64_t>(size, static_cast<int64_t>(input_.size()));
        if (got > 0) std::memcpy(data, input_.data(), static_cast<size_t>(got));
        input_.remove_prefix(static_cast<size_t>(got));
        break;
      }
      TUTTI_ASSIGN(const base::Inflater::Progress progress,
                   inflater_->inflate(input_, {data + got, static_cast<size_t>(size - got)}));
      input_.remove_prefix(progress.consumed);
      got += static_cast<int64_t>(progress.produced);
      if (progress.consumed == 0 && progress.produced == 0) break;
    }
    offset_ += got;
    return got;
  }

  std::string_view input_;
  std::string_view name_;
  std::optional<base::Inflater> inflater_;
  int64_t offset_ = 0;  // in the inflated content
};

std::optional<DType> dtype_of_code(uint8_t code) {
  switch (code) {
    case 0x08:
      return DType::u8;
    case 0x09:
      return DType::i8;
    case 0x0B:
      return DType::i16;
    case 0x0C:
      return DType::i32;
    case 0x0D:
      return DType::f32;
    case 0x0E:
      return DType::f64;
    default:
      return std::nullopt;
  }
}

struct IdxHeader {
  DType dtype;
  Shape shape;
};

Result<IdxHeader> read_header(Content &content) {
  uint8_t magic[4];
  TUTTI_TRY(content.read(magic, sizeof(magic), "magic number"));
  const std::optional<DType> dtype = dtype_of_code(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || !dtype) {
    return content.corrupt(base::concat("expected the magic bytes 0, 0 and a type 8, 9 or 11 to 14; got ", magic[0],
                                        ", ", magic[1], ", ", magic[2]));
  }
  if (magic[3] < 1 || magic[3] > Shape::kMaxRank) {
    return content.corrupt(base::concat("expected 1 to ", Shape::kMaxRank, " axes, got ", magic[3]));
  }
  std::vector<int64_t> extents;
  for (int axis = 0; axis < magic[3]; ++axis) {
    uint8_t bytes[4];
    TUTTI_TRY(content.read(bytes, sizeof(bytes), base::concat("the extent of axis ", axis)));
    extents.push_back(int64_t{bytes[0]} << 24 | int64_t{bytes[1]} << 16 | int64_t{bytes[2]} << 8 | bytes[3]);
  }
  const Result<Shape> shape = Shape::make(extents);
  if (!shape.ok()) return content.corrupt(shape.status().message());
  return IdxHeader{*dtype, *shape};
}

template <typename Word>
void swap_words(std::byte *data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::byte *word = data + i * static_cast<int64_t>(sizeof(Word));
    std::reverse(word, word + sizeof(Word));
  }
}

void to_native(Tensor &tensor) {
  auto *data = tensor.mutable_data_as<std::byte>();
  switch (tensor::size_bytes(tensor.dtype())) {
    case 2:
      return swap_words<uint16_t>(data, tensor.elements());
    case 4:
      return swap_words<uint32_t>(data, tensor.elements());
    case 8:
      return swap_words<uint64_t>(data, tensor.elements());
    default:
      return;
  }
}

}  // namespace

Result<Tensor> decode_idx(std::string_view bytes, std::string_view name) {
  TUTTI_ASSIGN(Content content, Content::open(bytes, name));
  TUTTI_ASSIGN(const IdxHeader header, read_header(content));
  const int64_t size = header.shape.elements() * static_cast<int64_t>(tensor::size_bytes(header.dtype));
  if (size > content.most_left()) {
    return content.corrupt(base::concat("expected ", size, " bytes for ", header.dtype, header.shape,
                                        ", the file can hold at most ", content.most_left()));
  }
  if (content.is_compressed() && size > kMostInflatedBytes) {
    return content.corrupt(base::concat("expected at most ", kMostInflatedBytes, " bytes in a compressed file, got ",
                                        size, " for ", header.dtype, header.shape,
                                        "; a larger one must not be compressed"));
  }
  TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(header.dtype, header.shape));
  TUTTI_TRY(content.read(tensor.mutable_data(), size, "elements"));
  TUTTI_TRY(content.expect_end());
  to_native(tensor);
  return tensor;
}

Result<Tensor> read_idx(const std::string &path, const FileSystems *systems,
                        const base::Ref<base::CancelToken> &cancel) {
  TUTTI_ASSIGN(const base::Ref<const ReadableFile> file, open_file(path, systems, cancel));
  TUTTI_ASSIGN(const base::Ref<tensor::Buffer> contents, file->contents());
  return decode_idx({static_cast<const char *>(contents->data()), static_cast<size_t>(contents->size_bytes())}, path);
}

Result<DatasetRef> from_idx_files(const std::vector<IdxFile> &files, const FileSystems *systems,
                                  const base::Ref<base::CancelToken> &cancel) {
  std::vector<NamedTensor> tensors;
  for (const IdxFile &file : files) {
    TUTTI_ASSIGN(Tensor tensor, read_idx(file.path, systems, cancel));
    tensors.push_back({file.name, std::move(tensor), file.role});
  }
  // The elements of several files came from none of them alone.
  if (files.size() != 1) return from_slices(std::move(tensors));
  return from_slices(std::move(tensors), {std::make_shared<const std::string>(files[0].path)});
}

}  // namespace tutti::impl::data
