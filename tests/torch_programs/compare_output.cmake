# cmake -DPROGRAM=program -DEXPECTED=file.txt -P compare_output.cmake: fails unless the program prints what the file
# holds.

execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE printed RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}")
endif()
file(READ "${EXPECTED}" expected)
if(printed STREQUAL expected)
  return()
endif()

string(REPLACE "\n" ";" printed_lines "${printed}")
string(REPLACE "\n" ";" expected_lines "${expected}")
set(line 0)
foreach(one other IN ZIP_LISTS printed_lines expected_lines)
  math(EXPR line "${line} + 1")
  if(NOT "${one}" STREQUAL "${other}")
    message(FATAL_ERROR "${PROGRAM}, line ${line}:\n  printed  ${one}\n  expected ${other}")
  endif()
endforeach()
