# libminidirac: all folder libraries in one archive, with headers, pkg-config file, CMake package.
get_property(md_libraries GLOBAL PROPERTY MD_LIBRARIES)
set(md_objects)
foreach(library IN LISTS md_libraries)
  list(APPEND md_objects $<TARGET_OBJECTS:${library}>)
endforeach()
add_library(libminidirac STATIC ${md_objects})
set_target_properties(libminidirac PROPERTIES OUTPUT_NAME minidirac LINKER_LANGUAGE C)
install(TARGETS libminidirac ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY src/base lattice dirac gemm io DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/minidirac
        FILES_MATCHING PATTERN "*.h" PATTERN "*.inc.h" EXCLUDE)
install(FILES ${CMAKE_BINARY_DIR}/generated/md_version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/minidirac)

# What a program that links the archive needs besides.
set(MD_OPTIONAL_LINK "")
if(OPENBLAS_FOUND)
  string(APPEND MD_OPTIONAL_LINK " ${OPENBLAS_LINK_LIBRARIES}")
endif()
if(SCALAPACK_LIBRARY)
  string(APPEND MD_OPTIONAL_LINK " ${SCALAPACK_LIBRARY}")
endif()
set(MD_CUDA_LINK "")
if(MINIDIRAC_HAVE_CUDA)
  set(MD_CUDA_LINK " -L${CUDAToolkit_LIBRARY_DIR} -Wl,-rpath,${CUDAToolkit_LIBRARY_DIR} -lcublas -lcudart -lstdc++")
  if(MINIDIRAC_HAVE_NCCL)
    string(APPEND MD_CUDA_LINK " ${NCCL_LIBRARY}")
  endif()
endif()
file(RELATIVE_PATH MD_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /) # the tree can be moved
configure_file(scripts/cmake/minidirac.pc.in ${CMAKE_BINARY_DIR}/minidirac.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/minidirac.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

include(CMakePackageConfigHelpers)
configure_package_config_file(
  scripts/cmake/minidirac-config.cmake.in ${CMAKE_BINARY_DIR}/minidirac-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/minidirac)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/minidirac-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/minidirac-config.cmake
              ${CMAKE_BINARY_DIR}/minidirac-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/minidirac)
