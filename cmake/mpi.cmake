# MPI, for process groups on CPUs: RUSH_HAS_MPI says whether backends/cpu/comm is built.

set(RUSH_MPI AUTO CACHE STRING "Build the process groups over MPI: ON, OFF, or AUTO: where there is an MPI")
set_property(CACHE RUSH_MPI PROPERTY STRINGS AUTO ON OFF)
set(RUSH_HAS_MPI OFF)
set(RUSH_MPI_LINK "")

if(NOT RUSH_MPI MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "RUSH_MPI is '${RUSH_MPI}'; expected AUTO, ON or OFF")
endif()
if(RUSH_MPI STREQUAL "OFF")
  return()
endif()
set(MPI_CXX_SKIP_MPICXX ON)  # the functions of C alone
find_package(MPI QUIET COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  if(RUSH_MPI STREQUAL "ON")
    message(FATAL_ERROR "RUSH_MPI is ON and there is no MPI; Debian's packages are libopenmpi-dev and openmpi-bin")
  endif()
  return()
endif()
set(RUSH_HAS_MPI ON)
list(TRANSFORM MPI_CXX_INCLUDE_DIRS PREPEND "-isystem" OUTPUT_VARIABLE RUSH_MPI_INCLUDE_OPTIONS)
set(RUSH_MPI_LINK ${MPI_CXX_LIBRARIES})
if(APPLE)  # whose linker has no such options
  return()
endif()
# As needed: only a program that calls init_process_group has code that calls MPI, and only it loads the library.
list(JOIN MPI_CXX_LIBRARIES "," mpi_libraries)
set(RUSH_MPI_LINK "-Wl,--push-state,--as-needed,${mpi_libraries},--pop-state")
