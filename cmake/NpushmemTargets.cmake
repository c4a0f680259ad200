# SPDX-License-Identifier: BSD-3-Clause
# Helpers that let a new source file, plugin or test appear by being put in its folder.

# All .cpp files below the given folders (relative to the project's root), as absolute paths in `out`.
function(npushmem_sources out)
  set(patterns)
  foreach(folder IN LISTS ARGN)
    list(APPEND patterns "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
  endforeach()
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${patterns})
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# npushmem_minimal_rpath(<target> [FOLDERS ...]): the build tree's file has the installed one's list of folders to search, and
# no more. CMake's own build-time list is padded with colons, each of which makes the loader search the current folder:
# 250 failing calls for every process of a job, which is a tenth of an empty job's time.
function(npushmem_minimal_rpath target)
  cmake_parse_arguments(arg "" "" "FOLDERS" ${ARGN})
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${arg_FOLDERS}")
endfunction()

# npushmem_order_start(<target>) puts the functions that a start calls (cmake/start-order/<target>.txt) next to each other in the
# target's file, in a section .text.start: a process maps and touches fewer pages.
include(CheckLinkerFlag)
function(npushmem_start_script file functions)
  list(TRANSFORM functions REPLACE "(.+)" "    *(.text.\\1)")
  list(JOIN functions "\n" sections)
  file(CONFIGURE OUTPUT "${file}" CONTENT "SECTIONS\n{\n  .text.start :\n  {\n@sections@\n  }\n}\nINSERT BEFORE .text;\n" @ONLY)
endfunction()
set(NPUSHMEM_ORDERS_START OFF)
if(NPUSHMEM_ORDER_START AND NOT NPUSHMEM_SANITIZE)
  npushmem_start_script("${CMAKE_BINARY_DIR}/start-order-check.ld" none)
  check_linker_flag(CXX "LINKER:-T,${CMAKE_BINARY_DIR}/start-order-check.ld" NPUSHMEM_LINKER_ORDERS) # GNU ld and lld do
  set(NPUSHMEM_ORDERS_START ${NPUSHMEM_LINKER_ORDERS})
endif()
function(npushmem_order_start target)
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${target}-start.ld")
  set(list "${PROJECT_SOURCE_DIR}/cmake/start-order/${target}.txt")
  if(NPUSHMEM_ORDERS_START)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
    file(STRINGS "${list}" functions REGEX "^[^#]")
    npushmem_start_script("${script}" "${functions}")
    target_link_options(${target} PRIVATE "LINKER:-T,${script}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
  endif()
endfunction()

# npushmem_add_plugin_file(<target>) defines a file of plugins, without plugins yet. For WITHIN (below) the caller defines
# the INTERFACE library <target>_unit, which gets the archives of the plugins.
function(npushmem_add_plugin_file target)
  add_library(${target} MODULE)
  target_link_libraries(${target} PRIVATE npushmem_flags)
  # Nothing but the entry symbol leaves a plugin: two plugins that both link npushmem_base must not bind to each other.
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,-z,defs,-z,now)
  if(NPUSHMEM_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,undefs)
  endif()
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${NPUSHMEM_PLUGIN_OUTPUT_DIRECTORY}")
  npushmem_minimal_rpath(${target})
  install(TARGETS ${target} LIBRARY DESTINATION "${NPUSHMEM_PLUGIN_INSTALL_DIR}" COMPONENT runtime)
  set_property(GLOBAL APPEND PROPERTY NPUSHMEM_PLUGINS ${target})
endfunction()

