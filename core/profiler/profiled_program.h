// RUSH_PROFILE=trace.json.gz: a program is profiled without a line of its own.
#pragma once

namespace rush::profiler {

// From here to the end of the process everything is recorded, where the variable asks for it: into the file that it
// names (none where it is empty; "trace.rank1.json" for "trace.json" in one of several processes, by their launcher's
// variables), and as a table on stderr. A file that cannot be written is said on stderr.
void profile_if_asked();

}  // namespace rush::profiler
