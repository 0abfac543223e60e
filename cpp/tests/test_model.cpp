#include "mlnav/rover/model.hpp"

#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "mlnav/rover/settle.hpp"
#include "mlnav/safety/fixed_box.hpp"
#include "mlnav/safety/settle_checker.hpp"
#include "test_maps.hpp"

namespace mlnav {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Field {
  const char* name;
  double* (*of)(RoverModel*);
  // Values that a rover of otherwise default numbers cannot have.
  double too_low;
  double too_high;
};

// Every number of the model.
const Field kFields[] = {
    {"wheel_radius_m", [](RoverModel* m) { return &m->geometry.wheel_radius_m; }, 0.0, 0.81},
    {"wheel_width_m", [](RoverModel* m) { return &m->geometry.wheel_width_m; }, 0.0, 1.61},
    {"front_x_m", [](RoverModel* m) { return &m->geometry.front_x_m; }, 0.0, 20.1},
    {"rear_x_m", [](RoverModel* m) { return &m->geometry.rear_x_m; }, -20.1, 0.0},
    {"front_y_m", [](RoverModel* m) { return &m->geometry.front_y_m; }, 0.0, 20.1},
    {"middle_y_m", [](RoverModel* m) { return &m->geometry.middle_y_m; }, 0.0, 20.1},
    {"rear_y_m", [](RoverModel* m) { return &m->geometry.rear_y_m; }, 0.0, 20.1},
    {"rocker_pivot_x_m", [](RoverModel* m) { return &m->geometry.rocker_pivot_x_m; }, -1.1, 1.2},
    {"rocker_pivot_z_m", [](RoverModel* m) { return &m->geometry.rocker_pivot_z_m; }, 0.262, 20.1},
    {"bogie_pivot_x_m", [](RoverModel* m) { return &m->geometry.bogie_pivot_x_m; }, -1.1, 0.1},
    {"bogie_pivot_z_m", [](RoverModel* m) { return &m->geometry.bogie_pivot_z_m; }, 0.262, 20.1},
    {"pan_rear_x_m", [](RoverModel* m) { return &m->geometry.pan_rear_x_m; }, -20.1, 0.9},
    {"pan_front_x_m", [](RoverModel* m) { return &m->geometry.pan_front_x_m; }, -1.2, 20.1},
    {"pan_half_width_m", [](RoverModel* m) { return &m->geometry.pan_half_width_m; }, 0.0, 20.1},
    {"pan_height_m", [](RoverModel* m) { return &m->geometry.pan_height_m; }, 0.0, 20.1},
    {"clearance_min_m", [](RoverModel* m) { return &m->limits.clearance_min_m; }, -0.01, 0.61},
    {"tilt_max_rad", [](RoverModel* m) { return &m->limits.tilt_max_rad; }, 0.0, 45 * kDeg},
    {"bogie_max_rad", [](RoverModel* m) { return &m->limits.bogie_max_rad; }, 0.0, 45 * kDeg},
    {"differential_max_rad", [](RoverModel* m) { return &m->limits.differential_max_rad; }, 0.0,
     45 * kDeg},
    {"wheel_drop_max_m", [](RoverModel* m) { return &m->limits.wheel_drop_max_m; }, 0.0, 20.1},
    // Infinite: no limit.
    {"relief_max_m", [](RoverModel* m) { return &m->limits.relief_max_m; }, 0.0, kNan},
    {"along_m", [](RoverModel* m) { return &m->tracking.along_m; }, -0.01, 1.01},
    {"across_m", [](RoverModel* m) { return &m->tracking.across_m; }, -0.01, 1.01},
    {"heading_rad", [](RoverModel* m) { return &m->tracking.heading_rad; }, -0.01, 31 * kDeg},
};

TEST(RoverModel, TheFieldsAboveAreAllThereAre) {
  EXPECT_EQ(sizeof(RoverModel), std::size(kFields) * sizeof(double));
}

TEST(RoverModel, DefaultsAndLimitSetsAreValid) {
  EXPECT_TRUE(validate(RoverModel{}).ok());
  EXPECT_STREQ(validate(RoverModel{}).field, "");
  EXPECT_TRUE(validate(RoverModel{{}, SafetyLimits::enav_like()}).ok());
  EXPECT_TRUE(validate(RoverModel{{}, SafetyLimits::flight_like()}).ok());
}

// The numbers others rely on.
TEST(RoverModel, DefaultsAreTheDocumentedOnes) {
  const RoverGeometry g;
  EXPECT_EQ(g.wheel_radius_m, 0.263);
  EXPECT_EQ(g.front_x_m, 1.185);
  EXPECT_EQ(g.rear_x_m, -1.075);
  EXPECT_EQ(g.front_y_m, 1.0625);
  EXPECT_EQ(g.middle_y_m, 1.1845);
  EXPECT_EQ(g.rocker_pivot_x_m, 0.304);
  EXPECT_EQ(g.rocker_pivot_z_m, 0.893);
  EXPECT_EQ(g.bogie_pivot_x_m, -0.450);
  EXPECT_EQ(g.bogie_pivot_z_m, 0.663);
  const SafetyLimits flight = SafetyLimits::flight_like();
  EXPECT_EQ(flight.clearance_min_m, 0.20);
  EXPECT_DOUBLE_EQ(flight.tilt_max_rad, 25 * kDeg);
  EXPECT_DOUBLE_EQ(flight.bogie_max_rad, 17 * kDeg);
  EXPECT_DOUBLE_EQ(flight.differential_max_rad, 7 * kDeg);
  EXPECT_EQ(flight.relief_max_m, 0.30);
  const SafetyLimits enav = SafetyLimits::enav_like();
  EXPECT_EQ(enav.clearance_min_m, 0.06);
  EXPECT_DOUBLE_EQ(enav.tilt_max_rad, 30 * kDeg);
  EXPECT_DOUBLE_EQ(enav.bogie_max_rad, 25 * kDeg);
  EXPECT_DOUBLE_EQ(enav.differential_max_rad, 12 * kDeg);
  EXPECT_EQ(enav.wheel_drop_max_m, 0.22);
  EXPECT_TRUE(std::isinf(enav.relief_max_m));
}

TEST(RoverModel, ValidateNamesTheFieldThatIsWrong) {
  maps::Memory memory(FixedBoxChecker::memory_required(16));
  for (const Field& field : kFields) {
    const double highest = std::isnan(field.too_high) ? kNan : kInf;
    for (const double value : {kNan, highest, -kInf, -1e300, field.too_low, field.too_high}) {
      RoverModel model;
      *field.of(&model) = value;
      const Fault fault = validate(model);
      EXPECT_EQ(fault.status, Status::kConfigBad) << field.name << " = " << value;
      // The ends of the pan are bounded by each other: whichever is named is right.
      if (std::strncmp(field.name, "pan_", 4) != 0) {
        EXPECT_STREQ(fault.field, field.name) << value;
      } else {
        EXPECT_EQ(std::strncmp(fault.field, "pan_", 4) == 0 ||
                      std::strcmp(fault.field, "clearance_min_m") == 0,
                  true)
            << fault.field;
      }
      // And whoever takes a model refuses it by the same name.
      Arena arena(memory.data(), memory.size());
      FixedBoxChecker fixed_box;
      EXPECT_STREQ(fixed_box.init(model, {}, 16, &arena).field, fault.field);
      SettleChecker settle;
      EXPECT_STREQ(settle.init(model).field, fault.field);
    }
  }
}

TEST(RoverModel, OtherRoversAreAccepted) {
  // Half and twice the size, and a rover with a narrow middle.
  for (const double scale : {0.5, 2.0}) {
    RoverModel model;
    for (const Field& field : kFields) {
      if (std::strstr(field.name, "_rad") == nullptr) *field.of(&model) *= scale;
    }
    EXPECT_TRUE(validate(model).ok()) << validate(model).field;
  }
  RoverModel narrow;
  narrow.geometry.middle_y_m = 0.6;
  EXPECT_TRUE(validate(narrow).ok());
}

TEST(RoverModel, WheelPlanMirrorsLeftAndRight) {
  const RoverGeometry g;
  const WheelPlan plan = wheel_plan(g);
  EXPECT_EQ(plan.x_m[kFrontLeft], g.front_x_m);
  EXPECT_EQ(plan.x_m[kMiddleLeft], 0.0);
  EXPECT_EQ(plan.x_m[kRearLeft], g.rear_x_m);
  EXPECT_EQ(plan.y_m[kFrontLeft], g.front_y_m);
  EXPECT_EQ(plan.y_m[kMiddleLeft], g.middle_y_m);
  EXPECT_EQ(plan.y_m[kRearLeft], g.rear_y_m);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(plan.x_m[3 + i], plan.x_m[i]);
    EXPECT_EQ(plan.y_m[3 + i], -plan.y_m[i]);
  }
}

