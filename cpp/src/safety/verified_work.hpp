// Internals of `verified`: the rover's links with their derivatives, and the values of one pose. They are not
// in verified.cpp so that tests can examine single boxes.
#pragma once

#include <cmath>

#include "ball.hpp"
#include "mlnav/ground/wheel_range.hpp"
#include "mlnav/safety/verified.hpp"

namespace mlnav {
namespace verified {

constexpr int kN = 6;  // states and wheels alike
enum State : int { kRoll, kPitch, kDifferentialState, kBogieLeft, kBogieRight, kHeight };

// Every bound below is a sum of non-negative float64 terms with at most some thousand roundings each: its
// relative error is below 2^-40. kAbsolute covers cancellation: axle heights and places against H, whose
// values stay below kMaxHeight_m and kMaxOrigin_m.
constexpr double kWiden = 1.0 + 1e-12;
constexpr double kAbsolute = 1e-8;

inline double larger(double a, double b) noexcept { return a > b ? a : b; }
inline double smaller(double a, double b) noexcept { return a < b ? a : b; }

// Sine and cosine of the six angles that turn the linkage, as T.
template <typename T>
struct Turns {
  T sin_roll, cos_roll;
  T sin_pitch, cos_pitch;
  T sin_rocker[2], cos_rocker[2];  // left, right, from the horizontal
  T sin_bogie[2], cos_bogie[2];
};

// Where the axles are, in the heading frame about the rover's origin, how they lean, and how both
// change with the state.
template <typename T>
struct Axles {
  T up[kN], forward[kN], left[kN];
  T sin_lean[kN];
  // By the state, [wheel][state]; of the place, that of the wheel's foot (wheel_range.hpp).
  T d_up[kN][kN], d_forward[kN][kN], d_left[kN][kN], d_lean[kN][kN];
};

// The same links as detail::side_axles (kinematics.hpp), with their derivatives.
template <bool kDerivatives, typename T>
void place_axles(const RoverGeometry& g, const SinCos steering[kN], const Turns<T>& t,
                 Axles<T>* out) noexcept {
  const double r = g.wheel_radius_m;
  const double track[3] = {g.front_y_m, g.middle_y_m, g.rear_y_m};
  const T zero{0.0};
  const T one{1.0};
  const auto along = [](T sin, T cos, double x, double z) { return x * cos - z * sin; };
  const auto up = [](T sin, T cos, double x, double z) { return x * sin + z * cos; };
  const T pivot_x = along(t.sin_pitch, t.cos_pitch, g.rocker_pivot_x_m, g.rocker_pivot_z_m);
  const T pivot_z = up(t.sin_pitch, t.cos_pitch, g.rocker_pivot_x_m, g.rocker_pivot_z_m);
  for (int side = 0; side < 2; ++side) {
    const double s = side == 0 ? 1.0 : -1.0;
    const auto on_rocker = [&](double x, double z, T* px, T* pz) {
      *px = along(t.sin_rocker[side], t.cos_rocker[side], x, z);
      *pz = up(t.sin_rocker[side], t.cos_rocker[side], x, z);
    };
    T rocker_x[3], rocker_z[3], bogie_x[3], bogie_z[3];
    on_rocker(g.front_x_m - g.rocker_pivot_x_m, r - g.rocker_pivot_z_m, &rocker_x[0], &rocker_z[0]);
    on_rocker(g.bogie_pivot_x_m - g.rocker_pivot_x_m, g.bogie_pivot_z_m - g.rocker_pivot_z_m,
              &rocker_x[1], &rocker_z[1]);
    rocker_x[2] = rocker_x[1];
    rocker_z[2] = rocker_z[1];
    bogie_x[0] = bogie_z[0] = zero;
    const double at[3] = {0.0, -g.bogie_pivot_x_m, g.rear_x_m - g.bogie_pivot_x_m};
    for (int i = 1; i < 3; ++i) {
      bogie_x[i] = along(t.sin_bogie[side], t.cos_bogie[side], at[i], r - g.bogie_pivot_z_m);
      bogie_z[i] = up(t.sin_bogie[side], t.cos_bogie[side], at[i], r - g.bogie_pivot_z_m);
    }
    for (int i = 0; i < 3; ++i) {
      const int w = 3 * side + i;
      const double y = s * track[i];
      // In the side's plane: from the origin, and the parts that turn with rocker and bogie alone.
      const T lever_x = rocker_x[i] + bogie_x[i];
      const T lever_z = rocker_z[i] + bogie_z[i];
      const T x = pivot_x + lever_x;
      const T z = pivot_z + lever_z;
      out->up[w] = z * t.cos_roll + y * t.sin_roll;
      out->forward[w] = x;
      out->left[w] = y * t.cos_roll - z * t.sin_roll;
      // sin_lean, differentiated by roll and by the link's angle; asin' = 1 / cos. The foot is beside the
      // axle by radius times sin_lean.
      const T sin_link = i == 0 ? t.sin_rocker[side] : t.sin_bogie[side];
      const T cos_link = i == 0 ? t.cos_rocker[side] : t.cos_bogie[side];
      const SinCos& steered = steering[w];
      out->sin_lean[w] = sin_lean(steered, t.sin_roll, t.cos_roll, sin_link);
      if constexpr (!kDerivatives) continue;
      for (int q = 0; q < kN; ++q) {
        out->d_up[w][q] = out->d_forward[w][q] = out->d_left[w][q] = out->d_lean[w][q] = zero;
      }
      out->d_up[w][kRoll] = out->left[w];
      out->d_left[w][kRoll] = -out->up[w];
      out->d_up[w][kPitch] = x * t.cos_roll;
      out->d_forward[w][kPitch] = -z;
      out->d_left[w][kPitch] = -(x * t.sin_roll);
      out->d_up[w][kDifferentialState] = s * (lever_x * t.cos_roll);
      out->d_forward[w][kDifferentialState] = -(s * lever_z);
      out->d_left[w][kDifferentialState] = -(s * (lever_x * t.sin_roll));
      const int own_bogie = side == 0 ? kBogieLeft : kBogieRight;
      out->d_up[w][own_bogie] = bogie_x[i] * t.cos_roll;
      out->d_forward[w][own_bogie] = -bogie_z[i];
      out->d_left[w][own_bogie] = -(bogie_x[i] * t.sin_roll);
      out->d_up[w][kHeight] = one;
      const T per_cos = secant_of_sine(out->sin_lean[w]);
      const auto leans = [&](int q, T by_state) {
        out->d_lean[w][q] = by_state * per_cos;
        out->d_forward[w][q] = out->d_forward[w][q] - r * steered.sin * by_state;
        out->d_left[w][q] = out->d_left[w][q] + r * steered.cos * by_state;
      };
      leans(kRoll, steered.cos * t.cos_roll + steered.sin * (sin_link * t.sin_roll));
      const T by_link = -(steered.sin * (cos_link * t.cos_roll));
      leans(kPitch, by_link);
      leans(kDifferentialState, s * by_link);
      if (i > 0) leans(own_bogie, by_link);
    }
  }
}

}  // namespace verified

// How far each wheel's foot can be from its centre place, in the heading frame, and the wheel from its lean.
struct VerifiedChecker::Reach {
  double forward[kStates], left[kStates], lean[kStates];
};

// What is known about one pose.
struct VerifiedChecker::Work {
  Pose2 pose;
  SinCos heading;            // of the rover
  SinCos steering[kStates];  // of its wheels, against the rover
  SinCos steered[kStates];   // headings of the wheels
  bool everything = false;
  AceReport report;
  unsigned reasons = 0;
  double settled[kStates] = {};                        // where settling ends
  double q[kStates] = {};                              // centre of the box
  double half[kStates] = {};                           // half widths
  verified::Turns<double> turns;                       // of the centre
  verified::Axles<Ball> box;                           // over the box
  double forward[kStates], left[kStates];              // centre places of the wheels
  SinCos lean[kStates];                                // and their leans there
  Reach reach;                                         // how far from there H is known
  double slope_forward[kStates], slope_left[kStates];  // of H, heading frame
  double slope_lean[kStates];
  double y[kStates][kStates];
  double newton_step[kStates];    // -Y G(centre)
  double residual_half[kStates];  // |Y| times the half-widths of the residuals of H
  double image_half[kStates];     // the image of the box is within this of the centre + newton_step

