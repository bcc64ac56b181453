// SPDX-License-Identifier: Apache-2.0
#include "data/keep/cache_contents.h"

#include <mutex>
#include <optional>
#include <utility>

#include "base/file.h"
#include "data/keep/element_file.h"
#include "data/keep/memory_store.h"
#include "data/pipeline/fingerprint.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::Ref;
using base::Result;
using base::Status;

namespace {

using Store = std::shared_ptr<const ElementStore>;

// One complete pass; the last seed wins.
class MemoryContents : public CacheContents {
 public:
  explicit MemoryContents(const ElementSpec &spec) : spec_(spec) {}

  Result<Store> find(int64_t seed) override {
    std::lock_guard lock(mutex_);
    return seed_ == seed ? kept_ : nullptr;
  }
  Result<std::unique_ptr<ElementStoreWriter>> fill(int64_t seed, const Ref<CancelToken> &) override {
    return std::unique_ptr<ElementStoreWriter>(std::make_unique<Writer>(*this, seed));
  }

 private:
  class Writer : public ElementStoreWriter {
   public:
    Writer(MemoryContents &contents, int64_t seed)
        : contents_(contents), seed_(seed), kept_(std::make_shared<MemoryStore>(contents.spec_)) {}

    Status add(const Element &element) override { return kept_->add(element); }
    void add_failure(const Status &status) override { kept_->add_failure(status); }
    Result<Store> finish() override {
      // Elements that failed may succeed another time.
      if (!kept_->has_failures()) {
        std::lock_guard lock(contents_.mutex_);
        contents_.seed_ = seed_;
        contents_.kept_ = kept_;
      }
      return Store(std::move(kept_));
    }

   private:
    MemoryContents &contents_;
    const int64_t seed_;
    std::shared_ptr<MemoryStore> kept_;
  };

  const ElementSpec spec_;
  std::mutex mutex_;
  int64_t seed_ = 0;  // guarded by mutex_
  Store kept_;        // guarded by mutex_
};

std::string hexadecimal(uint64_t number) {
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; number >>= 4)
    text[i] = "0123456789abcdef"[number & 15];
  return text;
}

class FileContents : public CacheContents {
 public:
  FileContents(DatasetRef input, ElementFilePlace place, const Fingerprint &fingerprint)
      : input_(std::move(input)), place_(std::move(place)), fingerprint_(fingerprint) {}

  Result<Store> find(int64_t seed) override {
    const std::string fingerprint = fingerprint_for(seed);
    std::lock_guard lock(mutex_);
    if (file_ == nullptr || file_->fingerprint() != fingerprint) {
      TUTTI_ASSIGN(file_, open(fingerprint));
    }
    return Store(file_);
  }
  Result<std::unique_ptr<ElementStoreWriter>> fill(int64_t seed, const Ref<CancelToken> &cancel) override {
    const std::string fingerprint = fingerprint_for(seed);
    if (place_.is_folder) TUTTI_TRY(base::make_directories(place_.path));
    TUTTI_ASSIGN(ElementFileWriter file, ElementFileWriter::create(path_for(fingerprint), input_->spec(), fingerprint));
    return std::unique_ptr<ElementStoreWriter>(std::make_unique<Writer>(*this, std::move(file), seed, cancel));
  }

 private:
  class Writer : public ElementStoreWriter {
   public:
    Writer(FileContents &contents, ElementFileWriter file, int64_t seed, const Ref<CancelToken> &cancel)
        : contents_(contents), file_(std::move(file)), seed_(seed), cancel_(cancel) {}

    Status add(const Element &element) override {
      if (!file_) return Status();
      const Status status = file_->add(element);
      if (!status.ok()) file_.reset();
      return status;
    }
    // Such a pass is not kept; what is written is of no use any more.
    void add_failure(const Status &) override { file_.reset(); }
    Result<Store> finish() override {
      if (!file_) return Store();
      TUTTI_TRY(contents_.check_unchanged(cancel_));
      TUTTI_TRY(file_->commit());
      file_.reset();
      return contents_.find(seed_);
    }

   private:
    FileContents &contents_;
    std::optional<ElementFileWriter> file_;  // nothing when it is given up
    const int64_t seed_;
    const Ref<CancelToken> cancel_;
  };

  std::string fingerprint_for(int64_t seed) const {
    std::string text = hexadecimal(fingerprint_.value());
    if (fingerprint_.uses_seed()) text += base::concat("-", seed);
    return text;
  }
  std::string path_for(const std::string &fingerprint) const {
    return place_.is_folder ? base::concat(place_.path, "/", fingerprint, ".elements") : place_.path;
  }
  // Null when there is none, or what there is belongs to another pipeline.
  Result<std::shared_ptr<const ElementFile>> open(const std::string &fingerprint) const {
    const std::string path = path_for(fingerprint);
    Result<std::shared_ptr<const ElementFile>> file = ElementFile::open(path);
    if (file.ok()) {
      const bool fits = (*file)->fingerprint() == fingerprint && (*file)->spec() == input_->spec();
      return fits ? file.take() : nullptr;
    }
    if (file.code() == base::Code::not_found || file.code() == base::Code::unimplemented)
      return std::shared_ptr<const ElementFile>();
    if (file.code() != base::Code::failed_precondition) return file;
    return file.status().wrap("the path of a cache must not exist yet or be an element file");
  }
  Status check_unchanged(const Ref<CancelToken> &cancel) const {
    TUTTI_ASSIGN(Fingerprint now, fingerprint_of(*input_, cancel));
    now.add(place_.key);
    if (now.value() == fingerprint_.value()) return Status();
    return base::failed_precondition("files that the pipeline reads have changed while ",
                                     base::quoted(place_.path, 400), " was being filled; the cache is discarded");
  }

  const DatasetRef input_;
  const ElementFilePlace place_;
  const Fingerprint fingerprint_;
  std::mutex mutex_;
  std::shared_ptr<const ElementFile> file_;  // guarded by mutex_; the one used last
};

}  // namespace

std::unique_ptr<CacheContents> make_memory_contents(const ElementSpec &spec) {
  return std::make_unique<MemoryContents>(spec);
}

Result<std::unique_ptr<CacheContents>> make_file_contents(const DatasetRef &input, ElementFilePlace place,
                                                          const Ref<CancelToken> &cancel) {
  if (place.path.empty()) return base::invalid_argument("parameter 'path': expected a path, got nothing");
  if (place.path.find("://") != std::string::npos) {
    return base::unimplemented("parameter 'path': ", base::quoted(place.path, 400), " is not a file of this machine");
  }
  TUTTI_ASSIGN(Fingerprint fingerprint, fingerprint_of(*input, cancel));
  if (fingerprint.has_unknown() && place.key.empty()) {
    return base::invalid_argument("changes in the results of '", fingerprint.unknown(),
                                  "' cannot be detected; set the parameter 'key' to a text that you change "
                                  "whenever they change");
  }
  fingerprint.add(place.key);
  return std::unique_ptr<CacheContents>(std::make_unique<FileContents>(input, std::move(place), fingerprint));
}

}  // namespace tutti::impl::data