# npushmem_add_plugin(<kind> <name> [WITHIN <target>] [LIBRARIES ...]): libnpushmem_<kind>_<name>.so from every .cpp of the
# current folder. The file plugin.cpp holds the exported entry symbol; all other sources also form the archive
# npushmem_<kind>_<name>_unit, which unit tests link (plugins share the name of the entry symbol, so it must stay out of it).
# WITHIN: the plugin becomes a part of that file of plugins, and its own file name is a link to it.
function(npushmem_add_plugin kind name)
  cmake_parse_arguments(arg "" "WITHIN" "LIBRARIES" ${ARGN})
  set(target npushmem_${kind}_${name})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  set(export "${CMAKE_CURRENT_SOURCE_DIR}/plugin.cpp")
  list(REMOVE_ITEM sources "${export}")
  if(sources)
    add_library(${target}_unit STATIC ${sources})
    target_include_directories(${target}_unit PUBLIC "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target}_unit PUBLIC npushmem_base ${arg_LIBRARIES} PRIVATE npushmem_flags)
    npushmem_unity_build(${target}_unit)
  else() # nothing but the name for what its libraries have
    add_library(${target}_unit INTERFACE)
    target_link_libraries(${target}_unit INTERFACE npushmem_base ${arg_LIBRARIES})
  endif()
  if(arg_WITHIN)
    set(file ${arg_WITHIN})
    set(link "${NPUSHMEM_PLUGIN_OUTPUT_DIRECTORY}/lib${target}.so")
    file(MAKE_DIRECTORY "${NPUSHMEM_PLUGIN_OUTPUT_DIRECTORY}")
    file(CREATE_LINK "lib${file}.so" "${link}" SYMBOLIC)
    install(FILES "${link}" DESTINATION "${NPUSHMEM_PLUGIN_INSTALL_DIR}" COMPONENT runtime)
    add_library(${target} MODULE IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${link}")
    add_dependencies(${target} ${file})
    target_link_libraries(${file}_unit INTERFACE ${target}_unit)
    string(TOUPPER ${kind} upper)
    string(REPLACE "-" "_" ending ${name})
    set_source_files_properties("${export}" TARGET_DIRECTORY ${file} PROPERTIES COMPILE_DEFINITIONS
                                NPUSHMEM_${upper}_ENTRY=npushmem_${kind}_entry_v1_${ending})
  else()
    set(file ${target})
    npushmem_add_plugin_file(${file})
  endif()
  target_sources(${file} PRIVATE "${export}")
  target_link_libraries(${file} PRIVATE ${target}_unit)
endfunction()

# npushmem_absent_plugin(<kind> <name> <why>): the plugin cannot be built here; npushmem-info -p shows the reason, which it
# finds beside the plugins that were built.
function(npushmem_absent_plugin kind name why)
  set_property(GLOBAL APPEND_STRING PROPERTY NPUSHMEM_ABSENT_PLUGINS "${kind} ${name} ${why}\n")
endfunction()

# npushmem_find_for_plugin(<kind> <name> <prefix> <module> <package> <why>): looks for the library that the plugin is made of,
# as PkgConfig::<prefix>; where there is none the plugin is absent for that reason, and <prefix>_FOUND false.
macro(npushmem_find_for_plugin kind name prefix module package why)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET "${module}")
  endif()
  npushmem_dependency("${module}" "${${prefix}_FOUND}" "${package}" "${kind} ${name}")
  if(NOT ${prefix}_FOUND)
    npushmem_absent_plugin(${kind} ${name} "${why}")
  endif()
endmacro()

# Writes and installs the list of absent plugins; after all folders of plugins.
function(npushmem_write_absent_plugins)
  get_property(absent GLOBAL PROPERTY NPUSHMEM_ABSENT_PLUGINS)
  file(CONFIGURE OUTPUT "${NPUSHMEM_PLUGIN_OUTPUT_DIRECTORY}/absent-plugins.txt" CONTENT "${absent}" @ONLY)
  install(FILES "${NPUSHMEM_PLUGIN_OUTPUT_DIRECTORY}/absent-plugins.txt" DESTINATION "${NPUSHMEM_PLUGIN_INSTALL_DIR}"
          COMPONENT runtime)
endfunction()

# Adds every subfolder that has a CMakeLists.txt.
macro(npushmem_add_subfolders)
  file(GLOB npushmem_subfolder_lists CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt")
  foreach(list_file IN LISTS npushmem_subfolder_lists)
    get_filename_component(folder "${list_file}" DIRECTORY)
    add_subdirectory("${folder}")
  endforeach()
endmacro()
