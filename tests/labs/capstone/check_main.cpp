// The program of the checks. It is linked in the project's build, with the project's operator.
#include "tests/labs/capstone/check.h"

int main(int argc, char** argv) { return capstone::check(argc, argv); }
