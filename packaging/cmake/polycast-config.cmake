# find_package(polycast): polycast::polycast serves the MPI calls of what is linked with it. Name it before MPI::MPI_C:
#   target_link_libraries(program PRIVATE polycast::polycast MPI::MPI_C)
get_filename_component(_polycast_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET polycast::polycast)
  add_library(polycast::polycast SHARED IMPORTED)
  set_target_properties(polycast::polycast PROPERTIES
    IMPORTED_LOCATION "${_polycast_prefix}/lib/polycast/libpolycast-mpi.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_polycast_prefix}/include"
    # Nothing of it need be named by the program.
    INTERFACE_LINK_OPTIONS "LINKER:--no-as-needed")
endif()
unset(_polycast_prefix)
