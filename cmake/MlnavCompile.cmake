# How each kind of target is compiled.
#
#   mlnav_compile_core(target)   the planner core: strict warnings, no exceptions, no RTTI (but for
#                                the Python module)
#   mlnav_compile_host(target)   tests, benchmarks, examples, bindings: they use GoogleTest and
#                                pybind11, so exceptions and RTTI stay on
#
# -ffast-math and -march=native are never used: the same input must give the same bits everywhere.

set(MLNAV_GNU_LIKE FALSE)
if(CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang|AppleClang)$")
  set(MLNAV_GNU_LIKE TRUE)
endif()

function(_mlnav_compile_common target)
  if(NOT MLNAV_GNU_LIKE)
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow)
  if(MLNAV_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(MLNAV_SANITIZE)
    # vptr looks for type information that a core without RTTI does not have.
    target_compile_options(
      ${target} PRIVATE -fsanitize=${MLNAV_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${MLNAV_SANITIZE})
  endif()
endfunction()

function(mlnav_compile_host target)
  _mlnav_compile_common(${target})
endfunction()

function(mlnav_compile_core target)
  _mlnav_compile_common(${target})
  set_target_properties(
    ${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                         VISIBILITY_INLINES_HIDDEN ON)
  if(NOT MLNAV_GNU_LIKE)
    return()
  endif()

  # Public on purpose. The headers hold templates and inline functions that are compiled in whoever
  # includes them, and the linker keeps one copy of each for the whole program: a caller compiled
  # with contraction (GCC's default on targets with FMA) would not only compute other bits itself,
  # its copy could replace the library's. The option changes results, never the ABI, so passing it
  # on is safe; a caller that does not use CMake has to set it by hand. In BUILD_ and
  # INSTALL_INTERFACE alike, only for compilers that know the flag.
  target_compile_options(
    ${target} PUBLIC "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-ffp-contract=off>")

  # sqrt sets no errno here: one instruction, same bits, and loops over it can use vectors.
  target_compile_options(
    ${target} PRIVATE -Wconversion -Wdouble-promotion -fno-exceptions -fno-math-errno)
  if(NOT MLNAV_BUILD_PYTHON) # pybind11 takes typeid() of every class it binds
    target_compile_options(${target} PRIVATE -fno-rtti)
  endif()
  if(MLNAV_SANITIZE)
    # In the core alone, where a division by zero is a mistake; tests may make infinities to feed it.
    target_compile_options(
      ${target} PRIVATE -fsanitize=float-divide-by-zero -fno-sanitize-recover=all)
  endif()
  if(MLNAV_FLIGHT)
    target_compile_options(
      ${target} PRIVATE -Wvla -Walloca -Wframe-larger-than=${MLNAV_MAX_FRAME_BYTES})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(
        ${target} PRIVATE -Wstack-usage=${MLNAV_MAX_FRAME_BYTES} -fstack-usage)
    endif()
  endif()
endfunction()
