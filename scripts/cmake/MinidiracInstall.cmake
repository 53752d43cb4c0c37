# libminidirac: all folder libraries in one archive, with public headers, pkg-config file and CMake
# package. Other projects link minidirac::minidirac, from the package or by add_subdirectory.
include(MinidiracHeaders)
get_property(md_libraries GLOBAL PROPERTY MD_LIBRARIES)
set(md_objects)
foreach(library IN LISTS md_libraries)
  list(APPEND md_objects $<TARGET_OBJECTS:${library}>)
endforeach()
add_library(libminidirac STATIC ${md_objects})
add_library(minidirac::minidirac ALIAS libminidirac)
set_target_properties(libminidirac PROPERTIES OUTPUT_NAME minidirac EXPORT_NAME minidirac LINKER_LANGUAGE C)
target_include_directories(libminidirac INTERFACE $<BUILD_INTERFACE:${MD_PUBLIC_DIR}>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# What a program that links the archive needs besides: libraries by their paths as they were found
# here (HDF5 has other names elsewhere), so that one list serves pkg-config, the package and
# add_subdirectory, in every language.
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

if(NOT MINIDIRAC_INSTALL)
  return()
endif()
install(TARGETS libminidirac EXPORT minidirac ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(header IN LISTS MD_PUBLIC_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${MD_PUBLIC_DIR}/minidirac/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/minidirac/${folder})
endforeach()

set(MD_PC_LINK "")
foreach(item IN LISTS md_link)
  if(item MATCHES "^[/-]")
    string(APPEND MD_PC_LINK " ${item}")
  else()
    string(APPEND MD_PC_LINK " -l${item}")
  endif()
endforeach()
string(APPEND MD_PC_LINK "${md_rpath}")
file(RELATIVE_PATH MD_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /) # the tree can be moved
configure_file(scripts/cmake/minidirac.pc.in ${PROJECT_BINARY_DIR}/minidirac.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/minidirac.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/minidirac-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(EXPORT minidirac FILE minidirac-config.cmake NAMESPACE minidirac::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/minidirac)
install(FILES ${PROJECT_BINARY_DIR}/minidirac-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/minidirac)
