# `cmake --install` and the package that find_package(rushlight) finds. Headers keep their folders below
# include/rushlight, so `#include <rushlight.h>` and `#include "core/tensor.h"` read the same there as in this tree.

include(CMakePackageConfigHelpers)

set(RUSH_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/rushlight")

install(FILES rushlight.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rushlight")
foreach(room core backends autograd nn optim compat)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${room}")
    install(DIRECTORY ${room} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rushlight" FILES_MATCHING REGEX "\\.(h|inc)$")
  endif()
endforeach()

install(TARGETS rushlight rush_torch_compat EXPORT rushlight-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(EXPORT rushlight-targets NAMESPACE rushlight:: DESTINATION "${RUSH_PACKAGE_DIR}")

configure_package_config_file(cmake/rushlight-config.cmake.in "${PROJECT_BINARY_DIR}/rushlight-config.cmake"
  INSTALL_DESTINATION "${RUSH_PACKAGE_DIR}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rushlight-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rushlight-config.cmake" "${PROJECT_BINARY_DIR}/rushlight-config-version.cmake"
  cmake/FindLibZip.cmake cmake/precompile.cmake cmake/operators.cmake DESTINATION "${RUSH_PACKAGE_DIR}")
