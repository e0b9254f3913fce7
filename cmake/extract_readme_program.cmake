# cmake -DREADME=README.md -DOUTPUT=program.cpp -P extract_readme_program.cmake
# writes the first ```cpp block of README to OUTPUT. The #line makes a compiler error point into the README.

file(READ "${README}" text)
set(fence "```cpp\n")
string(FIND "${text}" "${fence}" opening)
if(opening EQUAL -1)
  message(FATAL_ERROR "${README}: no block opens with ```cpp")
endif()

string(SUBSTRING "${text}" 0 ${opening} before)
string(REGEX MATCHALL "\n" newlines "${before}")
list(LENGTH newlines lines_before)
math(EXPR first_line "${lines_before} + 2")

string(LENGTH "${fence}" fence_length)
math(EXPR start "${opening} + ${fence_length}")
string(SUBSTRING "${text}" ${start} -1 program)
string(FIND "${program}" "\n```" closing)
if(closing EQUAL -1)
  message(FATAL_ERROR "${README}: the first ```cpp block is never closed")
endif()
string(SUBSTRING "${program}" 0 ${closing} program)

file(WRITE "${OUTPUT}" "#line ${first_line} \"${README}\"\n${program}\n")
