#pragma once
#include <iterator>

#include "c10/util/Exception.h"

namespace c10 {
using std::ssize;
}
