// SPDX-License-Identifier: Apache-2.0
//
// FileStage: walks over the elements of files, one file after the other. What a format adds is how to read one element
// from a stream (FileReader); order, positions, save and restore, and what happens after an error are the same for all.
//
// Position: the file and the offset in it, so a restored walk opens one file and goes there. Errors: an element that
// fails is consumed, and the walk goes on where the reader left the stream; when the stream or the reader can go no
// further, with the next file. A file that cannot be opened is one failing element. An interrupt takes the walk back to
// where the element began; what lies in the stream's buffer by then stays there.
//
// A file of some size is read by a thread of its own while its elements are made (ByteStream::read_ahead()), as far as
// the budget of threads allows.
//
// Threads: as for Stage.
#ifndef TUTTI_DATA_PIPELINE_FILE_STAGE_H_
#define TUTTI_DATA_PIPELINE_FILE_STAGE_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "data/dataset/stage.h"
#include "data/element/bytes_rows.h"
#include "data/file/byte_stream.h"
#include "data/pipeline/pipeline.h"

namespace tutti::impl::data {

/// How a format reads the elements of one file after the other.
class FileReader {
 public:
  virtual ~FileReader() = default;

  /// At the beginning of a file: reads what precedes the elements.
  virtual base::Status begin(ByteStream &) { return base::Status(); }
  /// After begin(): goes to an offset where a walk before this one stood.
  virtual base::Status move_to(ByteStream &stream, int64_t offset) { return stream.move_to(offset); }
  /// The next element; false at the end of the file. Errors name file and offset or line.
  virtual base::Result<bool> read(ByteStream &stream, Element &element) = 0;
  /// The same as row `row` of buffers, for a spec that is static; only where has_rows() says so.
  virtual base::Result<bool> read_row(ByteStream &, std::span<const RowTarget>, int64_t) { return false; }
  virtual bool has_rows() const { return false; }
  /// The same as one more of `rows`, for elements that are one text; only where has_texts() says so.
  virtual base::Result<bool> read_text(ByteStream &, BytesRows &) { return false; }
  virtual bool has_texts() const { return false; }
  /// After an error: can reading go on where the stream stands?
  virtual bool can_go_on() const { return true; }
  /// The number of the line, or the like, that belongs to the stream's offset; saved with it.
  virtual int64_t place() const { return 0; }
  /// Called after move_to(), when the stream stands at an offset where place() was this.
  virtual void set_place(int64_t) {}
};

/// The files of a source and how to open them.
struct FileList {
  std::vector<std::string> paths;
  base::Ref<const FileSystems> file_systems;
  Compression compression = Compression::automatic;
  /// Of compressed files (ByteStream::limit_records()).
  int64_t maximum_record_bytes = INT64_MAX / 2;
  /// Where the compression is to be told from the contents by other means than Compression::automatic.
  base::Result<ByteStream> (*open)(base::Ref<const ReadableFile> file, Compression compression) = ByteStream::open;

  /// Expands patterns (file_system.h), looks for the files that are named, and reads the name of the compression.
  static base::Result<FileList> make(const std::vector<std::string> &paths, const std::string &compression,
                                     const SourceServices &services);
  /// Differs, most likely, between different lists.
  int64_t fingerprint() const;
};

class FileStage : public Stage {
 public:
  /// `kind` is a literal; `files` is the dataset's.
  FileStage(const char *kind, const FileList &files, std::unique_ptr<FileReader> reader, const IteratorContext &context)
      : kind_(kind),
        files_(files),
        reader_(std::move(reader)),
        cancel_(context.cancel),
        workers_(context.workers),
        epoch_(context.epoch) {}
  ~FileStage() override { close(); }

  base::Result<bool> next(Element &element) final;
  base::Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) final;
  Lineage last_row() const final { return {epoch_, position_ - 1, name_}; }
  bool gives_texts() const final { return reader_->has_texts(); }
  base::Status next_texts(BytesRows &rows, int64_t count, int64_t &done) final;
  void save(State &state) const final;
  base::Status restore(const base::JsonReader &state) final;

 private:
  /// Calls read(), which reads one element from the stream, on file after file until there is one.
  template <typename Read>
  base::Result<bool> step(Read read);
  base::Status open();
  void read_ahead(base::Ref<base::CancelToken> token);
  void close();
  base::Status fail(base::Status status, bool goes_on);
  base::Status interrupted(base::Status status, int64_t offset, int64_t place);
  void leave_file();

  const char *const kind_;
  const FileList &files_;
  const std::unique_ptr<FileReader> reader_;
  const base::Ref<base::CancelToken> cancel_;
  const std::shared_ptr<WorkerThreads> workers_;
  const int64_t epoch_;
  std::optional<ByteStream> stream_;  // of the file, once it is needed
  bool has_reader_ = false;           // a thread of the budget, for the stream
  size_t file_ = 0;
  FileName name_;                   // of the file, as long as there is a stream
  int64_t offset_ = 0, place_ = 0;  // in the file, as long as there is no stream
  int64_t position_ = 0;            // elements given out
};

/// A dataset whose stage is a FileStage. `make_reader` is called once for each walk.
base::Result<DatasetRef> make_file_dataset(const char *kind, ElementSpec spec, FileList files,
                                           std::function<std::unique_ptr<FileReader>()> make_reader);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_FILE_STAGE_H_
