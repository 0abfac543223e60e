# Installs the core into an empty prefix, then configures, builds and runs tests/consumer against it,
# as a foreign project with find_package(mlnav) would, and builds the examples the same way. Run by ctest:
#   cmake -DBUILD=... -DCONSUMER=tests/consumer -DEXAMPLES=cpp/examples -DWORK=... -DCXX=...
#         -DGENERATOR=... -DMAKE_PROGRAM=... -DVERSION=... -P check_consumer.cmake
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

function(step name)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE rc OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "${name} failed (${rc}):\n${out}")
  endif()
  message(STATUS "${name}: ok")
endfunction()

function(build_against_install name source)
  step("configure ${name}" ${CMAKE_COMMAND} -S "${source}" -B "${WORK}/${name}" -G "${GENERATOR}"
       "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}"
       "-DCMAKE_PREFIX_PATH=${WORK}/prefix" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON ${ARGN})
  step("build ${name}" ${CMAKE_COMMAND} --build "${WORK}/${name}")
endfunction()

step(install ${CMAKE_COMMAND} --install "${BUILD}" --component core --prefix "${WORK}/prefix")
build_against_install(consumer "${CONSUMER}" "-DMLNAV_EXPECTED_VERSION=${VERSION}")
step("run consumer" "${WORK}/consumer/consumer")
build_against_install(examples "${EXAMPLES}")
file(GLOB programs "${WORK}/examples/example_*")
foreach(program IN LISTS programs)
  cmake_path(GET program FILENAME name)
  if(NOT name MATCHES "\\.")
    step("run ${name}" "${program}")
  endif()
endforeach()

# The flag has to reach whoever compiles the headers, see MlnavCompile.cmake.
file(READ "${WORK}/consumer/compile_commands.json" commands)
if(NOT commands MATCHES "-ffp-contract=off")
  message(FATAL_ERROR "the installed package does not hand -ffp-contract=off to its users")
endif()
# So has the assertion mode: inline functions of the headers assert too.
if(NOT commands MATCHES "MLNAV_ASSERT_MODE=MLNAV_ASSERT_")
  message(FATAL_ERROR "the installed package does not hand its assertion mode to its users")
endif()
if(commands MATCHES "-fno-exceptions|-fno-rtti|-Werror")
  message(FATAL_ERROR "the installed package forces its own rules on its users")
endif()
