#pragma once

#include <vector>

#include "common.hpp"
#include "mlnav/safety/checker.hpp"

namespace mlnav::bindings {

// Reports as columns by name, and columns back into reports: those that are there, but for the verdicts.
py::dict to_columns(const std::vector<AceReport>& rows);
void read_columns(const py::dict& columns, std::vector<AceReport>* rows);

}  // namespace mlnav::bindings
