# libminidirac: the objects of all rooms but the commands as an archive and as a shared library, with
# two headers, pkg-config files and a CMake package. Other projects link minidirac::minidirac (the
# archive) or minidirac::shared, from the package or by add_subdirectory.
set(MD_PUBLIC_DIR ${PROJECT_BINARY_DIR}/include)
file(READ ${PROJECT_SOURCE_DIR}/src/library/minidirac.h md_header)
string(REPLACE "\"base/status.h\"" "<minidirac/status.h>" md_header "${md_header}")
file(CONFIGURE OUTPUT ${MD_PUBLIC_DIR}/minidirac/minidirac.h CONTENT "${md_header}" @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/src/base/status.h ${MD_PUBLIC_DIR}/minidirac/status.h COPYONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/library/minidirac.h)

get_property(md_libraries GLOBAL PROPERTY MD_LIBRARIES)
set(md_objects)
foreach(library IN LISTS md_libraries)
  list(APPEND md_objects $<TARGET_OBJECTS:${library}>)
endforeach()
add_library(libminidirac STATIC ${md_objects})
add_library(libminidirac_shared SHARED ${md_objects})
add_library(minidirac::minidirac ALIAS libminidirac)
add_library(minidirac::shared ALIAS libminidirac_shared)
set_target_properties(libminidirac PROPERTIES EXPORT_NAME minidirac)
set_target_properties(libminidirac_shared PROPERTIES EXPORT_NAME shared VERSION ${PROJECT_VERSION}
                                                     SOVERSION ${PROJECT_VERSION_MAJOR})
foreach(library IN ITEMS libminidirac libminidirac_shared)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME minidirac LINKER_LANGUAGE C)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${MD_PUBLIC_DIR}>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                                  ${MPI_C_INCLUDE_DIRS})
endforeach()

# What a program that links the archive needs besides, and the shared library brings: libraries by
# their paths as they were found here (HDF5 has other names elsewhere), so that one list serves
# pkg-config, the package and add_subdirectory, in every language.
set(md_link ${HDF5_C_LIBRARIES} ${MPI_C_LIBRARIES} ${CJSON_LINK_LIBRARIES} ${INIH_LINK_LIBRARIES}
            ${DEFLATE_LINK_LIBRARIES} ${OPENBLAS_LINK_LIBRARIES})
if(SCALAPACK_LIBRARY)
  list(APPEND md_link ${SCALAPACK_LIBRARY})
endif()
set(md_rpath "")
if(MINIDIRAC_HAVE_CUDA)
  list(APPEND md_link ${CUDA_cudart_static_LIBRARY} rt dl stdc++)
  if(MINIDIRAC_HAVE_NCCL)
    list(APPEND md_link ${NCCL_LIBRARY})
    cmake_path(GET NCCL_LIBRARY PARENT_PATH md_nccl_folder)
    set(md_rpath " -Wl,-rpath,${md_nccl_folder}")
  endif()
endif()
list(APPEND md_link ${OpenMP_C_LIBRARIES} pthread m)
if(MINIDIRAC_SANITIZE)
  list(APPEND md_link -fsanitize=address,undefined)
endif()
list(REMOVE_DUPLICATES md_link)
target_link_libraries(libminidirac INTERFACE ${md_link})
target_link_libraries(libminidirac_shared PRIVATE ${md_link} INTERFACE ${MPI_C_LIBRARIES})
target_link_options(libminidirac_shared PRIVATE -Wl,--as-needed -Wl,--exclude-libs,ALL
                                                -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/minidirac.map
                                                $<TARGET_PROPERTY:md_flags,INTERFACE_LINK_OPTIONS>)
set_target_properties(libminidirac_shared PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON) # of NCCL

if(SKBUILD) # pip: one file beside the modules of python/minidirac, which scikit-build-core puts there
  set_property(TARGET libminidirac_shared PROPERTY VERSION)
  install(TARGETS libminidirac_shared LIBRARY DESTINATION minidirac COMPONENT python NAMELINK_SKIP)
endif()
if(NOT MINIDIRAC_INSTALL)
  return()
endif()
install(TARGETS libminidirac libminidirac_shared EXPORT minidirac ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${MD_PUBLIC_DIR}/minidirac/minidirac.h ${MD_PUBLIC_DIR}/minidirac/status.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/minidirac)

# minidirac.pc: the shared library and MPI, which the header names; minidirac-static.pc: the archive.
# The tree can be moved, but for folders that were given as absolute ones.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(MD_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH MD_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(PREPEND MD_PC_PREFIX "\${pcfiledir}/")
endif()
foreach(kind IN ITEMS LIBDIR INCLUDEDIR)
  set(MD_PC_${kind} ${CMAKE_INSTALL_${kind}})
  if(NOT IS_ABSOLUTE "${MD_PC_${kind}}")
    string(PREPEND MD_PC_${kind} "\${prefix}/")
  endif()
endforeach()
list(TRANSFORM MPI_C_INCLUDE_DIRS PREPEND " -I" OUTPUT_VARIABLE md_include)
list(JOIN md_include "" MD_PC_INCLUDE)
function(md_package_file name libraries)
  set(MD_PC_LIBS "${libraries}")
  foreach(item IN LISTS ARGN)
    if(item MATCHES "^[/-]")
      string(APPEND MD_PC_LIBS " ${item}")
    else()
      string(APPEND MD_PC_LIBS " -l${item}")
    endif()
  endforeach()
  configure_file(scripts/cmake/minidirac.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
md_package_file(minidirac "-L\${libdir} -Wl,-rpath,\${libdir} -lminidirac" ${MPI_C_LIBRARIES})
md_package_file(minidirac-static "\${libdir}/libminidirac.a${md_rpath}" ${md_link})

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/minidirac-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(EXPORT minidirac FILE minidirac-config.cmake NAMESPACE minidirac::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/minidirac)
install(FILES ${PROJECT_BINARY_DIR}/minidirac-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/minidirac)

# For readers: the pages with their example and pictures, decks and lattices, job scripts and recipes; the Python package, which
# finds the library of this prefix by a link, and the scripts that read reports and studies with it.
set(md_data ${CMAKE_INSTALL_DATADIR}/minidirac)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/inputs ${PROJECT_SOURCE_DIR}/scripts/cluster ${PROJECT_SOURCE_DIR}/python
        DESTINATION ${md_data} PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scripts/ DESTINATION ${md_data}/scripts USE_SOURCE_PERMISSIONS FILES_MATCHING PATTERN *.py
        PATTERN performance.py EXCLUDE REGEX /scripts/[a-z_]*$ EXCLUDE)
set(md_soname libminidirac.so.${PROJECT_VERSION_MAJOR})
file(RELATIVE_PATH md_to_library ${CMAKE_INSTALL_FULL_DATADIR}/minidirac/python/minidirac ${CMAKE_INSTALL_FULL_LIBDIR}/${md_soname})
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python)
file(CREATE_LINK ${md_to_library} ${PROJECT_BINARY_DIR}/python/${md_soname} SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/python/${md_soname} DESTINATION ${md_data}/python/minidirac)
