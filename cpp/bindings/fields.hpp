// Configuration structs from their field tables: class, attributes, validate(), and the entry in _core.FIELDS.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "common.hpp"
#include "mlnav/fields.hpp"

namespace mlnav::bindings {

// One end of a range; None where another field decides.
template <typename S>
py::object limit_of(const Limit<S>& limit) {
  return limit.field == nullptr ? py::cast(limit.number) : py::none();
}

template <typename Row>
py::dict describe(const Row& field, const std::string& type, const char* unit, py::object value,
                  py::object lo, py::object hi) {
  py::dict out;
  out["name"] = field.name;
  out["type"] = type;
  out["unit"] = unit;
  out["default"] = value;
  out["lo"] = lo;
  out["hi"] = hi;
  out["words"] = field.words;
  return out;
}

template <typename S, typename T>
py::dict bind_field(py::class_<S>& type, const NumberField<S, T>& field) {
  type.def_readwrite(field.name, field.member);
  return describe(field, std::is_floating_point_v<T> ? "float" : "int", field.unit,
                  py::cast(S{}.*field.member), limit_of(field.lo), limit_of(field.hi));
}

template <typename S, std::size_t N>
py::dict bind_field(py::class_<S>& type, const ListField<S, N>& field) {
  const auto get = [field](const S& self) {
    const double* const values = self.*field.member;
    return std::vector<double>(values, values + self.*field.count);
  };
  type.def_property(field.name, get, [field](S& self, const std::vector<double>& values) {
    if (values.empty() || values.size() > N) {
      throw CoreError(std::string(field.name) + " needs 1 to " + std::to_string(N) + " values");
    }
    for (std::size_t i = 0; i < values.size(); ++i) (self.*field.member)[i] = values[i];
    self.*field.count = static_cast<int>(values.size());
  });
  py::dict out = describe(field, "list[float]", field.unit, py::cast(get(S{})), py::cast(field.lo),
                          py::cast(field.hi));
  out["max_length"] = N;
  return out;
}

template <typename S>
py::dict bind_field(py::class_<S>& type, const FlagField<S>& field) {
  type.def_readwrite(field.name, field.member);
  return describe(field, "bool", "", py::cast(S{}.*field.member), py::none(), py::none());
}

template <typename S, typename T, std::size_t N>
py::dict bind_field(py::class_<S>& type, const ChoiceField<S, T, N>& field) {
  const auto get = [field](const S& self) {
    return std::string(field.choices[static_cast<std::size_t>(self.*field.member)]);
  };
  type.def_property(field.name, get, [field](S& self, const std::string& chosen) {
    std::string known;
    for (std::size_t i = 0; i < N; ++i) {
      if (chosen == field.choices[i]) {
        self.*field.member = static_cast<T>(i);
        return;
      }
      known += std::string(i == 0 ? "" : ", ") + field.choices[i];
    }
    throw CoreError(std::string(field.name) + " is '" + chosen + "', must be one of: " + known);
  });
  py::dict out = describe(field, "str", "", py::cast(get(S{})), py::none(), py::none());
  out["choices"] = std::vector<std::string>(field.choices, field.choices + N);
  return out;
}

template <typename S, typename T>
py::dict bind_field(py::class_<S>& type, const StructField<S, T>& field) {
  type.def_readwrite(field.name, field.member);
  return describe(field, py::cast<std::string>(py::type::of<T>().attr("__name__")), "", py::none(),
                  py::none(), py::none());
}

template <typename S>
py::class_<S> bind_config(py::module_& m, const char* name) {
  py::class_<S> type(m, name);
  type.def(py::init<>());
  type.def("validate", [](const S& self) { require(validate(self)); });
  py::list rows;
  for_each_field<S>([&](const auto& field) { rows.append(bind_field(type, field)); });
  m.attr("FIELDS")[name] = py::tuple(rows);
  return type;
}

}  // namespace mlnav::bindings
