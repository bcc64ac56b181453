// SPDX-License-Identifier: Apache-2.0
//
// Element files: the elements of a dataset as they are in memory, so that reading them is mapping the file and looking
// at it. What caches and snapshots write.
//
//   header   "TUTTIELM", u32 version, u32 bytes of a text, the text (JSON: spec, fingerprint, rows_per_block)
//   blocks   some elements each; every block begins at a multiple of 64
//   index    for each block: u64 offset, u64 bytes, u64 number of its first element, u32 elements, u32 CRC-32C
//   trailer  64 bytes: u64 offset of the index, u64 blocks, u64 elements, u32 CRC-32C of the header, u32 of the index,
//            zeros, u32 CRC-32C of the trailer before it, "TELM"
//
//   block of static shapes   the lineage of each element as i64; then for each component its rows, one after the other;
//                            each of these begins at a multiple of 64. All blocks but the last have rows_per_block
//   block of other shapes    the lineages; u64 offset of each element in the part behind these offsets, from which on
//                            it is; the elements: for each component its dims as i64, u64 bytes, and its values,
//                            which begin at a multiple of 16, from 1024 bytes on of 64. Texts are n + 1 offsets
//                            from where the values begin, and their bytes (tensor/bytes_tensor.h)
//
// Numbers are little-endian. The file is there complete or not at all (base::AtomicFile). A checksum is looked at when
// the block is read for the first time; a block that does not fit it is DATA_LOSS naming file and offset, and so is
// any count that the file cannot hold.
//
// Threads: an ElementFile is constant and may be read from any thread; a writer belongs to one thread at a time.
#ifndef TUTTI_DATA_KEEP_ELEMENT_FILE_H_
#define TUTTI_DATA_KEEP_ELEMENT_FILE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/object.h"
#include "base/status.h"
#include "data/element/element.h"
#include "data/keep/element_store.h"
#include "tensor/buffer.h"

namespace tutti::impl::data {

/// One block as the index has it.
struct ElementBlock {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t first = 0;  ///< number of its first element
  uint32_t count = 0;
  uint32_t checksum = 0;
};

class ElementFile : public ElementStore {
 public:
  /// Maps a file. NOT_FOUND when there is none, FAILED_PRECONDITION when it is something else, UNIMPLEMENTED when it is
  /// of another version, DATA_LOSS when it is damaged.
  static base::Result<std::shared_ptr<const ElementFile>> open(const std::string &path);
  /// The same of what is in memory; `path` is for errors. The memory begins at a multiple of 64.
  static base::Result<std::shared_ptr<const ElementFile>> decode(base::Ref<tensor::Buffer> contents, std::string path);

  const std::string &path() const { return path_; }
  const ElementSpec &spec() const { return spec_; }
  /// What the writer was told; a text.
  const std::string &fingerprint() const { return fingerprint_; }

  int64_t size() const override { return size_; }
  /// Of a damaged element the position.
  int64_t lineage(int64_t position) const override;
  base::Status element(int64_t position, Element &element) const override;
  base::Status gather(std::span<const int64_t> positions, std::span<const RowTarget> targets) const override;
  base::Status copy_rows(int64_t position, int64_t count, std::span<const RowTarget> targets) const override;
  bool view(int64_t position, int64_t count, Element &batch) const override;

 private:
  // Where a component lies in a block of static shapes.
  struct Column {
    tensor::DType dtype;
    tensor::Shape shape;
    int64_t row_bytes;
  };

  ElementFile() = default;
  base::Status read_structure();
  base::Status read_header(uint32_t expected_checksum, uint64_t &end);
  base::Status read_index(uint64_t offset, uint64_t blocks, uint64_t begin, uint32_t expected_checksum);
  base::Status check_block(const ElementBlock &block, bool is_last) const;
  base::Status corrupt(uint64_t offset, std::string_view what) const;

  const std::byte *data() const { return static_cast<const std::byte *>(contents_->data()); }
  const ElementBlock &block_of(int64_t position) const;
  /// Checks the block's checksum, once.
  base::Status verify(const ElementBlock &block) const;
  /// Offset in the file of row `row` of a column.
  uint64_t row_offset(const ElementBlock &block, size_t column, uint64_t row) const;
  base::Status varying_element(const ElementBlock &block, uint64_t row, Element &element) const;

  std::string path_;
  base::Ref<tensor::Buffer> contents_;
  ElementSpec spec_;
  std::string fingerprint_;
  bool is_static_ = false;
  int64_t size_ = 0;
  int64_t rows_per_block_ = 0;
  std::vector<Column> columns_;  // static shapes
  std::vector<ElementBlock> blocks_;
  std::unique_ptr<std::atomic<bool>[]> verified_;  // one for each block
};

class ElementFileWriter {
 public:
  /// Begins a file beside `path`. Nothing is at `path` before commit().
  static base::Result<ElementFileWriter> create(const std::string &path, const ElementSpec &spec,
                                                std::string_view fingerprint);

  /// INVALID_ARGUMENT when the element does not fit the spec.
  base::Status add(const Element &element);
  /// Puts the file into place, complete and synced. Once, and last.
  base::Status commit();
  int64_t elements() const { return elements_; }

 private:
  ElementFileWriter(base::AtomicFile file, ElementSpec spec);
  base::Status begin(std::string_view fingerprint);
  void add_row(const Element &element);
  void add_varying(const Element &element);
  base::Status flush();
  /// Writes and pads to a multiple of 64.
  base::Status append(const void *data, size_t size, uint32_t &checksum);

  base::AtomicFile file_;
  ElementSpec spec_;
  bool is_static_;
  std::vector<int64_t> row_bytes_;  // static shapes
  int64_t rows_per_block_ = 0;
  int64_t elements_ = 0;
  uint32_t header_checksum_ = 0;
  // The block being filled:
  std::vector<int64_t> lineages_;
  std::vector<std::string> rows_;  // static shapes: one for each component
  std::vector<uint64_t> offsets_;  // others: of each element in the part behind these
  std::string values_;             // and that part
  std::vector<ElementBlock> blocks_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_KEEP_ELEMENT_FILE_H_
