// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "base/temporary_directory.h"
#include "testing.h"

namespace file_test {

using namespace tutti::impl::base;
using tutti::testing::TemporaryDirectory;

namespace {

void whole_files(void **) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a", text("x\0y\n", 4);
  assert_ok(write_file_atomically(path, text));
  assert_true(assert_ok_value(read_file(path)) == text);
  assert_ok(write_file_atomically(path, ""));
  assert_true(assert_ok_value(read_file(path)).empty());
  assert_ok(write_file_synced(path, std::string(100000, 'z')));
  assert_int_equal(assert_ok_value(file_size_bytes(path)), 100000);
  assert_int_equal(assert_ok_value(read_file(path)).size(), 100000);
  assert_true(read_file(path, 99999).code() == Code::resource_exhausted);
  assert_ok(read_file(path, 100000));
  // A file whose size the system does not tell.
  assert_true(assert_ok_value(read_file("/proc/self/status")).starts_with("Name:"));
}

void errors_name_path_and_reason(void **) {
  const TemporaryDirectory directory;
  const Status missing = read_file(directory / "none").status();
  assert_true(missing.code() == Code::not_found);
  assert_contains(missing.message().c_str(), (directory / "none").c_str());
  assert_contains(missing.message().c_str(), "No such file");
  assert_string_equal(missing.error()->find_detail("path")->c_str(), (directory / "none").c_str());
  assert_error_contains(write_file_atomically(directory / "no/such/place", "x"), "No such file");
  assert_true(path_exists(directory.path()));
  assert_false(path_exists(directory / "none"));
}

// Every way to open a file, on what is none: an error at once. Nobody has the other end of the FIFO open at first.
void only_regular_files_are_opened(void **) {
  const TemporaryDirectory directory;
  const std::string fifo = directory / "pipe", link = directory / "link", path = directory / "socket";
  assert_int_equal(mkfifo(fifo.c_str(), 0600), 0);
  assert_int_equal(symlink("pipe", link.c_str()), 0);
  const FileDescriptor listener(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  assert_true(path.size() < sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  assert_int_equal(bind(listener.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
  const struct {
    std::string path, told;
  } odd[] = {{fifo, "is a FIFO, expected a regular file"},
             {link, "is a FIFO, expected a regular file"},
             {path, "is a socket, expected a regular file"},
             {"/dev/null", "is a device, expected a regular file"},
             {directory.path(), "is a directory, expected a regular file"}};
  const auto check_all = [&] {
    for (const auto &[at, told] : odd) {
      for (const Status &status :
           {read_file(at).status(), RandomAccessFile::open(at).status(), MappedFile::open(at).status(),
            AppendFile::open(at).status(), write_file_synced(at, "x"), write_file_atomically(at, "x")}) {
        assert_true(status.code() == Code::invalid_argument);
        assert_error_contains(status, (quoted(at, 400) + " " + told).c_str());
        assert_string_equal(status.error()->find_detail("path")->c_str(), at.c_str());
      }
    }
  };
  check_all();
  const FileDescriptor both_ends(open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  assert_true(both_ends.get() >= 0);
  check_all();
}

void permission_is_named(void **) {
  if (geteuid() == 0) test_skip();
  const TemporaryDirectory directory;
  assert_int_equal(chmod(directory.path().c_str(), 0500), 0);
  const Status status = write_file_atomically(directory / "a", "x");
  assert_int_equal(chmod(directory.path().c_str(), 0700), 0);
  assert_true(status.code() == Code::permission_denied);
}

void mapped_files(void **) {
  const TemporaryDirectory directory;
  assert_ok(write_file_synced(directory / "a", "hello"));
  MappedFile mapped = assert_ok_value(MappedFile::open(directory / "a"));
  assert_true(mapped.bytes() == "hello");
  MappedFile moved = std::move(mapped);
  assert_true(moved.bytes() == "hello");
  assert_ok(write_file_synced(directory / "empty", ""));
  assert_int_equal(assert_ok_value(MappedFile::open(directory / "empty")).size(), 0);
}

void reading_by_position(void **) {
  const TemporaryDirectory directory;
  assert_ok(write_file_synced(directory / "a", "0123456789"));
  const RandomAccessFile file = assert_ok_value(RandomAccessFile::open(directory / "a"));
  char text[20] = {};
  assert_int_equal(file.size_bytes(), 10);
  assert_int_equal(assert_ok_value(file.read_at(3, text, 4)), 4);
  assert_string_equal(text, "3456");
  assert_int_equal(assert_ok_value(file.read_at(8, text, 20)), 2);
  assert_int_equal(assert_ok_value(file.read_at(50, text, 20)), 0);
  assert_true(file.read_at(-1, text, 1).code() == Code::out_of_range);
}

void an_uncommitted_file_leaves_nothing(void **) {
  const TemporaryDirectory directory;
  assert_ok(write_file_atomically(directory / "a", "old"));
  {
    AtomicFile file = assert_ok_value(AtomicFile::create(directory / "a"));
    assert_ok(file.append("new"));
    assert_int_equal(file.written_bytes(), 3);
    assert_int_equal(assert_ok_value(list_directory(directory.path())).size(), 2);
  }
  assert_int_equal(assert_ok_value(list_directory(directory.path())).size(), 1);
  assert_true(assert_ok_value(read_file(directory / "a")) == "old");
  AtomicFile file = assert_ok_value(AtomicFile::create(directory / "a"));
  assert_ok(file.append("new"));
  assert_ok(file.commit());
  assert_error_contains(file.commit(), "already committed");
  assert_true(assert_ok_value(read_file(directory / "a")) == "new");
}

// Whatever step fails, the old file stays and nothing is left aside.
void every_failing_step_keeps_the_old_file(void **) {
  const TemporaryDirectory directory;
  assert_ok(write_file_atomically(directory / "a", "old"));
  const struct {
    FileOperation operation;
    int error_number;
    Code code;
  } steps[] = {
      {FileOperation::open, EMFILE, Code::resource_exhausted},
      {FileOperation::write, ENOSPC, Code::resource_exhausted},
      {FileOperation::sync, EIO, Code::data_loss},
      {FileOperation::rename, EACCES, Code::permission_denied},
  };
  for (const auto &step : steps) {
    fail_file_operation(step.operation, 1, step.error_number);
    const Status status = write_file_atomically(directory / "a", "new");
    fail_file_operation(step.operation, 0, 0);
    assert_true(status.code() == step.code);
    assert_int_equal(status.error()->subcode(), step.error_number);
    assert_true(assert_ok_value(read_file(directory / "a")) == "old");
    assert_int_equal(assert_ok_value(list_directory(directory.path())).size(), 1);
  }
  // The second write from now on.
  fail_file_operation(FileOperation::write, 2, ENOSPC);
  AtomicFile file = assert_ok_value(AtomicFile::create(directory / "a"));
  assert_ok(file.append("one"));
  assert_error_contains(file.append("two"), "No space left");
  assert_error_contains(file.append("three"), "No space left");
  assert_error_contains(file.commit(), "No space left");
}

void appending(void **) {
  const TemporaryDirectory directory;
  AppendFile file = assert_ok_value(AppendFile::open(directory / "log"));
  assert_ok(file.append("a"));
  AppendFile again = assert_ok_value(AppendFile::open(directory / "log"));
  assert_ok(again.append("b"));
  assert_ok(file.append("c"));
  assert_ok(file.sync());
  assert_true(assert_ok_value(read_file(directory / "log")) == "abc");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(whole_files),
    cmocka_unit_test(errors_name_path_and_reason),
    cmocka_unit_test(only_regular_files_are_opened),
    cmocka_unit_test(permission_is_named),
    cmocka_unit_test(mapped_files),
    cmocka_unit_test(reading_by_position),
    cmocka_unit_test(an_uncommitted_file_leaves_nothing),
    cmocka_unit_test(every_failing_step_keeps_the_old_file),
    cmocka_unit_test(appending),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace file_test
