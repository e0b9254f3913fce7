// usage: closed LIBRARY: a program that exports nothing is told how to.
#include "check.h"

int main(int, char** paths) { refuses<rush::ValueError>(paths[1], "link it with -rdynamic"); }
