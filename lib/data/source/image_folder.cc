// SPDX-License-Identifier: Apache-2.0
//
// A directory with one directory of files for each class; what lies in directories below that belongs to the class.
// Classes are numbered, and files ordered, by name.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "data/dataset/stage.h"
#include "data/dataset/walk_report.h"
#include "data/file/file_system.h"
#include "data/source_parameters.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

struct ClassFile {
  std::string path;
  int32_t label;
};

struct ImageFolder {
  std::vector<ClassFile> files;
  std::vector<std::string> classes;
  Ref<const FileSystems> file_systems;
  bool gives_contents = true, gives_class = false;
};

// A file on its way into a text. What has come stays there when an interrupt ends the call.
class FileText {
 public:
  explicit FileText(Ref<const ReadableFile> file) : file_(std::move(file)) {}

  Result<Tensor> read() {
    const auto size = static_cast<size_t>(file_->size_bytes());
    if (buffer_ == nullptr) {
      TUTTI_ASSIGN(buffer_, tensor::Buffer::allocate(16 + file_->size_bytes()));
    }
    char *const begin = static_cast<char *>(buffer_->data()) + 16;
    for (size_t got = 1; got > 0 && done_ < size; done_ += got) {
      TUTTI_ASSIGN(got, file_->read_at(static_cast<int64_t>(done_), {begin + done_, size - done_}));
    }
    auto *const offsets = static_cast<int64_t *>(buffer_->data());
    offsets[0] = 16;
    offsets[1] = 16 + static_cast<int64_t>(done_);
    return Tensor::from_buffer(tensor::DType::bytes, {}, std::move(buffer_));
  }

 private:
  const Ref<const ReadableFile> file_;
  Ref<tensor::Buffer> buffer_;
  size_t done_ = 0;
};

class ImageFolderAccess : public RandomAccess {
 public:
  ImageFolderAccess(std::shared_ptr<const ImageFolder> folder, Ref<base::CancelToken> cancel)
      : folder_(std::move(folder)), cancel_(std::move(cancel)) {}

  int64_t size() const override { return static_cast<int64_t>(folder_->files.size()); }
  int64_t lineage(int64_t position) const override { return position; }
  FileName file(int64_t position) const override {
    return {folder_, &folder_->files[static_cast<size_t>(position)].path};
  }
  Status gather(std::span<int64_t>, std::span<const RowTarget>) override {
    return base::internal_error("rows of files of any size");
  }
  Status element(int64_t position, Element &element) override {
    const ClassFile &file = folder_->files[static_cast<size_t>(position)];
    element.components.resize(folder_->gives_class ? 3 : 2);
    if (folder_->gives_contents) {
      TUTTI_ASSIGN(element.components[0], contents_of(position));
    } else {
      TUTTI_ASSIGN(element.components[0], tensor::make_bytes_tensor({}, {file.path}));
    }
    TUTTI_ASSIGN(element.components[1], Tensor::scalar(file.label));
    if (!folder_->gives_class) return Status();
    TUTTI_ASSIGN(element.components[2],
                 tensor::make_bytes_tensor({}, {folder_->classes[static_cast<size_t>(file.label)]}));
    return Status();
  }

 private:
  Result<Tensor> contents_of(int64_t position) {
    if (!begun_ || begun_position_ != position) {
      begun_.reset();
      const std::string &path = folder_->files[static_cast<size_t>(position)].path;
      TUTTI_ASSIGN(Ref<const ReadableFile> file, open_file(path, folder_->file_systems.get(), cancel_));
      begun_.emplace(std::move(file));
      begun_position_ = position;
    }
    Result<Tensor> text = begun_->read();
    if (!base::is_interrupt(text.status())) begun_.reset();
    return text;
  }

  const std::shared_ptr<const ImageFolder> folder_;
  const Ref<base::CancelToken> cancel_;
  std::optional<FileText> begun_;
  int64_t begun_position_ = 0;
};

class ImageFolderDataset : public Dataset {
 public:
  ImageFolderDataset(ElementSpec spec, ImageFolder folder)
      : Dataset("image_folder", std::move(spec), Cardinality::exactly(static_cast<int64_t>(folder.files.size())), {}),
        folder_(std::make_shared<const ImageFolder>(std::move(folder))) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return open_indexed(*this, context);
  }
  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access) const override {
    return named(context, *this, std::make_unique<ImageFolderAccess>(folder_, context.cancel));
  }

 private:
  const std::shared_ptr<const ImageFolder> folder_;
};

// In small letters, without the dot; empty when there is none.
std::string extension_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return small_letters(dot == std::string_view::npos ? "" : name.substr(dot + 1));
}

