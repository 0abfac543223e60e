# What `cmake --install BUILD --component core` lays down, for find_package(mlnav).
include(CMakePackageConfigHelpers)

set(_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/mlnav")

install(TARGETS mlnav_core EXPORT mlnavTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT core)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/cpp/include/mlnav" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT core FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(EXPORT mlnavTargets NAMESPACE mlnav:: DESTINATION "${_config_dir}" COMPONENT core)

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/mlnavConfig.cmake.in" "${PROJECT_BINARY_DIR}/mlnavConfig.cmake"
  INSTALL_DESTINATION "${_config_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/mlnavConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/mlnavConfig.cmake" "${PROJECT_BINARY_DIR}/mlnavConfigVersion.cmake"
        DESTINATION "${_config_dir}" COMPONENT core)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/mlnav" COMPONENT core)
