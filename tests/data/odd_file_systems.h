// SPDX-License-Identifier: Apache-2.0
//
// File systems that give the machine's own files in odd ways: "short:///tmp/a" a few bytes at a time, "uneven:///tmp/a"
// up to some thousand, "late:///tmp/a" only after it has been asked again and again.
#ifndef TUTTI_TESTS_DATA_ODD_FILE_SYSTEMS_H_
#define TUTTI_TESTS_DATA_ODD_FILE_SYSTEMS_H_

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "data/file/file_system.h"
#include "testing.h"

namespace tutti::testing {

class OddFileSystem : public impl::data::FileSystem {
 public:
  using FileRef = impl::base::Ref<const impl::data::ReadableFile>;
  using Token = impl::base::Ref<impl::base::CancelToken>;

  /// Gives at most `most_bytes` at a time; a late one, all of them.
  OddFileSystem(std::string scheme, bool is_late, int64_t most_bytes = 5)
      : scheme_(std::move(scheme)), is_late_(is_late), most_bytes_(most_bytes) {}

  impl::base::Result<FileRef> open(const std::string &path, const Token &cancel) const override {
    if (cancel != nullptr) TUTTI_TRY(perhaps_late());
    TUTTI_ASSIGN(FileRef file, impl::data::open_file(local(path)));
    return FileRef(impl::base::make_ref<File>(*this, path, std::move(file), cancel != nullptr));
  }
  impl::base::Result<std::vector<Entry>> list(const std::string &directory, const Token &cancel) const override {
    TUTTI_ASSIGN(const auto system, impl::data::file_system_of("/", nullptr));
    return system->list(local(directory), cancel);
  }

 private:
  class File : public impl::data::ReadableFile {
   public:
    File(const OddFileSystem &system, std::string path, FileRef file, bool is_in_walk)
        : ReadableFile(std::move(path)), system_(system), file_(std::move(file)), is_in_walk_(is_in_walk) {}
    int64_t size_bytes() const override { return file_->size_bytes(); }
    impl::base::Result<size_t> read_at(int64_t offset, std::span<char> target) const override {
      if (system_.is_late_) {
        if (is_in_walk_) TUTTI_TRY(system_.perhaps_late());
        return file_->read_at(offset, target);
      }
      const auto most = static_cast<size_t>(system_.calls_++ * 1009 % system_.most_bytes_ + 1);
      return file_->read_at(offset, target.subspan(0, std::min(most, target.size())));
    }

   private:
    const OddFileSystem &system_;
    const FileRef file_;
    const bool is_in_walk_;
  };

  std::string local(const std::string &path) const { return path.substr(scheme_.size() + 3); }
  // An interrupt, as a token's deadline would cause it, in one call of three, in no regular order.
  impl::base::Status perhaps_late() const {
    const auto call = static_cast<uint64_t>(calls_++);
    if (!is_late_ || (call * 0x9e3779b97f4a7c15u >> 40) % 3 != 0) return {};
    return impl::base::CancelToken::create(impl::base::Deadline::after_ms(0))->check();
  }

  const std::string scheme_;
  const bool is_late_;
  const int64_t most_bytes_;
  mutable std::atomic<int64_t> calls_{0};
};

inline impl::base::Ref<const impl::data::FileSystems> odd_file_systems() {
  auto systems = impl::base::make_ref<impl::data::FileSystems>();
  assert_ok(systems->add("short", std::make_shared<OddFileSystem>("short", false)));
  assert_ok(systems->add("uneven", std::make_shared<OddFileSystem>("uneven", false, 9973)));
  assert_ok(systems->add("late", std::make_shared<OddFileSystem>("late", true)));
  return systems;
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DATA_ODD_FILE_SYSTEMS_H_
