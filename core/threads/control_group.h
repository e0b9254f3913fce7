// The control groups of Linux that this process is in: containers limit memory and processors by them.
#pragma once
#include <string>
#include <vector>

namespace rush {

/// The folders, below /sys/fs/cgroup, that hold the limits of this process's group for `controller` ("memory", "cpu")
/// and of the groups above it, of both versions; some may not exist. In a container its own group is often mounted as
/// the top, and the folder of the path that the process sees is not there: those that are there are those that bind it.
/// Files are looked for below `root`, which tests replace.
std::vector<std::string> control_group_folders(const std::string& controller, const std::string& root = "");

}  // namespace rush
