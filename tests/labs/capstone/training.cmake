# What `./rush lab training` adds to a project, which includes this at its end: warnings, and the CPU that the library is compiled for,
# because the linker keeps one copy of each inline function.
include_guard()
target_compile_features(train PRIVATE cxx_std_20)
target_compile_options(train PRIVATE -Wall -Wextra -Wpedantic -Werror ${RUSHLIGHT_FLAGS})
