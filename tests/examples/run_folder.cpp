#include "examples/run_folder.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "tests/temporary_folder.h"

using namespace examples;
using rush::testing::file_content;
using rush::testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const Beginning kAnew{}, kResume{/*resume=*/true}, kOverwrite{/*resume=*/false, /*overwrite=*/true};

// A run that is one number.
struct Run {
  int64_t steps = 0;
  std::string rate = "0.1";

  rush::Checkpoint checkpoint(RunFolder& folder) {
    rush::Checkpoint all;
    all.add("steps", steps).expect("rate", rate, folder.changes());
    return all;
  }
  bool begin(RunFolder& folder) {
    return folder.begin([&] { checkpoint(folder).load(folder.checkpoint()); },
                        [&] { save_checkpoint(checkpoint(folder), folder.checkpoint()); });
  }
};

// Leaves the checkpoint of a run of three steps.
void run_in(const std::string& path) {
  RunFolder folder(path, kAnew);
  Run run{/*steps=*/3};
  CHECK(!run.begin(folder));
}

}  // namespace

TEST_CASE("RunFolder: a checkpoint is gone on from, or lost, only where the user says so") {
  TemporaryFolder temporary;
  const std::string path = temporary / "a/run";
  run_in(path);
  CHECK_THROWS_WITH_AS(RunFolder(path, kAnew), doctest::Contains("--resume goes on from it, --overwrite starts anew"),
                       rush::ValueError);
  {
    RunFolder folder(path, kResume);
    Run run;
    CHECK(run.begin(folder));
    CHECK(run.steps == 3);
  }
  {
    RunFolder folder(path, kOverwrite);
    Run run;
    CHECK(!run.begin(folder));
  }
  RunFolder folder(path, kResume);
  Run run{/*steps=*/7};
  CHECK(run.begin(folder));
  CHECK(run.steps == 0);
  folder.remove_checkpoint();
  CHECK(!run.begin(folder));  // no checkpoint: anew
  CHECK_THROWS_AS((Beginning{true, true}.check(path)), rush::ValueError);
  CHECK_THROWS_AS(kResume.check(""), rush::ValueError);
  CHECK(RunFolder("", kAnew).checkpoint().empty());
}

TEST_CASE("RunFolder: a changed setting is an error, or a line where changes are allowed") {
  TemporaryFolder temporary;
  run_in(temporary.path());
  Run run{/*steps=*/0, /*rate=*/"0.2"};
  std::optional<RunFolder> folder(std::in_place, temporary.path(), kResume);
  CHECK_THROWS_WITH_AS(run.begin(*folder), doctest::Contains("rate: saved with '0.1', now '0.2'; a run goes on with"),
                       rush::ValueError);
  CHECK(run.steps == 0);
  folder.reset();
  folder.emplace(temporary.path(), Beginning{/*resume=*/true, /*overwrite=*/false, /*allow_changes=*/true});
  CHECK(run.begin(*folder));
  CHECK(run.steps == 3);
  REQUIRE(folder->changes()->size() == 1);
  CHECK(folder->changes()->front() == "rate: saved with '0.1', now '0.2'");
}

TEST_CASE("RunFolder: one run at a time, and leftovers go") {
  TemporaryFolder temporary;
  const std::string leftover = temporary.write("net.safetensors.rush-tmp-0", "half");
  {
    const RunFolder first(temporary.path(), kAnew);
    CHECK(!fs::exists(leftover));
    CHECK_THROWS_WITH_AS(RunFolder(temporary.path(), kAnew),
                         doctest::Contains(rush::str(": process ", ::getpid(), " on ").c_str()), rush::IOError);
  }
  CHECK_NOTHROW(RunFolder(temporary.path(), kAnew));
}

TEST_CASE("RunFolder: a link is read and replaced, and what it leads to stays as it was") {
  TemporaryFolder temporary;
  run_in(temporary / "one");
  const std::string theirs = temporary / "one/checkpoint.safetensors", before = file_content(theirs);
  fs::create_directory(temporary / "two");
  fs::create_symlink("../one/checkpoint.safetensors", temporary / "two/checkpoint.safetensors");
  RunFolder folder(temporary / "two", kResume);
  Run run;
  CHECK(run.begin(folder));
  CHECK(run.steps == 3);
  run.steps = 4;
  save_checkpoint(run.checkpoint(folder), folder.checkpoint());
  CHECK(file_content(theirs) == before);
  CHECK(!fs::is_symlink(folder.checkpoint()));
  run.steps = 0;
  CHECK(run.begin(folder));
  CHECK(run.steps == 4);
}

TEST_CASE("make_folder: what cannot be made or written is an error that names it") {
  TemporaryFolder temporary;
  const std::string file = temporary.write("file", "");
  CHECK_THROWS_WITH_AS(make_folder(file + "/below"), doctest::Contains("below: cannot make this folder"),
                       rush::IOError);
  CHECK_THROWS_AS(make_folder(file), rush::IOError);
  CHECK_NOTHROW(make_folder(temporary / "a/b/c"));
}

TEST_CASE("try_to_save: a failure is a warning, and other errors stay errors") {
  CHECK(try_to_save([] {}).empty());
  const std::string warning = try_to_save([] { throw rush::IOError("a: cannot write: No space left on device"); });
  CHECK(warning.find("warning: a: cannot write: No space left on device; the run goes on") == 0);
  CHECK_THROWS_AS(try_to_save([] { throw rush::ValueError("diverged"); }), rush::ValueError);
}
