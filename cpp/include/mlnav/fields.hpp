// Field tables: each field of a configuration struct once, with its unit, range and meaning. Its default is that
// of the struct. From kFields<Struct>, which stands below the struct, follow
//  - validate(): check_fields() names the first field out of its range; rules between structs are code,
//  - the Python class of the struct, its stub and its model in the configuration file
//    (python -m mlnav.config.generate).
// A new field is a line in the struct and a line in its table.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "mlnav/status.hpp"

namespace mlnav {

// One end of a closed range: a number, or another field of the struct plus a number.
template <typename S>
struct Limit {
  constexpr Limit(double value) noexcept : number(value) {}
  constexpr Limit(double S::* other, double plus = 0.0) noexcept : field(other), number(plus) {}
  constexpr double of(const S& config) const noexcept {
    return field == nullptr ? number : config.*field + number;
  }

  double S::* field = nullptr;
  double number;
};

// A number, in the range [lo, hi]. An infinite hi: no limit.
template <typename S, typename T>
struct NumberField {
  const char* name;
  const char* unit;  // "rad": degrees for people. "": a plain number
  T S::* member;
  Limit<S> lo;
  Limit<S> hi;
  const char* words;
};

// Up to N numbers, each in [lo, hi], and how many there are: at least one.
template <typename S, std::size_t N>
struct ListField {
  const char* name;
  const char* unit;
  double (S::*member)[N];
  int S::* count;
  const char* count_name;
  double lo;
  double hi;
  const char* words;
};

template <typename S>
struct FlagField {
  const char* name;
  bool S::* member;
  const char* words;
};

// One of N values by name; the values are 0 to N - 1, the names in their order.
template <typename S, typename T, std::size_t N>
struct ChoiceField {
  static_assert(std::is_enum_v<T>);
  const char* name;
  T S::* member;
  const char* const (&choices)[N];
  const char* words;
};

// A struct with a table of its own.
template <typename S, typename T>
struct StructField {
  const char* name;
  T S::* member;
  const char* words;
};

// What tables are written with.
template <typename T>
struct Identity {
  using Type = T;
};
template <typename S, typename T>
constexpr NumberField<S, T> number(const char* name, const char* unit, T S::* member,
                                   typename Identity<Limit<S>>::Type lo,
                                   typename Identity<Limit<S>>::Type hi,
                                   const char* words = "") noexcept {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
  return {name, unit, member, lo, hi, words};
}
template <typename S, std::size_t N>
constexpr ListField<S, N> list(const char* name, const char* unit, double (S::*member)[N],
                               int S::* count, const char* count_name, double lo, double hi,
                               const char* words = "") noexcept {
  return {name, unit, member, count, count_name, lo, hi, words};
}
template <typename S>
constexpr FlagField<S> flag(const char* name, bool S::* member, const char* words = "") noexcept {
  return {name, member, words};
}
template <typename S, typename T, std::size_t N>
constexpr ChoiceField<S, T, N> choice(const char* name, T S::* member,
                                      const char* const (&choices)[N],
                                      const char* words = "") noexcept {
  return {name, member, choices, words};
}
template <typename S, typename T>
constexpr StructField<S, T> part(const char* name, T S::* member, const char* words = "") noexcept {
  return {name, member, words};
}

// The table of a struct: a tuple of the fields above. Specialised below each struct.
template <typename S>
inline constexpr std::nullptr_t kFields = nullptr;

template <typename S, typename T>
Fault check_field(const S& config, const NumberField<S, T>& field) noexcept {
  const Range range[] = {{static_cast<double>(config.*field.member), field.lo.of(config),
                          field.hi.of(config), field.name, field.unit}};
  return out_of_range(range);
}
template <typename S, std::size_t N>
Fault check_field(const S& config, const ListField<S, N>& field) noexcept {
  const int count = config.*field.count;
  const Range counted[] = {{count * 1.0, 1.0, static_cast<double>(N), field.count_name, ""}};
  Fault fault = out_of_range(counted);
  for (int i = 0; fault.ok() && i < count; ++i) {
    const Range range[] = {{(config.*field.member)[i], field.lo, field.hi, field.name, field.unit}};
    fault = out_of_range(range);
  }
  return fault;
}
template <typename S>
Fault check_field(const S& /*config*/, const FlagField<S>& /*field*/) noexcept {
  return {};
}
template <typename S, typename T, std::size_t N>
Fault check_field(const S& config, const ChoiceField<S, T, N>& field) noexcept {
  using Number = std::underlying_type_t<T>;
  const Range range[] = {{static_cast<double>(static_cast<Number>(config.*field.member)), 0.0,
                          static_cast<double>(N - 1), field.name, ""}};
  return out_of_range(range);
}
template <typename S, typename T>
Fault check_field(const S& config, const StructField<S, T>& field) noexcept {
  return validate(config.*field.member);
}

// Calls visit(field) for every field of the struct's table, in its order.
template <typename S, typename Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&visit](const auto&... field) { (visit(field), ...); }, kFields<S>);
}

// The first fault, in the order of the table.
template <typename S>
Fault check_fields(const S& config) noexcept {
  Fault fault;
  for_each_field<S>([&](const auto& field) {
    if (fault.ok()) fault = check_field(config, field);
  });
  return fault;
}

}  // namespace mlnav