  Point2 wheel(int i) const noexcept {
    return {pose.x_m + forward[i] * heading.cos - left[i] * heading.sin,
            pose.y_m + forward[i] * heading.sin + left[i] * heading.cos};
  }
  // Half sides, along the world's axes, of a rectangle that holds wheel i's reach. The last terms cover the
  // rounding of world coordinates and of the lean.
  WheelPlay play(int i) const noexcept {
    const double c = std::fabs(heading.cos);
    const double s = std::fabs(heading.sin);
    return {(reach.forward[i] * c + reach.left[i] * s) * verified::kWiden + verified::kAbsolute,
            (reach.forward[i] * s + reach.left[i] * c) * verified::kWiden + verified::kAbsolute,
            reach.lean[i] + verified::kAbsolute};
  }
  // The largest ratio of a wheel's motion to its reach; above 1, H is not known everywhere it is needed.
  double share_of_reach(const Reach& moves) const noexcept {
    double share = 0.0;
    for (int i = 0; i < kStates; ++i) {
      share = verified::larger(share, moves.forward[i] / reach.forward[i]);
      share = verified::larger(share, moves.left[i] / reach.left[i]);
      share = verified::larger(share, moves.lean[i] / reach.lean[i]);
    }
    return share;
  }
  void place(const verified::Axles<double>& axles) noexcept {
    for (int i = 0; i < kStates; ++i) {
      forward[i] = axles.forward[i];
      left[i] = axles.left[i];
      lean[i] = {axles.sin_lean[i], std::sqrt(1.0 - axles.sin_lean[i] * axles.sin_lean[i])};
    }
  }
};

}  // namespace mlnav