TEST(RoverModel, AValidModelMakesCheckersWithoutAFault) {
  maps::Memory memory(FixedBoxChecker::memory_required(16));
  Arena arena(memory.data(), memory.size());
  FixedBoxChecker fixed_box;
  const Fault box_fault = fixed_box.init(RoverModel{}, {}, 16, &arena);
  EXPECT_TRUE(box_fault.ok());
  EXPECT_STREQ(box_fault.field, "");
  SettleChecker settle;
  const Fault settle_fault = settle.init(RoverModel{});
  EXPECT_TRUE(settle_fault.ok());
  EXPECT_STREQ(settle_fault.field, "");
  SettleModel settle_model;
  EXPECT_EQ(make_settle_model(RoverGeometry{}, &settle_model), Status::kOk);
}

TEST(FixedBoxConfig, ValidateNamesTheField) {
  EXPECT_TRUE(validate(FixedBoxConfig{}).ok());
  for (const double bad : {kNan, kInf, -kInf, 0.0, -0.2, 1.1}) {
    EXPECT_STREQ(validate(FixedBoxConfig{bad, 0.2}).field, "half_length_m") << bad;
    EXPECT_STREQ(validate(FixedBoxConfig{0.2, bad}).field, "half_width_m") << bad;
  }
}

}  // namespace
}  // namespace mlnav
