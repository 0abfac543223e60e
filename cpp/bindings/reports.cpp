#include "reports.hpp"

#include <cstdint>
#include <string>

namespace mlnav::bindings {
namespace {

template <typename T>
struct Column {
  const char* name;
  T AceReport::* member;
};
constexpr Column<Bounds> kBounds[] = {
    {"roll_rad", &AceReport::roll_rad},
    {"pitch_rad", &AceReport::pitch_rad},
    {"differential_rad", &AceReport::differential_rad},
    {"bogie_left_rad", &AceReport::bogie_left_rad},
    {"bogie_right_rad", &AceReport::bogie_right_rad},
    {"origin_z_m", &AceReport::origin_z_m},
};
constexpr Column<double> kNumbers[] = {
    {"tilt_max_rad", &AceReport::tilt_max_rad},
    {"clearance_min_m", &AceReport::clearance_min_m},
    {"relief_max_m", &AceReport::relief_max_m},
    {"margin_tilt_rad", &AceReport::margin_tilt_rad},
    {"margin_bogie_rad", &AceReport::margin_bogie_rad},
    {"margin_differential_rad", &AceReport::margin_differential_rad},
    {"margin_clearance_m", &AceReport::margin_clearance_m},
    {"margin_relief_m", &AceReport::margin_relief_m},
    {"risk", &AceReport::risk},
};
constexpr Column<int> kCounts[] = {
    {"inner_steps", &AceReport::inner_steps},
    {"lookups", &AceReport::lookups},
    {"ranges", &AceReport::ranges},
};

// The numbers of a column, `width` a row.
Array<double> numbers_of(const py::dict& columns, const char* name, std::size_t rows,
                         py::ssize_t width) {
  const auto array = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(
      py::object(columns[name]));
  const bool fits = array && array.ndim() == (width == 1 ? 1 : 2) &&
                    array.shape(0) == static_cast<py::ssize_t>(rows) &&
                    (width == 1 || array.shape(1) == width);
  if (!fits) {
    PyErr_Clear();
    throw py::value_error("a checker's report(poses): " + std::string(name) + " must be (" +
                          std::to_string(rows) + (width == 1 ? ",)" : ", 2)") + " numbers");
  }
  return array;
}

}  // namespace

py::dict to_columns(const std::vector<AceReport>& rows) {
  using R = const AceReport&;
  py::dict out;
  out["safe"] = column<bool>(rows, [](R r) { return r.safe; });
  out["reasons"] = column<Reasons>(rows, [](R r) { return r.reasons; });
  for (const auto& c : kBounds) out[c.name] = bounds_column(rows, [&](R r) { return r.*c.member; });
  for (const auto& c : kNumbers) {
    out[c.name] = column<double>(rows, [&](R r) { return r.*c.member; });
  }
  for (const auto& c : kCounts) {
    out[c.name] = column<std::int32_t>(rows, [&](R r) { return r.*c.member; });
  }
  return out;
}

void read_columns(const py::dict& columns, std::vector<AceReport>* rows) {
  const std::size_t n = rows->size();
  std::size_t known =
      (columns.contains("safe") ? 1U : 0U) + (columns.contains("reasons") ? 1U : 0U);
  for (const auto& c : kBounds) {
    if (!columns.contains(c.name)) continue;
    const Array<double> values = numbers_of(columns, c.name, n, 2);
    for (std::size_t i = 0; i < n; ++i) {
      (*rows)[i].*c.member = {values.data()[2 * i], values.data()[2 * i + 1]};
    }
    ++known;
  }
  for (const auto& c : kNumbers) {
    if (!columns.contains(c.name)) continue;
    const Array<double> values = numbers_of(columns, c.name, n, 1);
    for (std::size_t i = 0; i < n; ++i) (*rows)[i].*c.member = values.data()[i];
    ++known;
  }
  for (const auto& c : kCounts) {
    if (!columns.contains(c.name)) continue;
    const Array<double> values = numbers_of(columns, c.name, n, 1);
    for (std::size_t i = 0; i < n; ++i) {
      const double value = values.data()[i];
      if (!(value >= 0.0 && value <= 2147483647.0)) {
        throw py::value_error("a checker's report(poses): " + std::string(c.name) +
                              " must be counts");
      }
      (*rows)[i].*c.member = static_cast<int>(value);
    }
    ++known;
  }
  if (known != columns.size()) {
    std::string names;
    for (const auto& item : to_columns({})) names += " " + py::cast<std::string>(item.first);
    throw py::value_error("a checker's report(poses) has a column beside:" + names);
  }
}

}  // namespace mlnav::bindings
