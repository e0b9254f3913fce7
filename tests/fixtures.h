// Numbers that a make_fixtures.py wrote, by their path in the tests' folder.
#pragma once
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

// CTest names the project's folder in RUSH_ROOT; whoever runs the tests by hand stands in it.
inline nlohmann::json read_fixtures(const std::string& path) {
  const char* root = std::getenv("RUSH_ROOT");
  std::ifstream file(std::string(root ? root : ".") + "/tests/" + path);
  return nlohmann::json::parse(file);
}
