// Properties of every field table: complete, in step with its struct, and what validate() goes by.
#include "mlnav/fields.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "mlnav/plan/enav.hpp"
#include "mlnav/safety/fixed_box.hpp"
#include "mlnav/safety/probabilistic.hpp"
#include "mlnav/safety/verified.hpp"

namespace mlnav {
namespace {

// ---- members of a struct, counted: as many initialisers as its braces take ---------------------------

struct Anything {
  template <typename T>
  operator T() const;
};

template <typename S, typename Indices, typename = void>
struct Takes : std::false_type {};
template <typename S, std::size_t... I>
struct Takes<S, std::index_sequence<I...>, std::void_t<decltype(S{((void)I, Anything{})...})>>
    : std::true_type {};

template <typename S, std::size_t N = 1>
constexpr std::size_t initialisers() {
  if constexpr (Takes<S, std::make_index_sequence<N>>::value) {
    return initialisers<S, N + 1>();
  } else {
    return N - 1;
  }
}

template <typename S, typename T>
constexpr std::size_t initialisers_of(const NumberField<S, T>&) {
  return 1;
}
template <typename S, std::size_t N>
constexpr std::size_t initialisers_of(const ListField<S, N>&) {
  return N + 1;
}
template <typename S>
constexpr std::size_t initialisers_of(const FlagField<S>&) {
  return 1;
}
template <typename S, typename T, std::size_t N>
constexpr std::size_t initialisers_of(const ChoiceField<S, T, N>&) {
  return 1;
}
template <typename S, typename T>
constexpr std::size_t initialisers_of(const StructField<S, T>&) {
  return 1;
}

// ---- a value below and one above the range of a field, put into a copy of the defaults ---------------

template <typename S>
void expect_named(const S& config, const char* name, double lo, double hi, const char* unit,
                  double value) {
  const Fault fault = validate(config);
  EXPECT_EQ(fault.status, Status::kConfigBad) << name << " = " << value;
  EXPECT_STREQ(fault.field, name) << value;
  EXPECT_STREQ(fault.unit, unit) << name;
  if (std::isnan(value)) {
    EXPECT_TRUE(std::isnan(fault.value)) << name;
  } else {
    EXPECT_EQ(fault.value, value) << name;
  }
  // Rules between structs may be narrower than the table.
  EXPECT_GE(fault.lo, lo) << name;
  EXPECT_LE(fault.hi, hi) << name;
}

template <typename S, typename T>
void check(const NumberField<S, T>& field) {
  const S defaults;
  const double lo = field.lo.of(defaults), hi = field.hi.of(defaults);
  const double value = static_cast<double>(defaults.*field.member);
  EXPECT_LE(lo, value) << field.name;
  EXPECT_GE(hi, value) << field.name;
  const auto expect_bad = [&](T bad) {
    S config;
    config.*field.member = bad;
    expect_named(config, field.name, lo, hi, field.unit, static_cast<double>(bad));
  };
  if constexpr (std::is_floating_point_v<T>) {
    const double infinity = std::numeric_limits<double>::infinity();
    expect_bad(std::nextafter(lo, -infinity));
    expect_bad(-infinity);
    expect_bad(std::numeric_limits<double>::quiet_NaN());
    if (!std::isinf(hi)) {
      expect_bad(std::nextafter(hi, infinity));
      expect_bad(infinity);
    }
  } else {
    if (lo > 0.0 || std::is_signed_v<T>) expect_bad(static_cast<T>(lo - 1.0));
    expect_bad(static_cast<T>(hi + 1.0));
    if constexpr (std::is_signed_v<T>) expect_bad(std::numeric_limits<T>::min());
  }
}

template <typename S, std::size_t N>
void check(const ListField<S, N>& field) {
  const S defaults;
  const int count = defaults.*field.count;
  for (const int bad : {0, -1, static_cast<int>(N) + 1}) {
    S config;
    config.*field.count = bad;
    expect_named(config, field.count_name, 1.0, static_cast<double>(N), "", bad);
  }
  for (int i = 0; i < count; ++i) {
    EXPECT_LE(field.lo, (defaults.*field.member)[i]);
    EXPECT_GE(field.hi, (defaults.*field.member)[i]);
    for (const double bad : {std::nextafter(field.lo, -9.0), std::nextafter(field.hi, 9.0)}) {
      S config;
      (config.*field.member)[i] = bad;
      expect_named(config, field.name, field.lo, field.hi, field.unit, bad);
    }
  }
}

template <typename S>
void check(const FlagField<S>& field) {
  for (const bool value : {false, true}) {
    S config;
    config.*field.member = value;
    EXPECT_TRUE(validate(config).ok()) << field.name;
  }
}

template <typename S, typename T, std::size_t N>
void check(const ChoiceField<S, T, N>& field) {
  for (std::size_t i = 0; i <= N; ++i) {
    S config;
    config.*field.member = static_cast<T>(i);
    if (i < N) {
      EXPECT_TRUE(validate(config).ok()) << field.name << " = " << field.choices[i];
    } else {
      expect_named(config, field.name, 0.0, static_cast<double>(N - 1), "", static_cast<double>(i));
    }
  }
}

// Faults of a part are faults of the whole.
template <typename S, typename T>
void check(const StructField<S, T>& part) {
  for_each_field<T>([&](const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, NumberField<T, double>>) {
      S config;
      (config.*part.member).*field.member = std::numeric_limits<double>::quiet_NaN();
      EXPECT_STREQ(validate(config).field, field.name) << part.name;
    }
  });
}

// A struct of one choice, since no table of the core has to have one.
enum class Colour : std::uint8_t { kRed, kGreen };
inline constexpr const char* kColours[] = {"red", "green"};
struct Painted {
  Colour colour = Colour::kGreen;
};

}  // namespace

template <>
inline constexpr auto kFields<Painted> = std::tuple{choice("colour", &Painted::colour, kColours)};

namespace {

Fault validate(const Painted& painted) noexcept { return check_fields(painted); }

template <typename S>
class FieldTable : public ::testing::Test {};
using Structs = ::testing::Types<RoverGeometry, SafetyLimits, FixedBoxConfig, ProbabilisticConfig,
                                 VerifiedConfig, CostmapConfig, SobelConfig, RiskPricing,
                                 RiskPolicy, PathTreeConfig, EnavConfig, Painted>;
TYPED_TEST_SUITE(FieldTable, Structs);

TYPED_TEST(FieldTable, HasEveryMemberOfTheStructOnce) {
  constexpr std::size_t kListed = std::apply(
      [](const auto&... field) { return (std::size_t{0} + ... + initialisers_of(field)); },
      kFields<TypeParam>);
  EXPECT_EQ(kListed, initialisers<TypeParam>());
  std::set<std::string> names;
  for_each_field<TypeParam>([&](const auto& field) { names.insert(field.name); });
  EXPECT_EQ(names.size(), std::tuple_size_v<std::decay_t<decltype(kFields<TypeParam>)>>);
}

TYPED_TEST(FieldTable, DefaultsPass) { EXPECT_TRUE(validate(TypeParam{}).ok()); }

TYPED_TEST(FieldTable, ValidateNamesEachFieldBelowAndAboveItsRange) {
  for_each_field<TypeParam>([](const auto& field) { check(field); });
}

}  // namespace
}  // namespace mlnav
