// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/file_stage.h"

#include <utility>

#include "base/hash/checksum.h"
#include "data/thread/worker_threads.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::JsonReader;
using base::Ref;
using base::Result;
using base::Status;

namespace {

class FileDataset : public Dataset {
 public:
  FileDataset(const char *kind, ElementSpec spec, FileList files,
              std::function<std::unique_ptr<FileReader>()> make_reader)
      : Dataset(kind, std::move(spec), Cardinality::unknown(), {}),
        kind_(kind),
        files_(std::move(files)),
        make_reader_(std::move(make_reader)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return std::unique_ptr<Stage>(std::make_unique<FileStage>(kind_, files_, make_reader_(), context));
  }

  int64_t file_count() const override { return static_cast<int64_t>(files_.paths.size()); }
  Result<DatasetRef> with_files(const std::vector<int64_t> &files) const override {
    FileList some = files_;
    some.paths.clear();
    for (const int64_t file : files)
      some.paths.push_back(files_.paths.at(static_cast<size_t>(file)));
    return DatasetRef(base::make_ref<FileDataset>(kind_, spec(), std::move(some), make_reader_));
  }

 private:
  const char *const kind_;
  const FileList files_;
  const std::function<std::unique_ptr<FileReader>()> make_reader_;
};

}  // namespace

Result<FileList> FileList::make(const std::vector<std::string> &paths, const std::string &compression,
                                const SourceServices &services) {
  FileList list;
  TUTTI_ASSIGN(list.compression, parse_compression(compression));
  list.file_systems = services.file_systems;
  const FileSystems *const systems = services.file_systems.get();
  if (paths.empty()) return expand_paths(paths, systems, services.cancel).status();
  for (const std::string &path : paths) {
    TUTTI_ASSIGN(const std::vector<std::string> found, expand_paths({path}, systems, services.cancel));
    // What cannot be opened at all is told at once. What a pattern has found is there: of a long list, a worker that
    // reads some files opens no others.
    const bool is_pattern = found.size() != 1 || found.front() != path;
    if (!is_pattern) TUTTI_TRY(check_file(path, systems, services.cancel));
    list.paths.insert(list.paths.end(), found.begin(), found.end());
  }
  return list;
}

int64_t FileList::fingerprint() const {
  uint64_t hash = base::kFnvStart;
  for (const std::string &path : paths)
    hash = base::fnv1a64(path, base::fnv1a64(path.size(), hash));
  return static_cast<int64_t>(hash >> 1);
}

template <typename Read>
Result<bool> FileStage::step(Read read) {
  TUTTI_TRY(base::check(cancel_.get()));
  while (file_ < files_.paths.size()) {
    if (!stream_) {
      if (Status status = open(); !status.ok()) {
        if (!base::is_interrupt(status)) return fail(std::move(status), false);
        close();  // offset_ and place_ still say where to go
        return status;
      }
    }
    const int64_t offset = stream_->offset(), place = reader_->place();
    Result<bool> more = read();
    if (base::is_interrupt(more.status())) return interrupted(more.status(), offset, place);
    if (!more.ok()) return fail(more.status(), !stream_->has_failed() && reader_->can_go_on());
    if (*more) {
      ++position_;
      return true;
    }
    leave_file();
  }
  return false;
}

Result<bool> FileStage::next(Element &element) {
  return step([&] {
    element.lineage = {epoch_, position_, name_};
    return reader_->read(*stream_, element);
  });
}

Status FileStage::next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) {
  if (!reader_->has_rows()) return Stage::next_rows(targets, count, done);
  for (done = 0; done < count;) {
    const Result<bool> more = step([&] { return reader_->read_row(*stream_, targets, done); });
    if (more.ok() && !*more) break;
    if (!base::is_interrupt(more.status())) ++done;
    TUTTI_TRY(more);
  }
  return Status();
}

Status FileStage::next_texts(BytesRows &rows, int64_t count, int64_t &done) {
  for (done = 0; done < count;) {
    const Result<bool> more = step([&] { return reader_->read_text(*stream_, rows); });
    if (more.ok() && !*more) break;
    if (!base::is_interrupt(more.status())) ++done;
    TUTTI_TRY(more);
  }
  return Status();
}

Status FileStage::open() {
  // The stream's own token ends what its thread waits for when nobody needs it any more.
  Ref<CancelToken> token = CancelToken::create_child(cancel_);
  TUTTI_ASSIGN(Ref<const ReadableFile> file, open_file(files_.paths[file_], files_.file_systems.get(), token));
  TUTTI_ASSIGN(ByteStream stream, files_.open(std::move(file), files_.compression));
  stream_.emplace(std::move(stream));
  stream_->limit_records(files_.maximum_record_bytes);
  name_ = std::make_shared<const std::string>(files_.paths[file_]);
  TUTTI_TRY(reader_->begin(*stream_));
  if (offset_ > 0) {
    TUTTI_TRY(reader_->move_to(*stream_, offset_));
    reader_->set_place(place_);
  }
  read_ahead(std::move(token));
  return Status();
}

// Without a thread for it the stream reads as it did.
void FileStage::read_ahead(Ref<CancelToken> token) {
  if (workers_ == nullptr || !stream_->is_worth_reading_ahead() || !workers_->take_reader()) return;
  has_reader_ = true;
  (void)stream_->read_ahead(std::move(token));
}

void FileStage::close() {
  stream_.reset();
  if (has_reader_) workers_->give_back_reader();
  has_reader_ = false;
}

// The failing element is consumed.
Status FileStage::fail(Status status, bool goes_on) {
  status = in_element(status, {epoch_, position_, std::make_shared<const std::string>(files_.paths[file_])});
  ++position_;
  if (!goes_on) leave_file();
  return status;
}

// Nothing is consumed. A stream that stands where the element began can go on; another one is opened there again.
Status FileStage::interrupted(Status status, int64_t offset, int64_t place) {
  if (stream_->offset() == offset) {
    reader_->set_place(place);
    return status;
  }
  close();
  offset_ = offset;
  place_ = place;
  return status;
}

void FileStage::leave_file() {
  close();
  ++file_;
  offset_ = place_ = 0;
}

void FileStage::save(State &state) const {
  state.open(kind_);
  state.number("files", files_.fingerprint());
  state.number("file", static_cast<int64_t>(file_));
  state.number("offset", stream_ ? stream_->offset() : offset_);
  state.number("place", stream_ ? reader_->place() : place_);
  state.number("position", position_);
  state.close();
}

Status FileStage::restore(const JsonReader &state) {
  TUTTI_TRY(expect_kind(state, kind_));
  TUTTI_ASSIGN(const int64_t fingerprint, saved_count(state, "files"));
  if (fingerprint != files_.fingerprint()) {
    return base::invalid_argument(state.path(), ": the state was saved over another list of files");
  }
  TUTTI_ASSIGN(const int64_t file, saved_count(state, "file", 0, static_cast<int64_t>(files_.paths.size())));
  TUTTI_ASSIGN(offset_, saved_count(state, "offset"));
  TUTTI_ASSIGN(place_, saved_count(state, "place"));
  TUTTI_ASSIGN(position_, saved_count(state, "position"));
  file_ = static_cast<size_t>(file);
  return Status();
}

Result<DatasetRef> make_file_dataset(const char *kind, ElementSpec spec, FileList files,
                                     std::function<std::unique_ptr<FileReader>()> make_reader) {
  TUTTI_TRY(check(spec));
  return DatasetRef(base::make_ref<FileDataset>(kind, std::move(spec), std::move(files), std::move(make_reader)));
}

}  // namespace tutti::impl::data
