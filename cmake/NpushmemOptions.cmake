# SPDX-License-Identifier: BSD-3-Clause
# Build options, the language standard, warnings, sanitizers, and where build products go.
option(NPUSHMEM_BUILD_TESTS "Build the tests" ON)
option(NPUSHMEM_BUILD_TESTING_KIT "Build npushmem::testing and the contract programs even without the tests" ON)
option(NPUSHMEM_BUILD_BENCH "Build npushmem-perf and the benchmarks" ON)
option(NPUSHMEM_WERROR "Treat warnings as errors" OFF)
option(NPUSHMEM_UNITY_BUILD "Compile the files of a folder in groups: half of the time, but a missing #include is not seen" OFF)
option(NPUSHMEM_ORDER_START "Put the functions that a start calls next to each other; valgrind names no file and line of these" ON)
set(NPUSHMEM_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=<value>; empty for none")
option(NPUSHMEM_FUZZ "Link the fuzz targets with libFuzzer, which needs clang: the preset fuzz" OFF)
option(NPUSHMEM_SANITIZE_LIGHTLY "Without the checks of undefined behaviour that cost half of the compile time" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# The build tree has the shape of an installed one, so that plugins are found beside the library in both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/static")
set(NPUSHMEM_PLUGIN_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/npushmem")
set(NPUSHMEM_PLUGIN_INSTALL_DIR "${CMAKE_INSTALL_LIBDIR}/npushmem")

# Paths are hashed relative to the sources, so that a second clone finds what the first one compiled.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${PROJECT_SOURCE_DIR};CCACHE_NOHASHDIR=1;CCACHE_SLOPPINESS=pch_defines,time_macros;${CCACHE_PROGRAM}")
  set(CMAKE_C_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()

add_library(npushmem_flags INTERFACE)
target_compile_options(npushmem_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion
                                                $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
                                                # In a group, a parameter may have the name of something in another file.
                                                $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>)
if(NPUSHMEM_WERROR)
  target_compile_options(npushmem_flags INTERFACE -Werror)
endif()
if(NPUSHMEM_SANITIZE)
  add_compile_options(-fsanitize=${NPUSHMEM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${NPUSHMEM_SANITIZE})
  if(NPUSHMEM_SANITIZE_LIGHTLY) # the address sanitizer finds null pointers as well
    add_compile_options(-fno-sanitize=null,alignment,vptr)
  endif()
  # gcc warns that it does not follow fences. The fences here order memory that is shared between processes, which the
  # thread sanitizer does not see in any case.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-tsan>)
else()
  # Plugins and programs contain the functions that they call, not the whole files: a third of the size, and faster loading.
  # Sanitizers register every variable, so nothing would go.
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-Wl,--gc-sections)
endif()

# npushmem_unity_build(<target> [ALONE <regex>] [HEADERS <header>...] [HEADERS_OF <target>]): with NPUSHMEM_UNITY_BUILD the files
# of a folder are compiled in groups, each as if it were one file, and the headers once for all: less than half of the time. So
# names in the unnamed namespaces of a folder must differ, which serves readers as well. Files that `ALONE` matches are compiled
# alone. HEADERS_OF: uses the compiled headers of that target, which has the same options and definitions.
# gcc warns of code that it inlines from precompiled headers as if it were ours, and some warnings are wrong where it
# optimises: no -Werror there.
function(npushmem_unity_build target)
  cmake_parse_arguments(arg "" "ALONE;HEADERS_OF" "HEADERS" ${ARGN})
  if(NOT NPUSHMEM_UNITY_BUILD)
    return()
  endif()
  if(arg_HEADERS AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    if(arg_HEADERS_OF AND NOT arg_HEADERS_OF STREQUAL "${target}")
      target_precompile_headers(${target} REUSE_FROM ${arg_HEADERS_OF})
    else()
      target_precompile_headers(${target} PRIVATE ${arg_HEADERS})
    endif()
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>) # what ccache goes by
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(group_size 12) # a larger one leaves processors idle at the end, and takes more memory
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  if(arg_ALONE)
    list(FILTER sources EXCLUDE REGEX "${arg_ALONE}")
  endif()
  list(SORT sources)
  set(last_folder "")
  foreach(source IN LISTS sources)
    get_filename_component(source "${source}" ABSOLUTE)
    get_filename_component(folder "${source}" DIRECTORY)
    if(NOT folder STREQUAL last_folder)
      set(place 0)
      set(last_folder "${folder}")
    endif()
    math(EXPR group "${place} / ${group_size}")
    math(EXPR place "${place} + 1")
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${folder}")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${name}/${group}")
  endforeach()
endfunction()
