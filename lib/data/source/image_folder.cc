// SPDX-License-Identifier: Apache-2.0
//
// A directory with one directory of files for each class. Classes are numbered, and files ordered, by name.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "data/file_system.h"
#include "data/source_parameters.h"
#include "data/stage.h"
#include "data/walk_report.h"
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
  std::string extension(dot == std::string_view::npos ? "" : name.substr(dot + 1));
  for (char &c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return extension;
}

// "3 bmp, 1 without a kind and 17 more".
std::string describe(const std::map<std::string, int64_t> &kinds) {
  constexpr size_t kMost = 8;
  std::vector<std::string> texts;
  int64_t more = 0;
  for (const auto &[kind, count] : kinds) {
    if (texts.size() < kMost) {
      texts.push_back(base::concat(count, " ", kind.empty() ? "without a kind" : kind));
    } else {
      more += count;
    }
  }
  if (texts.empty()) return "no files";
  return base::concat("the files ", base::join(texts, ", "), more > 0 ? base::concat(" and ", more, " more") : "");
}

}  // namespace

Result<DatasetRef> make_image_folder(const ImageFolderParameters &parameters) {
  TUTTI_ASSIGN(const std::shared_ptr<const FileSystem> system,
               file_system_of(parameters.path, parameters.file_systems.get()));
  std::vector<std::string> extensions = parameters.extensions;
  if (extensions.empty()) extensions = {"jpg", "jpeg", "png"};  // what decode_image reads
  std::map<std::string, int64_t> left_out;
  ImageFolder folder;
  folder.file_systems = parameters.file_systems;
  folder.gives_contents = parameters.contents;
  folder.gives_class = !parameters.class_name.empty();
  TUTTI_ASSIGN(const std::vector<FileSystem::Entry> entries, system->list(parameters.path, parameters.cancel));
  for (const FileSystem::Entry &entry : entries) {
    if (!entry.is_directory || entry.name.starts_with('.')) continue;
    const std::string directory = join_path(parameters.path, entry.name);
    TUTTI_ASSIGN(const std::vector<FileSystem::Entry> files, system->list(directory, parameters.cancel));
    for (const FileSystem::Entry &file : files) {
      if (file.is_directory || file.name.starts_with('.')) continue;
      const std::string extension = extension_of(file.name);
      if (std::find(extensions.begin(), extensions.end(), extension) == extensions.end()) {
        ++left_out[extension];
        continue;
      }
      folder.files.push_back({join_path(directory, file.name), static_cast<int32_t>(folder.classes.size())});
    }
    folder.classes.push_back(entry.name);
  }
  if (folder.files.empty()) {
    return base::not_found("expected files of the kinds ", base::join(extensions, ", "), " in the directories of ",
                           base::quoted(parameters.path, 400), "; there are ", folder.classes.size(),
                           " directories with ", describe(left_out));
  }
  ElementSpec spec{{{parameters.contents ? "image" : "path", Role::feature, tensor::DType::bytes, {}},
                    {"label", Role::label, tensor::DType::i32, {}}}};
  if (folder.gives_class) spec.components.push_back({parameters.class_name, Role::feature, tensor::DType::bytes, {}});
  TUTTI_TRY(check(spec));
  return DatasetRef(base::make_ref<ImageFolderDataset>(std::move(spec), std::move(folder)));
}

}  // namespace tutti::impl::data
