// A kernel that does nothing, launched with nothing around it: what a launch costs at least.
#pragma once

void launch_bare_kernel();
