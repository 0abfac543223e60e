// What the bindings of every room share: exact arrays, faults as exceptions, memory, columns of reports.
//
// Bindings are thin. Arrays arrive with the exact dtype and C order (mlnav.core converts); everything that
// computes releases the GIL. The stub python/mlnav/_core.pyi documents the API.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "mlnav/rover/model.hpp"
#include "mlnav/rover/sweep.hpp"
#include "mlnav/status.hpp"
#include "mlnav/types.hpp"

namespace mlnav::bindings {

namespace py = pybind11;

template <typename T>
using Array = py::array_t<T, py::array::c_style>;

struct CoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// CoreError unless the status is kOk.
void require(Status status, const char* field = "");
// With the range that a value is out of; angles in degrees, as people write them.
void require(const Fault& fault);

// Owns the aligned memory an Arena hands out.
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::size_t bytes) : bytes_(bytes + Arena::kAlignment), data_(new char[bytes_]) {
    arena_ = Arena(data_.get(), bytes_);
  }
  Arena* arena() { return &arena_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
  std::unique_ptr<char[]> data_;
  Arena arena_;
};

std::vector<Stance> to_stances(const Array<double>& array);
// Rows of a stance, or of five or six numbers: extent too, and the curvature that the wheels are steered from at a
// standstill (NaN: they are not).
std::vector<Sweep> to_sweeps(const Array<double>& array);
Array<double> to_array(const std::vector<Pose2>& poses);  // (n, 3)
Array<float> copy_floats(const float* data, py::ssize_t ny, py::ssize_t nx);

// A column of a report: one value, or two bounds, per row.
template <typename T, typename Row, typename Get>
py::array column(const std::vector<Row>& rows, Get get) {
  Array<T> out(static_cast<py::ssize_t>(rows.size()));
  T* p = out.mutable_data();
  for (std::size_t i = 0; i < rows.size(); ++i) p[i] = static_cast<T>(get(rows[i]));
  return out;
}
template <typename Row, typename Get>
py::array bounds_column(const std::vector<Row>& rows, Get get) {
  Array<double> out({static_cast<py::ssize_t>(rows.size()), py::ssize_t{2}});
  double* p = out.mutable_data();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Bounds b = get(rows[i]);
    p[2 * i] = b.lo;
    p[2 * i + 1] = b.hi;
  }
  return out;
}
template <typename Row, typename Get>
py::array wheel_column(const std::vector<Row>& rows, Get get) {
  Array<double> out({static_cast<py::ssize_t>(rows.size()), py::ssize_t{kWheels}});
  double* p = out.mutable_data();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double* six = get(rows[i]);
    for (int w = 0; w < kWheels; ++w) p[kWheels * i + static_cast<std::size_t>(w)] = six[w];
  }
  return out;
}

// Each room adds its classes and functions to the module.
void bind_ground(py::module_& m);
void bind_rover(py::module_& m);
void bind_safety(py::module_& m);
void bind_search(py::module_& m);
void bind_plan(py::module_& m);

}  // namespace mlnav::bindings
