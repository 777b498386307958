# Builds CUDA programs with a plain nvcc command line, exactly as their author would.
#
# The programs that klap_jit is tested and measured on must not know about it: CMake's own CUDA language support
# adds flags, splits device linking into steps of its own and picks architectures, so what it builds differs from
# what people run. One custom command per program keeps the command line in sight.
set(KLAP_CUDA_ARCH sm_90 CACHE STRING "Architecture of the test and benchmark programs, as for nvcc -arch")

# In the cache, because the functions below run in other folders' scopes.
set(KLAP_NVCC_FLAGS -O3 --Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror
  CACHE INTERNAL "Flags of all CUDA programs")

# klap_cuda_program(NAME FOLDER folder SOURCES a.cu b.cu [HEADERS h.h] [LIBRARIES l.a] [ARCH arch | GENCODE ...] [FLAGS ...]
#                   [WHOLE_PROGRAM])
# builds ${CMAKE_BINARY_DIR}/bin/FOLDER/NAME. WHOLE_PROGRAM leaves out -rdc=true. FLAGS come last, so they win.
# GENCODE lists "arch=compute_90,code=sm_90" and the like, in place of an ARCH.
#
# Compiled and linked by one nvcc command each, as from a makefile: what is compiled can be linked a second time, with
# something else in the place of the CUDA runtime (tests/emulator/cudart). The target FOLDER_NAME_objects has the
# properties KLAP_OBJECTS, KLAP_LINK_FLAGS and KLAP_LIBRARIES for that.
function(klap_cuda_program name)
  cmake_parse_arguments(ARG "WHOLE_PROGRAM" "FOLDER;ARCH" "SOURCES;HEADERS;LIBRARIES;FLAGS;GENCODE" ${ARGN})
  if(NOT ARG_ARCH)
    set(ARG_ARCH ${KLAP_CUDA_ARCH})
  endif()
  set(architectures -arch=${ARG_ARCH})
  if(ARG_GENCODE)
    list(TRANSFORM ARG_GENCODE PREPEND "-gencode=" OUTPUT_VARIABLE architectures)
  endif()
  set(output ${CMAKE_BINARY_DIR}/bin/${ARG_FOLDER}/${name})
  set(object_folder ${CMAKE_CURRENT_BINARY_DIR}/objects/${ARG_FOLDER}_${name})
  list(TRANSFORM ARG_HEADERS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(rdc -rdc=true)
  if(ARG_WHOLE_PROGRAM)
    set(rdc "")
  endif()
  set(flags ${rdc} ${architectures} ${KLAP_NVCC_FLAGS} ${ARG_FLAGS})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/bin/${ARG_FOLDER} ${object_folder})
  set(objects "")
  foreach(source ${ARG_SOURCES})
    get_filename_component(stem ${source} NAME_WE)
    set(object ${object_folder}/${stem}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} ${flags} -c -o ${object} ${CMAKE_CURRENT_SOURCE_DIR}/${source}
      DEPENDS ${source} ${ARG_HEADERS} ${ARG_LIBRARIES}
      COMMENT "nvcc ${ARG_FOLDER}/${name} ${stem}.o"
      VERBATIM COMMAND_EXPAND_LISTS)
    list(APPEND objects ${object})
  endforeach()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} ${flags} -o ${output} ${objects} ${ARG_LIBRARIES}
    DEPENDS ${objects} ${ARG_LIBRARIES}
    COMMENT "nvcc ${ARG_FOLDER}/${name}"
    VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${ARG_FOLDER}_${name}_objects DEPENDS ${objects})
  set_target_properties(${ARG_FOLDER}_${name}_objects PROPERTIES
    KLAP_OBJECTS "${objects}" KLAP_LINK_FLAGS "${flags}" KLAP_LIBRARIES "${ARG_LIBRARIES}")
  add_custom_target(${ARG_FOLDER}_${name} ALL DEPENDS ${output})
  add_dependencies(${ARG_FOLDER}_${name} ${ARG_FOLDER}_${name}_objects)
endfunction()

# klap_cuda_image(FILE FOLDER folder SOURCES a.cu [HEADERS h.h] FLAGS ...) makes a file with device code only: PTX or a fatbin.
function(klap_cuda_image file)
  cmake_parse_arguments(ARG "" "FOLDER" "SOURCES;HEADERS;FLAGS" ${ARGN})
  set(output ${CMAKE_BINARY_DIR}/bin/${ARG_FOLDER}/${file})
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/bin/${ARG_FOLDER})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -rdc=true -O3 ${ARG_FLAGS} -o ${output} ${ARG_SOURCES}
    DEPENDS ${ARG_SOURCES} ${ARG_HEADERS}
    COMMENT "nvcc ${ARG_FOLDER}/${file}"
    VERBATIM COMMAND_EXPAND_LISTS)
  string(REPLACE "." "_" target ${file})
  add_custom_target(${ARG_FOLDER}_${target} ALL DEPENDS ${output})
endfunction()