// Files that are none of the source, by what they are.
class LeftOut {
 public:
  void add(std::string what, const std::string &path) {
    auto &[count, example] = kinds_[std::move(what)];
    if (count++ == 0) example = path;
    ++files_;
  }
  int64_t files() const { return files_; }
  // "3 bmp, 1 without a kind and 17 more", with the path of the first of each.
  std::string describe(bool with_examples) const {
    constexpr size_t kMost = 8;
    std::vector<std::string> texts;
    int64_t more = files_;
    for (const auto &[kind, found] : kinds_) {
      if (texts.size() == kMost) break;
      texts.push_back(base::concat(found.count, " ", kind.empty() ? "without an extension" : kind));
      if (with_examples) texts.back() += base::concat(" (", base::quoted(found.example, 400), ")");
      more -= found.count;
    }
    return base::concat(base::join(texts, ", "), more > 0 ? base::concat(" and ", more, " more") : "");
  }

 private:
  struct Found {
    int64_t count = 0;
    std::string example;
  };
  std::map<std::string, Found> kinds_;
  int64_t files_ = 0;
};

// What programs that show folders leave in them.
bool is_hidden(const std::string &name) {
  return name.starts_with('.') || name == "Thumbs.db" || name == "desktop.ini" || name == "__MACOSX";
}

// Finds the files of all classes.
class FolderWalk {
 public:
  FolderWalk(const ImageFolderParameters &parameters, const FileSystem &system)
      : system_(system), cancel_(parameters.cancel), extensions_(parameters.extensions) {
    if (extensions_.empty()) extensions_ = {"jpg", "jpeg", "png"};  // what decode_image reads
  }

  Status walk(const std::string &path) {
    TUTTI_ASSIGN(const std::vector<FileSystem::Entry> entries, system_.list(path, cancel_));
    above_ = {system_.identity(path)};
    for (const FileSystem::Entry &entry : entries) {
      if (is_hidden(entry.name)) continue;
      const std::string inner = join_path(path, entry.name);
      if (!entry.is_directory) {
        left_out.add("outside of the class directories", inner);
        continue;
      }
      TUTTI_TRY(walk_class(inner));
      classes.push_back(entry.name);
    }
    return Status();
  }
  const std::vector<std::string> &extensions() const { return extensions_; }

  std::vector<ClassFile> files;
  std::vector<std::string> classes;
  LeftOut left_out;

 private:
  // Files first, then what lies deeper.
  Status walk_class(const std::string &path) {
    above_.push_back(system_.identity(path));
    TUTTI_ASSIGN(const std::vector<FileSystem::Entry> entries, system_.list(path, cancel_));
    for (const FileSystem::Entry &entry : entries) {
      if (!entry.is_directory && !is_hidden(entry.name)) add(entry.name, join_path(path, entry.name));
    }
    for (const FileSystem::Entry &entry : entries) {
      if (!entry.is_directory || is_hidden(entry.name)) continue;
      const std::string inner = join_path(path, entry.name);
      if (std::find(above_.begin(), above_.end(), system_.identity(inner)) != above_.end()) {
        left_out.add("links to a directory above", inner);
      } else {
        TUTTI_TRY(walk_class(inner));
      }
    }
    above_.pop_back();
    return Status();
  }
  void add(const std::string &name, std::string path) {
    std::string extension = extension_of(name);
    if (std::find(extensions_.begin(), extensions_.end(), extension) == extensions_.end()) {
      left_out.add(std::move(extension), path);
    } else {
      files.push_back({std::move(path), static_cast<int32_t>(classes.size())});
    }
  }

  const FileSystem &system_;
  const Ref<base::CancelToken> cancel_;
  std::vector<std::string> extensions_;
  std::vector<std::string> above_;  // identities of the directories on the way
};

}  // namespace

Result<DatasetRef> make_image_folder(const ImageFolderParameters &parameters) {
  TUTTI_ASSIGN(const std::shared_ptr<const FileSystem> system,
               file_system_of(parameters.path, parameters.file_systems.get()));
  FolderWalk found(parameters, *system);
  TUTTI_TRY(found.walk(parameters.path));
  if (found.files.empty()) {
    return base::not_found(
        "expected files with the extensions ", base::join(found.extensions(), ", "), " in the directories of ",
        base::quoted(parameters.path, 400), "; there are ", found.classes.size(), " directories with ",
        found.left_out.files() > 0 ? base::concat("the files ", found.left_out.describe(false)) : "no files");
  }
  if (found.left_out.files() > 0 && parameters.logger) {
    parameters.logger->warning("image_folder ", base::quoted(parameters.path, 400), " takes files with the extensions ",
                               base::join(found.extensions(), ", "),
                               " and leaves out: ", found.left_out.describe(true));
  }
  ImageFolder folder{std::move(found.files), std::move(found.classes), parameters.file_systems, parameters.contents,
                     !parameters.class_name.empty()};
  ElementSpec spec{{{parameters.contents ? "image" : "path", Role::feature, tensor::DType::bytes, {}},
                    {"label", Role::label, tensor::DType::i32, {}}}};
  if (folder.gives_class) spec.components.push_back({parameters.class_name, Role::feature, tensor::DType::bytes, {}});
  TUTTI_TRY(check(spec));
  return DatasetRef(base::make_ref<ImageFolderDataset>(std::move(spec), std::move(folder)));
}

}  // namespace tutti::impl::data
