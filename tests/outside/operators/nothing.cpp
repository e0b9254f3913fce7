// A shared library without operators.
extern "C" int nothing() { return 0; }
