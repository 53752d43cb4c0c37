# Everything that is decided once for the whole build.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # POSIX: fsync, mkstemp, isatty
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Fused multiply-adds may be formed inside an expression only: results stay the same for every
# place that a source line is compiled into. No fast-math: NaN and Inf must be seen.
if(CMAKE_C_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG") # CMake's own, else of the user
  set(CMAKE_C_FLAGS_RELEASE "-O3 -g -fno-math-errno -fno-trapping-math")
endif()
option(MINIDIRAC_WERROR "Treat warnings as errors" OFF)
option(MINIDIRAC_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(MINIDIRAC_FUZZ "Build the fuzz targets (tests/fuzz, docs/robustness.md); needs clang" OFF)
set(MINIDIRAC_CUDA "AUTO" CACHE STRING "CUDA backends: AUTO (when a compiler is found), ON, OFF")
set_property(CACHE MINIDIRAC_CUDA PROPERTY STRINGS AUTO ON OFF)
string(TOUPPER "${MINIDIRAC_CUDA}" md_cuda)
if(md_cuda MATCHES "^(ON|YES|TRUE|Y|1)$")
  set(md_cuda ON)
elseif(md_cuda MATCHES "^(OFF|NO|FALSE|N|0)$")
  set(md_cuda OFF)
elseif(NOT md_cuda STREQUAL "AUTO")
  message(FATAL_ERROR "MINIDIRAC_CUDA must be AUTO, ON or OFF, got '${MINIDIRAC_CUDA}'; give one of them.")
endif()

find_package(MPI REQUIRED COMPONENTS C)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
set(HDF5_PREFER_PARALLEL ON)
find_package(HDF5 1.10.5 REQUIRED COMPONENTS C) # finds chunks in a file
if(NOT HDF5_IS_PARALLEL)
  message(FATAL_ERROR "miniDirac needs parallel HDF5 and found a serial one (${HDF5_INCLUDE_DIRS}). "
                      "On Debian or Ubuntu: apt-get install libhdf5-openmpi-dev")
endif()
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(INIH REQUIRED IMPORTED_TARGET inih)
pkg_check_modules(DEFLATE REQUIRED IMPORTED_TARGET libdeflate)
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
# Optional references of the dense kernels: OpenBLAS on one rank, ScaLAPACK over ranks.
pkg_check_modules(OPENBLAS IMPORTED_TARGET openblas)
find_library(SCALAPACK_LIBRARY NAMES scalapack-openmpi scalapack)
mark_as_advanced(SCALAPACK_LIBRARY)
message(STATUS "GEMM references: OpenBLAS '${OPENBLAS_VERSION}', ScaLAPACK '${SCALAPACK_LIBRARY}'")

set(MINIDIRAC_HAVE_CUDA OFF)
if(NOT md_cuda STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES) # of the GPUs that are here, else of an H100 or H200
      execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                      OUTPUT_VARIABLE md_gpus OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      string(REGEX MATCHALL "[0-9]+[.][0-9]" md_gpus "${md_gpus}")
      list(TRANSFORM md_gpus REPLACE "[.]" "")
      list(REMOVE_DUPLICATES md_gpus)
      if(NOT md_gpus)
        set(md_gpus 90)
      endif()
      set(CMAKE_CUDA_ARCHITECTURES ${md_gpus})
    endif()
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -lineinfo")
    enable_language(CUDA)
    find_package(CUDAToolkit 12 REQUIRED)
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${NCCL_ROOT}/include ${CUDAToolkit_INCLUDE_DIRS})
    find_library(NCCL_LIBRARY nccl HINTS ${NCCL_ROOT}/lib ${CUDAToolkit_LIBRARY_DIR})
    set(MINIDIRAC_HAVE_CUDA ON)
  elseif(md_cuda STREQUAL "ON")
    message(FATAL_ERROR "MINIDIRAC_CUDA=ON needs nvcc (CUDA Toolkit >= 12); none was found. "
                        "Put nvcc on PATH or set CMAKE_CUDA_COMPILER, or configure with MINIDIRAC_CUDA=AUTO.")
  endif()
endif()
message(STATUS "CUDA backends: ${MINIDIRAC_HAVE_CUDA}")
set(MINIDIRAC_HAVE_NCCL OFF)
if(MINIDIRAC_HAVE_CUDA AND NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
  set(MINIDIRAC_HAVE_NCCL ON)
endif()

add_library(md_flags INTERFACE)
# One set of objects for the program, libminidirac.a and libminidirac.so: position-independent, with
# no symbol for others but the functions of src/library/minidirac.h, so that calls stay direct.
target_compile_options(md_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-fvisibility=hidden;-fno-semantic-interposition>
                                          $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fvisibility=hidden>)
target_compile_options(
  md_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow;-Wstrict-prototypes;-Wvla;-Wpointer-arith>
                     $<$<AND:$<COMPILE_LANGUAGE:C>,$<BOOL:${MINIDIRAC_WERROR}>>:-Werror>
                     $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
                     $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${MINIDIRAC_WERROR}>>:-Werror=all-warnings>)
target_include_directories(md_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src
                                              ${PROJECT_BINARY_DIR}/generated)
# With 0 nothing is left of what stands behind if (MINIDIRAC_HAVE_CUDA && ...). Static functions for
# that are inline, so that they go with -O0 too.
target_compile_definitions(md_flags INTERFACE _GNU_SOURCE
                                              MINIDIRAC_HAVE_CUDA=$<BOOL:${MINIDIRAC_HAVE_CUDA}>)
if(MINIDIRAC_FUZZ AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "MINIDIRAC_FUZZ=ON needs clang for its libFuzzer, got ${CMAKE_C_COMPILER_ID}; "
                      "configure with -DCMAKE_C_COMPILER=clang")
endif()
if(MINIDIRAC_SANITIZE OR MINIDIRAC_FUZZ)
  set(sanitizers address,undefined)
  target_compile_options(md_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-fsanitize=${sanitizers}>
    $<$<COMPILE_LANGUAGE:C>:-fno-sanitize-recover=all;-fno-omit-frame-pointer>)
  target_link_options(md_flags INTERFACE -fsanitize=${sanitizers})
endif()

# md_library(NAME SOURCES ... LINK ...): one static library per folder.
function(md_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC md_flags ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY MD_LIBRARIES ${name})
endfunction()

# md_every_isa(NAME LIBRARY SOURCES ... FLAGS ...): compiles the sources once for each instruction set of
# base/instruction_set.h, which MD_ISA names, with the includes and links of LIBRARY, into LIBRARY.
function(md_every_isa name library)
  cmake_parse_arguments(ARG "" "" "SOURCES;FLAGS" ${ARGN})
  set(baseline_flags)
  set(avx2_flags -mavx2 -mfma -mf16c -mprfchw)
  set(avx512_flags -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl ${avx2_flags})
  set(sets baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    list(APPEND sets avx2 avx512)
  endif()
  foreach(isa IN LISTS sets)
    set(objects md_${name}_${isa})
    add_library(${objects} OBJECT ${ARG_SOURCES})
    target_link_libraries(${objects} PRIVATE $<TARGET_PROPERTY:${library},INTERFACE_LINK_LIBRARIES>)
    target_compile_definitions(${objects} PRIVATE MD_ISA=${isa})
    target_compile_options(${objects} PRIVATE ${${isa}_flags} ${ARG_FLAGS})
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${objects}>)
    set_property(GLOBAL APPEND PROPERTY MD_LIBRARIES ${objects}) # for libminidirac
  endforeach()
endfunction()
