# Proves on the built flight library what its sources promise: nothing is allocated, thrown or kept
# in mutable globals, and no file, clock or thread is used. Run by ctest in the flight preset:
#   cmake -DNM=... -DSIZE=... -DLIBRARY=libmlnav_core.a -P check_flight_symbols.cmake
cmake_minimum_required(VERSION 3.25)

foreach(required NM SIZE LIBRARY)
  if(NOT ${required})
    message(FATAL_ERROR "${required} is not set")
  endif()
endforeach()

function(run out)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE rc ERROR_VARIABLE err)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed: ${err}")
  endif()
  string(REPLACE ";" "," text "${text}")
  string(REPLACE "\n" ";" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# Each is a regular expression for a whole undefined symbol, as nm prints it (mangled).
set(forbidden
    "_Zn[wa].*" # operator new, new[]
    "_Zd[la].*" # operator delete, delete[]: also what a virtual destructor drags in
    "malloc|calloc|realloc|aligned_alloc|posix_memalign|free"
    "__cxa_.*|_Unwind_.*|__gxx_personality.*" # throw, catch, guards of function-local statics, atexit
    "_ZSt[0-9]+__throw_.*" # the checks of std::vector, std::string, at()
    "__dynamic_cast|_ZTI.*|_ZTVN10__cxxabiv1.*" # RTTI
    "_ZNSt6thread.*|pthread_.*|_ZNSt6chrono.*|clock.*|time|gettimeofday|nanosleep"
    "fopen.*|open|read|write|printf|puts|fputs|fwrite|_ZSt4c(out|err|log|in)|getenv"
    "rand|srand|random|setjmp|longjmp|signal")
# An assertion of an invariant may stop the program, and a pure virtual call is a trap, not a throw.
set(allowed "__cxa_pure_virtual")
list(JOIN forbidden "|" forbidden)
set(forbidden "^(${forbidden})$")

set(problems "")
set(objects 0)
set(object "?")
run(lines ${NM} ${LIBRARY})
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+\\.o):$")
    set(object "${CMAKE_MATCH_1}")
    math(EXPR objects "${objects} + 1")
  elseif(line MATCHES "^ +[Uw] ([^ ]+)$")
    set(symbol "${CMAKE_MATCH_1}")
    if(symbol MATCHES "${forbidden}" AND NOT symbol IN_LIST allowed)
      string(APPEND problems "  ${object}: needs ${symbol}\n")
    endif()
  endif()
endforeach()
if(objects EQUAL 0)
  message(FATAL_ERROR "no object files found in ${LIBRARY}")
endif()

# Mutable globals live in .data and .bss; relocated constants (.data.rel.ro: vtables, tables of
# pointers) are read-only after loading and are no state.
run(lines ${SIZE} -A -d ${LIBRARY})
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+\\.o) ")
    set(object "${CMAKE_MATCH_1}")
  elseif(line MATCHES "^(\\.t?(data|bss|init_array|ctors)[^ ]*) +([0-9]+)")
    set(section "${CMAKE_MATCH_1}")
    set(bytes "${CMAKE_MATCH_3}")
    if(bytes GREATER 0 AND NOT section MATCHES "^\\.data\\.rel\\.ro")
      string(APPEND problems "  ${object}: ${bytes} bytes of mutable globals in ${section}\n")
    endif()
  endif()
endforeach()

if(problems)
  message(FATAL_ERROR "the flight library breaks its rules:\n${problems}")
endif()
message(STATUS "${objects} objects: no allocation, exception, RTTI, mutable global, file, clock or thread")
