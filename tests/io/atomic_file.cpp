#include "core/io/atomic_file.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/file.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "core/error/error.h"
#include "core/io/file_descriptor.h"
#include "core/io/read_file.h"
#include "tests/temporary_folder.h"

using rush::io::AtomicFile;
using rush::io::write_file_atomically;
using rush::testing::file_content;
using rush::testing::TemporaryFolder;
namespace fs = std::filesystem;

TEST_CASE("AtomicFile: the old content stays until commit, then the new one is whole") {
  TemporaryFolder folder;
  std::string path = folder.write("a.txt", "old");
  AtomicFile file(path);
  file.write("new ");
  CHECK(file_content(path) == "old");
  file.write("content");
  file.commit();
  CHECK(file_content(path) == "new content");
  CHECK(folder.file_count() == 1);
  CHECK_THROWS_AS(file.write("more"), rush::IOError);
  CHECK_THROWS_AS(file.commit(), rush::IOError);
}

TEST_CASE("AtomicFile: without commit nothing changes and nothing is left behind") {
  TemporaryFolder folder;
  std::string path = folder.write("a.txt", "old");
  { AtomicFile(path).write("new"); }
  CHECK(file_content(path) == "old");
  CHECK(folder.file_count() == 1);
}

TEST_CASE("AtomicFile: two writers of one path do not mix") {
  TemporaryFolder folder;
  AtomicFile first(folder / "a.txt"), second(folder / "a.txt");
  first.write("first");
  second.write("second");
  second.commit();
  first.commit();
  CHECK(file_content(folder / "a.txt") == "first");
  CHECK(folder.file_count() == 1);
}

TEST_CASE("AtomicFile: what a killed writer left is removed by the next, what a live one has is not") {
  TemporaryFolder folder;
  const std::string dead = folder.write("a.txt.rush-tmp-0", "half"), live = folder.write("a.txt.rush-tmp-1", "half");
  const rush::io::FileDescriptor writer(::open(live.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(writer.get(), LOCK_EX | LOCK_NB) == 0);
  write_file_atomically(folder / "a.txt", "new");
  CHECK(file_content(folder / "a.txt") == "new");
  CHECK(!fs::exists(dead));
  CHECK(file_content(live) == "half");
}

TEST_CASE("remove_leftovers: those of killed writers, whatever they were to become, and nothing else") {
  TemporaryFolder folder;
  const std::string dead = folder.write("a.txt.rush-tmp-0", "half"), live = folder.write("b.rush-tmp-12", "half");
  folder.write("a.txt.rush-tmp-", "no leftover");
  folder.write("a.txt.rush-tmp-0.bak", "no leftover");
  fs::create_directory(folder / "c.rush-tmp-0");
  fs::create_symlink(folder / "a.txt.rush-tmp-", folder / "d.rush-tmp-0");
  const rush::io::FileDescriptor writer(::open(live.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(writer.get(), LOCK_EX | LOCK_NB) == 0);
  rush::io::remove_leftovers(folder.path());
  CHECK(!fs::exists(dead));
  CHECK(folder.file_count() == 5);
  CHECK_THROWS_AS(rush::io::remove_leftovers(folder / "none"), rush::IOError);
}

TEST_CASE("remove_leftovers: never takes the file of a writer that is about to rename it") {
  TemporaryFolder folder;
  std::atomic<bool> done{false};
  const auto sweep = [&] {
    while (!done) rush::io::remove_leftovers(folder.path());
  };
  std::thread one(sweep), other(sweep);
  for (int i = 0; i < 400; ++i) CHECK_NOTHROW(write_file_atomically(folder / "a.txt", std::to_string(i)));
  done = true;
  one.join();
  other.join();
  CHECK(file_content(folder / "a.txt") == "399");
}

TEST_CASE("AtomicFile: follows links and keeps permissions") {
  TemporaryFolder folder;
  std::string path = folder.write("a.txt", "old"), link = folder / "link";
  fs::create_symlink(path, link);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  write_file_atomically(link, "new");
  CHECK(fs::is_symlink(link));
  CHECK(file_content(path) == "new");
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read));

  // Also one after the other, from a folder of their own, and to a file that is not there yet.
  fs::create_directory(folder / "links");
  fs::create_symlink("../b.txt", folder / "links/second");
  fs::create_symlink("second", folder / "links/first");
  for (const char* content : {"first", "again"}) {
    write_file_atomically(folder / "links/first", content);
    CHECK(file_content(folder / "b.txt") == content);
  }
  CHECK(fs::is_symlink(folder / "links/first"));
  CHECK(fs::is_symlink(folder / "links/second"));
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  CHECK_THROWS_WITH_AS(AtomicFile(folder / "a"), doctest::Contains("symbolic links, or a circle"), rush::IOError);
}

TEST_CASE("AtomicFile: what it cannot replace is an IOError that names it") {
  TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(AtomicFile(folder.path()), doctest::Contains("not a regular file"), rush::IOError);
  CHECK_THROWS_WITH_AS(AtomicFile("/dev/null"), "/dev/null: cannot replace: not a regular file", rush::IOError);
  std::string missing = folder / "missing/a.txt";
  CHECK_THROWS_WITH_AS(AtomicFile(missing.c_str()),
                       (missing + ": cannot write in its folder: No such file or directory").c_str(), rush::IOError);
}

TEST_CASE("read_file: what was written comes back; what is no file is an IOError") {
  TemporaryFolder folder;
  std::string content("a\0b\n", 4);
  write_file_atomically(folder / "a", content);
  std::vector<uint8_t> bytes = rush::io::read_file(folder / "a");
  CHECK(std::string(bytes.begin(), bytes.end()) == content);
  CHECK(rush::io::read_file(folder.write("empty", "")).empty());
  CHECK_THROWS_WITH_AS(rush::io::read_file(folder / "none"), doctest::Contains("none: cannot open"), rush::IOError);
  CHECK_THROWS_WITH_AS(rush::io::read_file(folder.path()), doctest::Contains("not a regular file"), rush::IOError);
  CHECK_THROWS_AS(rush::io::read_file("/dev/zero"), rush::IOError);
}
