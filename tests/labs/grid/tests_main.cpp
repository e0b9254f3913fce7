// doctest itself, apart from the kernels: it is compiled without the calls that watch them.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
