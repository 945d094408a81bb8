# SPDX-License-Identifier: Apache-2.0
# Every MPI of this machine, side by side: FindMPI knows one of them at a time.
#
# COSET_MPIS: openmpi, mpich (MPICH and what is made from it), those of them that were found. For each NAME the target
# coset_mpi_NAME_api (its header and library), COSET_MPICC_NAME, its compiler wrapper, COSET_MPIEXEC_NAME, its launcher,
# and COSET_MPIRUN_NAME, the launcher with what lets it start more ranks than there are cores. COSET_MPI_ENVIRONMENT is
# for tests under any of them: root may start ranks, and what an MPI library leaves in memory is not ours to judge.
set(COSET_MPIS "")
set(COSET_MPI_ENVIRONMENT LSAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
set(crowd_openmpi --oversubscribe) # the variable that says so has another name in each major version
set(crowd_mpich "")

# The kind of MPI that the compiler wrapper `wrapper` compiles for, or "".
function(coset_mpi_kind wrapper out)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/mpi_kind.c)
  file(WRITE ${source} "#include <mpi.h>\n#ifdef OPEN_MPI\nkind openmpi\n#elif defined(MPICH_NUMVERSION) || defined(MPICH_VERSION)\nkind mpich\n#endif\n")
  execute_process(COMMAND ${wrapper} -E -P ${source} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_QUIET)
  set(${out} "" PARENT_SCOPE)
  if(NOT status AND text MATCHES "kind (openmpi|mpich)")
    set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
  endif()
endfunction()

# Makes coset_mpi_NAME_api from what the wrapper would call. Both families know -show.
function(coset_mpi_target name wrapper)
  execute_process(COMMAND ${wrapper} -show OUTPUT_VARIABLE line COMMAND_ERROR_IS_FATAL ANY
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(words UNIX_COMMAND "${line}")
  add_library(coset_mpi_${name}_api INTERFACE)
  foreach(word ${words})
    if(word MATCHES "^-I(.+)")
      target_include_directories(coset_mpi_${name}_api SYSTEM INTERFACE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-l")
      target_link_libraries(coset_mpi_${name}_api INTERFACE ${word})
    elseif(word MATCHES "^-L|^-Wl,|^-pthread$")
      target_link_options(coset_mpi_${name}_api INTERFACE ${word})
    endif()
  endforeach()
endfunction()

if(NOT COSET_MPI)
  return()
endif()
foreach(candidate mpicc.openmpi mpicc.mpich mpicc)
  find_program(COSET_${candidate} NAMES ${candidate})
  if(NOT COSET_${candidate})
    continue()
  endif()
  coset_mpi_kind(${COSET_${candidate}} kind)
  if(kind AND NOT kind IN_LIST COSET_MPIS)
    coset_mpi_target(${kind} ${COSET_${candidate}})
    list(APPEND COSET_MPIS ${kind})
    set(COSET_MPICC_${kind} ${COSET_${candidate}})
    cmake_path(GET COSET_${candidate} PARENT_PATH folder)
    find_program(COSET_MPIEXEC_${kind} NAMES mpiexec.${kind} mpirun.${kind} mpiexec mpirun HINTS ${folder})
    set(COSET_MPIRUN_${kind} ${COSET_MPIEXEC_${kind}} ${crowd_${kind}})
  endif()
endforeach()
if(COSET_MPIS)
  message(STATUS "MPI: ${COSET_MPIS}")
else()
  message(STATUS "MPI: none found (Debian: libopenmpi-dev, libmpich-dev); the transport mpi is not built")
endif()
