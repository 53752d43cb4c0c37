# The public headers: those that src/minidirac.h includes, and what they include in turn.
# tests/program/install.sh fails when a header is missing here or stands here without need.
set(MD_PUBLIC_HEADERS
  base/context.h base/device.h base/device_facts.h base/precision.h base/random.h base/status.h
  dirac/action.h dirac/operator.h dirac/operators.h dirac/precondition/precondition.h dirac/request.h dirac/system.h
  dirac/solvers/multishift.h dirac/solvers/solver.h
  gemm/gemm.h
  io/attribute.h io/lattice_file.h io/modes_file.h io/propagator.h
  lattice/fields/field.h lattice/fields/linear.h lattice/fields/modes.h lattice/fields/observables.h
  lattice/fields/source.h
  lattice/gauge/gauge.h lattice/gauge/heatbath.h lattice/gauge/phases.h
  lattice/halo/arrivals.h
  lattice/halo/halo.h
  lattice/geometry/conventions.h lattice/geometry/geometry.h
  md_version.h minidirac.h)

# Programs write <minidirac/...> and need one folder on their path: the copies name each other so.
set(MD_PUBLIC_DIR ${PROJECT_BINARY_DIR}/include)
foreach(header IN LISTS MD_PUBLIC_HEADERS)
  foreach(folder IN ITEMS ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
    if(EXISTS ${folder}/${header})
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${header})
      file(READ ${folder}/${header} text)
      string(REGEX REPLACE "#include \"([^\"]+)\"" "#include <minidirac/\\1>" text "${text}")
      file(CONFIGURE OUTPUT ${MD_PUBLIC_DIR}/minidirac/${header} CONTENT "${text}" @ONLY)
    endif()
  endforeach()
  if(NOT EXISTS ${MD_PUBLIC_DIR}/minidirac/${header})
    message(FATAL_ERROR "public header ${header} is in none of the source folders")
  endif()
endforeach()
