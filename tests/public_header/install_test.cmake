# SPDX-License-Identifier: Apache-2.0
# Installs the build into WORK/prefix, moves it, and builds and runs a program against the moved copy in both ways that
# the README promises.
function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(status)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "${command}\n${said}\nstatus: ${status}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/prefix)

must(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_C_COMPILER=${CC} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
must(${CMAKE_COMMAND} --build ${WORK}/build)
must(${WORK}/build/consumer)

if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} ${WORK}/prefix/${LIBDIR}/pkgconfig)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs coset OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  must(${CC} -std=c17 ${SOURCE}/consumer.c -o ${WORK}/by_pkg_config ${flags})
  must(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${WORK}/prefix/${LIBDIR} ${WORK}/by_pkg_config)
  # and the libraries for programs that use MPI, each with its own MPI's compiler
  foreach(mpi ${MPIS})
    execute_process(COMMAND ${PKG_CONFIG} --cflags --libs coset-mpi-${mpi} OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    must(${MPICC_${mpi}} -std=c17 ${SOURCE}/consumer_mpi.c -o ${WORK}/by_pkg_config_${mpi} ${flags})
    must(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${WORK}/prefix/${LIBDIR} ${WORK}/by_pkg_config_${mpi})
    must(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build_${mpi} -G Ninja -DCMAKE_C_COMPILER=${MPICC_${mpi}} -DMPI=${mpi}
      -DCMAKE_PREFIX_PATH=${WORK}/prefix)
    must(${CMAKE_COMMAND} --build ${WORK}/build_${mpi})
    must(${WORK}/build_${mpi}/consumer_mpi)
  endforeach()
endif()
