// usage: whole LIBRARY: a program that has all of Rushlight loads what needs any of it.
#include "check.h"
#include "core/dispatch/call.h"

int main(int, char** paths) {
  rush::load_library(paths[1]);
  check(rush::call_operator("outside::normed", {rush::ones({1, 3, 2})})[0].as<rush::Tensor>().numel() == 6,
        "its result");
}
