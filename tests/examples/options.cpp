#include "examples/options.h"

#include <doctest/doctest.h>

#include "core/error/error.h"
#include "examples/option_checks.h"

using examples::Options;

namespace {

struct Config {
  int64_t n_layer = 4;
  double lr = 1e-3;
  std::string device = "cpu", data;
  bool compile = false;
  Options options{"gpt", "Trains a GPT."};

  Config() {
    options.add("--n_layer", &n_layer, "blocks", 1, 100);
    options.add("--lr,--rate", &lr, "step size", 0);
    options.add("--device", &device, "where to run", {"cpu", "cuda"});
    options.add("--data", &data, "a folder");
    options.add("--compile,--jit_it", &compile, "does nothing");
  }
};

std::string failure(const std::vector<std::string>& arguments) {
  Config config;
  try {
    config.options.parse(arguments);
  } catch (const rush::ValueError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Options: both spellings of values, dashes and underscores alike, the last one counts") {
  Config config;
  config.options.parse({"--n-layer", "6", "--lr=3e-4", "--n_layer=12", "--device", "cuda", "--data=a=b", "--compile"});
  CHECK(config.n_layer == 12);
  CHECK(config.lr == 3e-4);
  CHECK(config.device == "cuda");
  CHECK(config.data == "a=b");
  CHECK(config.compile);
  config.options.parse({"--compile=False", "--data", "-"});
  CHECK_FALSE(config.compile);
  CHECK(config.data == "-");
}

TEST_CASE("Options: other names stand for an option") {
  Config config;
  config.options.parse({"--rate", "0.5", "--jit_it"});
  CHECK(config.lr == 0.5);
  CHECK(config.compile);
  config.options.parse({"--rate=0.25", "--jit-it=false"});
  CHECK(config.lr == 0.25);
  CHECK_FALSE(config.compile);
  CHECK(failure({"--rate"}) == "--lr: its value is missing");
  CHECK(failure({"--rate", "-1"}) == "--lr: expected a number of at least 0, got '-1'");
}

TEST_CASE("Options: what does not go together") {
  using namespace examples;
  CHECK_NOTHROW(check_device("cuda:1", true));
  CHECK_THROWS_WITH_AS(check_device("meta"), "--device: expected cpu or cuda, got 'meta'", rush::ValueError);
  CHECK_THROWS_AS(check_device("tpu"), rush::ValueError);
  CHECK_THROWS_WITH_AS(check_device("cpu", true), "--graph needs --device cuda", rush::ValueError);
  CHECK_NOTHROW(check_json_file(""));
  CHECK_NOTHROW(check_json_file("here.json"));
  CHECK_THROWS_WITH_AS(check_json_file("/no/where.json"), "--json: there is no folder /no", rush::ValueError);
  CHECK_NOTHROW(check_transformer({4, 4, 128}, 16, "cpu"));
  CHECK_THROWS_WITH_AS(check_transformer({4, 3, 128}, 16, "cpu"), "--n_embd 128 is no multiple of --n_head 3",
                       rush::ValueError);
  CHECK_THROWS_WITH_AS(check_transformer({1024, 4, 65536}, 16, "cpu"),
                       doctest::Contains("--n_layer 1024 of --n_embd 65536 take 786432 GiB, this machine has "),
                       rush::ValueError);
  CHECK_NOTHROW(check_transformer({1024, 4, 65536}, 16, "cuda"));
}

TEST_CASE("Options: defaults stay where nothing is given") {
  Config config;
  config.options.parse({});
  CHECK(config.n_layer == 4);
  CHECK(config.lr == 1e-3);
}

TEST_CASE("Options: the values of all options, where they are not empty") {
  Config config;
  config.options.parse({"--n-layer", "6", "--lr=3e-4", "--n_layer=12", "--compile"});
  using Values = std::vector<std::pair<std::string, std::string>>;
  CHECK(config.options.values() == Values{{"n_layer", "12"}, {"lr", "3e-4"}, {"device", "cpu"}, {"compile", "true"}});
}

TEST_CASE("Options: bad input is one line that names the option") {
  CHECK(failure({"--n_layr", "1"}) == "unknown option --n_layr (did you mean --n_layer?)");
  CHECK(failure({"--wibble=3"}) == "unknown option --wibble");
  CHECK(failure({"extra"}) == "unexpected argument 'extra'");
  CHECK(failure({"--"}) == "unexpected argument '--'");
  CHECK(failure({"--n_layer"}) == "--n_layer: its value is missing");
  CHECK(failure({"--n_layer", "--lr"}) == "--n_layer: its value is missing");
  CHECK(failure({"--n_layer", "0"}) == "--n_layer: expected a whole number from 1 to 100, got '0'");
  CHECK(failure({"--n_layer="}) == "--n_layer: expected a whole number from 1 to 100, got ''");
  CHECK(failure({"--n_layer", "4x"}) == "--n_layer: expected a whole number from 1 to 100, got '4x'");
  CHECK(failure({"--n_layer", "99999999999999999999"}) ==
        "--n_layer: expected a whole number from 1 to 100, got '99999999999999999999'");
  CHECK(failure({"--lr", "-1"}) == "--lr: expected a number of at least 0, got '-1'");
  CHECK(failure({"--lr", "nan"}) == "--lr: expected a number of at least 0, got 'nan'");
  CHECK(failure({"--lr", "0x1"}) == "--lr: expected a number of at least 0, got '0x1'");
  CHECK(failure({"--n_layer", "010"}) == "");  // 10
  CHECK(failure({"--lr", "1e999"}) == "--lr: expected a number of at least 0, got '1e999'");
  CHECK(failure({"--device", "tpu"}) == "--device: expected one of cpu, cuda, got 'tpu'");
  CHECK(failure({"--compile=maybe"}) == "--compile: expected true or false, got 'maybe'");
}

TEST_CASE("Options: arguments without a name stand anywhere and must be there") {
  std::string cases, folder;
  bool verbose = false;
  Options options("run", "Runs cases.");
  options.add_argument("CASES", &cases, "a file");
  options.add_argument("FOLDER", &folder, "where to write");
  options.add("--verbose", &verbose, "say more");
  options.parse({"a.jsonl", "--verbose", "out"});
  CHECK(cases == "a.jsonl");
  CHECK(folder == "out");
  CHECK(verbose);
  CHECK_THROWS_WITH_AS(options.parse({"a.jsonl"}), "FOLDER is required", rush::ValueError);
  CHECK_THROWS_WITH_AS(options.parse({"a", "b", "c"}), "unexpected argument 'c'", rush::ValueError);
  CHECK(options.help().find("CASES      a file") != std::string::npos);
}

TEST_CASE("Options: a refused value leaves its variable alone") {
  Config config;
  CHECK_THROWS_AS(config.options.parse({"--n_layer", "1000"}), rush::ValueError);
  CHECK(config.n_layer == 4);
}

TEST_CASE("Options: the help lists every option with its range and its default") {
  Config config;
  const std::string help = config.options.help();
  CHECK(help.starts_with("Trains a GPT.\n"));
  CHECK(help.find("\n"
                  "  --n_layer  blocks (from 1 to 100; default 4)\n"
                  "  --lr       step size (at least 0; default 0.001; also --rate)\n"
                  "  --device   where to run: cpu, cuda (default cpu)\n"
                  "  --data     a folder\n"
                  "  --compile  does nothing (default false; also --jit_it)\n") != std::string::npos);
}
