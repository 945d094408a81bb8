# SPDX-License-Identifier: Apache-2.0
# Installation: headers, the shared library, find_package(coset) and pkg-config files.
include(CMakePackageConfigHelpers)

install(TARGETS coset EXPORT coset-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES include/coset.h include/coset_mean.h include/coset_ddp.h include/coset_transport.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

foreach(mpi ${COSET_MPIS})
  install(TARGETS coset_mpi_${mpi} EXPORT coset-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
if(COSET_MPIS)
  install(FILES include/coset_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()

set(COSET_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/coset)
install(EXPORT coset-targets NAMESPACE coset:: DESTINATION ${COSET_CMAKE_DIR})
configure_package_config_file(cmake/coset-config.cmake.in coset-config.cmake INSTALL_DESTINATION ${COSET_CMAKE_DIR})
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(coset-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/coset-config.cmake ${PROJECT_BINARY_DIR}/coset-config-version.cmake
  DESTINATION ${COSET_CMAKE_DIR})

# The prefix is taken from where the file lies, so that an installation may be moved.
file(RELATIVE_PATH COSET_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/coset.pc.in coset.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/coset.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
foreach(mpi ${COSET_MPIS})
  configure_file(cmake/coset-mpi.pc.in coset-mpi-${mpi}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/coset-mpi-${mpi}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
