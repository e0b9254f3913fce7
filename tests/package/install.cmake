# cmake -DBUILD=folder -DPREFIX=folder -DTREE=folder -P install.cmake: installs the build, which must not depend on
# where it was built.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" OUTPUT_QUIET
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE package "${PREFIX}/*.cmake")
if(NOT package)
  message(FATAL_ERROR "no package was installed to ${PREFIX}")
endif()
foreach(file IN LISTS package)
  file(READ "${file}" text)
  string(FIND "${text}" "${TREE}" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${file} refers to ${TREE}")
  endif()
endforeach()
