# SPDX-License-Identifier: Apache-2.0
# How folders add their files: coset_sources, coset_kernel_sources (with instruction-set flags), coset_test.

add_library(coset_objects OBJECT)
target_link_libraries(coset_objects PRIVATE coset_flags Threads::Threads)
target_include_directories(coset_objects PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
set_target_properties(coset_objects PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)

# A folder joins the build when it has a CMakeLists.txt.
function(coset_add_folder folder)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/${folder})
  endif()
endfunction()

function(coset_sources)
  foreach(file ${ARGN})
    target_sources(coset_objects PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
endfunction()

# coset_kernel_sources(ISA file...): ISA is scalar, avx2, avx512 or neon; a file whose instruction set
# this processor family lacks is left out, and the dispatcher must not name it (COSET_HAVE_X86 / COSET_HAVE_NEON).
set(COSET_ISA_FLAGS_scalar "")
set(COSET_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(COSET_ISA_FLAGS_avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512)
set(COSET_ISA_FLAGS_neon "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(COSET_ISAS scalar avx2 avx512)
  target_compile_definitions(coset_flags INTERFACE COSET_HAVE_X86=1)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(COSET_ISAS scalar neon)
  target_compile_definitions(coset_flags INTERFACE COSET_HAVE_NEON=1)
else()
  set(COSET_ISAS scalar)
endif()
function(coset_kernel_sources isa)
  if(NOT isa IN_LIST COSET_ISAS)
    return()
  endif()
  foreach(file ${ARGN})
    set(path ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    target_sources(coset_objects PRIVATE ${path})
    set_source_files_properties(${path} TARGET_DIRECTORY coset_objects
      PROPERTIES COMPILE_OPTIONS "${COSET_ISA_FLAGS_${isa}}")
  endforeach()
endfunction()

# The libraries, once every folder has added its files.
function(coset_finish_library)
  add_library(coset SHARED)
  target_link_libraries(coset PRIVATE coset_objects coset_flags Threads::Threads m)
  target_include_directories(coset PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(coset PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 LINKER_LANGUAGE C
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/coset.map)
  target_link_options(coset PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/coset.map)

  # Same objects, inner symbols reachable: for the tests and for the tools that look inside.
  add_library(coset_static STATIC $<TARGET_OBJECTS:coset_objects>)
  target_link_libraries(coset_static PUBLIC Threads::Threads m)
  target_link_libraries(coset_static PUBLIC $<TARGET_PROPERTY:coset_objects,COSET_EXTRA_LIBS>)
  target_include_directories(coset_static PUBLIC ${PROJECT_SOURCE_DIR}/include)
  set_target_properties(coset_static PROPERTIES OUTPUT_NAME coset LINKER_LANGUAGE C)
endfunction()

# coset_test(name [LABEL label...] [TIMEOUT seconds] [PROCESSES n] [ARGS ...] [LIBS ...] SOURCES file...): a cmocka
# program that links inside. PROCESSES is how many processes or threads it keeps busy: ctest -jN then runs no more than
# fit. Labels with a meaning to ./dev: `tsan` also runs under the thread sanitizer, `plain` does not run under
# sanitizers (it starts compilers or emulators). Exit status 77 means skipped.
function(coset_test name)
  cmake_parse_arguments(T "" "TIMEOUT;PROCESSES" "LABEL;SOURCES;ARGS;LIBS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE coset_flags coset_static cmocka ${T_LIBS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  if(COSET_SANITIZE)
    math(EXPR T_TIMEOUT "${T_TIMEOUT} * 5") # sanitizers cost a factor of two to ten, and machines are shared
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77)
  if(T_PROCESSES)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${T_PROCESSES})
  endif()
  if(T_LABEL)
    set_tests_properties(${name} PROPERTIES LABELS "${T_LABEL}")
  endif()
endfunction()

# coset_refuses_memory(name): a test that can have allocations refused (tests/refusal.h).
function(coset_refuses_memory name)
  target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/refusal.c)
  target_link_options(${name} PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc)
endfunction()

# coset_fuzz(name SOURCES file...): a fuzz target with LLVMFuzzerTestOneInput. With COSET_FUZZ it becomes the program
# fuzz_NAME; without, a test that replays tests/fuzz/corpus/NAME, so that what fuzzing once found stays fixed.
add_custom_target(fuzzers)
function(coset_fuzz name)
  cmake_parse_arguments(F "" "" "SOURCES" ${ARGN})
  if(COSET_FUZZ)
    add_executable(fuzz_${name} ${F_SOURCES})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers fuzz_${name})
  else()
    add_executable(fuzz_${name} ${F_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c)
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT 240) # with sanitizers, on a busy machine
  endif()
  target_link_libraries(fuzz_${name} PRIVATE coset_flags coset_static)
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
endfunction()
