// `verified` on sweeps: the way, and the tube about it, is covered with boxes (docs/verified_ace.md, "Sweeps").
#include <cmath>
#include <initializer_list>
#include <new>

#include "sweep_box.hpp"

namespace mlnav {

using namespace verified;

namespace {
constexpr int kMaxFirst = 64;  // stretches at first
constexpr int kMaxOpen = 160;  // stretches that wait
constexpr int kTubeBoxes = 8;  // a tube may take so many times the boxes of a way

// A stretch of the way, and a part of the tube about it, to be proven.
struct Stretch {
  Knot from, to;
  Offset at;
  Tube half;
};

}  // namespace

class SweepCover {
 public:
  // `sweep` and what the others refer to stay alive until prove() returns; it fills in `out`.
  void begin(const GridView& map, const RoverModel& model, const SettleModel& settle,
             const VerifiedConfig& config, const Sweep& sweep, AceReport* out) noexcept {
    map_ = map;
    model_ = &model;
    settle_ = &settle;
    config_ = &config;
    sweep_ = &sweep;
    out_ = out;
    length_m_ = sweep.length_m(model.geometry);
    work_ = CheckWork{};
    begun_ = false;
    open_ = 0;
    prover_.begin(map_, model, settle, &work_);
  }
  Reasons prove() noexcept;
  void count(AceReport* out) const noexcept {
    out->inner_steps = static_cast<int>(work_.boxes);
    out->lookups = static_cast<int>(work_.lookups);
    out->ranges = static_cast<int>(work_.ranges);
  }

 private:
  unsigned place(double fraction, const Offset& at, const double* start_heights_m,
                 Knot* knot) noexcept;
  unsigned divide(const Stretch& whole) noexcept;
  SweepProver::Result prove(const Stretch& stretch, unsigned* reasons) noexcept;
  bool joins(const Stretch& stretch, double least_half_m[kN]) noexcept;
  bool come_within(const SweepBox& from, bool ends_here, const Knot& knot,
                   const double into[kN][kN], const double most_m[kN], double half_m[kN],
                   double least[kN]) noexcept;
  bool ends(const Knot& knot) noexcept;
  double joint_m(const Pose2& pose) const noexcept;
  void include(const SweepBox& box) noexcept;
  bool push(const Stretch& stretch) noexcept {
    if (open_ == kMaxOpen) return false;
    stretch_[open_++] = stretch;
    return true;
  }

  GridView map_;
  const RoverModel* model_ = nullptr;
  const SettleModel* settle_ = nullptr;
  const VerifiedConfig* config_ = nullptr;
  const Sweep* sweep_ = nullptr;
  AceReport* out_ = nullptr;
  double length_m_ = 0.0;
  CheckWork work_;
  SweepProver prover_;
  SweepBox box_;
  SweepBox before_;     // the box that was proven last or, at first,
  bool begun_ = false;  // wheel heights within joint_m of the settled ones
  int open_ = 0;
  Stretch stretch_[kMaxOpen];
  Knot knots_[kMaxFirst + 1];
};

namespace {

bool within(const double a[kN], const double b[kN]) noexcept {
  bool inside = true;
  for (int i = 0; i < kN; ++i) inside &= a[i] <= b[i];
  return inside;
}

// Slopes of the axles' heights by the state at a knot.
void rises(const RoverModel& model, const Sweep& sweep, const Knot& knot,
           double d_up[kN][kN]) noexcept {
  SinCos steering[kWheels];
  sweep.steering_at(model.geometry, knot.fraction, steering);
  Turns<double> turns;
  turn_links(knot.q, &turns);
  Axles<double> axles;
  place_axles<true>(model.geometry, steering, turns, &axles);
  for (int i = 0; i < kN; ++i) {
    for (int j = 0; j < kN; ++j) d_up[i][j] = axles.d_up[i][j];
  }
}

}  // namespace

// The settled rover at a fraction of the way. Not 0: it is not safe there.
unsigned SweepCover::place(double fraction, const Offset& at, const double* start_heights_m,
                           Knot* knot) noexcept {
  SinCos steering[kWheels];
  sweep_->steering_at(model_->geometry, fraction, steering);
  const SettledState settled =
      settle(map_, *settle_, moved(sweep_->pose_at(fraction), at), steering, start_heights_m);
  work_.lookups += settled.lookups;
  if (settled.status != Status::kOk) return reason_of(settled.status);
  const ChainState<double>& s = settled.state;
  knot->fraction = fraction;
  knot->q[kRoll] = s.roll_rad;
  knot->q[kPitch] = s.pitch_rad;
  knot->q[kDifferentialState] = s.differential_rad;
  knot->q[kBogieLeft] = s.bogie_left_rad;
  knot->q[kBogieRight] = s.bogie_right_rad;
  knot->q[kHeight] = s.origin_z_m;
  for (int i = 0; i < kWheels; ++i) knot->heights_m[i] = settled.heights_m[i];
  const SafetyLimits& l = model_->limits;
  unsigned reasons = 0;
  if (tilt_rad(s) > l.tilt_max_rad) reasons |= kTilt;
  if (larger(std::fabs(s.bogie_left_rad), std::fabs(s.bogie_right_rad)) > l.bogie_max_rad)
    reasons |= kBogie;
  if (std::fabs(s.differential_rad) > l.differential_max_rad) reasons |= kDifferential;
  if (settled.relief_max_m > l.relief_max_m) reasons |= kRelief;
  return reasons;
}

Reasons SweepCover::prove() noexcept {
  const double wanted = std::ceil(length_m_ / config_->first_length_m - 1e-9);
  const int stretches = wanted > kMaxFirst ? kMaxFirst
                        : wanted > 1.0     ? static_cast<int>(wanted)
                                           : 1;
  // The ends are settled from the nominal wheels: sweeps that meet there agree on them.
  for (int i = 0; i <= stretches; ++i) {
    const bool end = i == 0 || i == stretches;
    const unsigned why = place(static_cast<double>(i) / stretches, {},
                               end ? nullptr : knots_[i - 1].heights_m, &knots_[i]);
    if (why != 0) return static_cast<Reasons>(why);
  }
  double d_up[kN][kN];
  rises(*model_, *sweep_, knots_[0], d_up);
  if (!invert(d_up, before_.y)) return kNotCertified;
  for (double& m : before_.image_m) m = joint_m(sweep_->pose_at(0.0));
  for (int i = stretches - 1; i >= 0; --i) push({knots_[i], knots_[i + 1], {}, model_->tracking});
  const int most = config_->max_boxes * (model_->tracking.none() ? 1 : kTubeBoxes);
  for (int boxes = 0; open_ > 0; ++boxes) {
    if (boxes == most) return kNotCertified;
    const Stretch stretch = stretch_[--open_];
    unsigned reasons = 0;
    const SweepProver::Result result = prove(stretch, &reasons);
    if (result == SweepProver::kProven) {
      include(box_);
      before_ = box_;
      begun_ = true;
      continue;
    }
    if (result == SweepProver::kNoGround) return static_cast<Reasons>(reasons);
    const unsigned why = divide(stretch);
    if (why == kNotCertified) return static_cast<Reasons>(reasons);
    if (why != 0) return static_cast<Reasons>(why);
  }
  return 0;
}

// Wheel heights about the settled ones that sweeps are held to where they meet: it depends on pose and map alone.
double SweepCover::joint_m(const Pose2& pose) const noexcept {
  constexpr double kJointPerError = 3.0;  // what the map's error leaves open
  constexpr double kNear_m = 1.5;
  return config_->joint_m + kJointPerError * height_error_m(map_, pose.x_m, pose.y_m, kNear_m);
}

// Halves a stretch along its longest side. kNotCertified: it is too short for that.
unsigned SweepCover::divide(const Stretch& whole) noexcept {
  constexpr double kArm_m = 1.3;  // heading counts by what it moves the wheels
  const double way = (whole.to.fraction - whole.from.fraction) * length_m_;
  const double sides[4] = {way, 2.0 * whole.half.along_m, 2.0 * whole.half.across_m,
                           2.0 * kArm_m * whole.half.heading_rad};
  int longest = 0;
  for (int i = 1; i < 4; ++i) {
    if (sides[i] > sides[longest]) longest = i;
  }
  if (sides[longest] < 2.0 * config_->shortest_m) return kNotCertified;
  Stretch a = whole, b = whole;
  if (longest == 0) {
    double start[kN];
    for (int i = 0; i < kN; ++i) start[i] = 0.5 * (whole.from.heights_m[i] + whole.to.heights_m[i]);
    Knot middle;
    const unsigned why =
        place(0.5 * (whole.from.fraction + whole.to.fraction), whole.at, start, &middle);
    if (why != 0) return why;
    a.to = b.from = middle;
  } else {
    double Tube::* const half = longest == 1   ? &Tube::along_m
                                : longest == 2 ? &Tube::across_m
                                               : &Tube::heading_rad;
    double Offset::* const at = longest == 1   ? &Offset::along_m
                                : longest == 2 ? &Offset::across_m
                                               : &Offset::heading_rad;
    a.half.*half = b.half.*half = 0.5 * (whole.half.*half);
    a.at.*at -= a.half.*half;
    b.at.*at += b.half.*half;
    for (Stretch* s : {&a, &b}) {
      for (Knot* knot : {&s->from, &s->to}) {
        const double start[kN] = {knot->heights_m[0], knot->heights_m[1], knot->heights_m[2],
                                  knot->heights_m[3], knot->heights_m[4], knot->heights_m[5]};
        const unsigned why = place(knot->fraction, s->at, start, knot);
        if (why != 0) return why;
      }
    }
  }
  return push(b) && push(a) ? 0U : unsigned{kNotCertified};
}

SweepProver::Result SweepCover::prove(const Stretch& stretch, unsigned* reasons) noexcept {
  // Offsets along and across are in the frame of the way, which the stretch's heading is turned against.
  Tube half = stretch.half;
  const double turned = std::fabs(stretch.at.heading_rad);
  half.along_m = stretch.half.along_m + turned * stretch.half.across_m;
  half.across_m = stretch.half.across_m + turned * stretch.half.along_m;
  double least_half_m[kN] = {};
  const SweepBox* const before = model_->tracking.none() ? &before_ : nullptr;
  SweepProver::Result result = prover_.prove(*sweep_, stretch.at, half, stretch.from, stretch.to,
                                             before, least_half_m, &box_, reasons);
  if (before == nullptr) return result;
  if (result == SweepProver::kProven && !joins(stretch, least_half_m)) {
    result = prover_.prove(*sweep_, stretch.at, half, stretch.from, stretch.to, before,
                           least_half_m, &box_, reasons);
    if (result == SweepProver::kProven && !joins(stretch, least_half_m))
      result = SweepProver::kNoBox;
    *reasons = kNotCertified;
  }
  if (result == SweepProver::kProven && open_ == 0 && !ends(stretch.to)) {
    *reasons = kNotCertified;
    result = SweepProver::kNoBox;
  }
  return result;
}

// Whether the box holds all that the one before can leave or, at the beginning, every settled state with wheel heights
// within joint_m of the settled ones. If not: what it has to hold.
bool SweepCover::joins(const Stretch& stretch, double least_half_m[kN]) noexcept {
  double half_m[kN], least[kN];
  for (int i = 0; i < kN; ++i) half_m[i] = before_.image_m[i];
  const bool held =
      come_within(before_, begun_, stretch.from, box_.jacobian, box_.half_m, half_m, least);
  for (int i = 0; i < kN && !held; ++i) least_half_m[i] = larger(least_half_m[i], 1.01 * least[i]);
  return held;
}

// Whether wheel heights are within joint_m of the settled ones at the end of the box.
bool SweepCover::ends(const Knot& knot) noexcept {
  double d_up[kN][kN], half_m[kN], least[kN], most[kN];
  rises(*model_, *sweep_, knot, d_up);
  for (int i = 0; i < kN; ++i) half_m[i] = box_.image_m[i];
  for (double& m : most) m = joint_m(sweep_->pose_at(1.0));
  return come_within(box_, true, knot, d_up, most, half_m, least);
}

// Whether all settled states at a knot that are within half_m in the coordinates of `from` are within most_m in others,
// of Jacobian `into`; `least` is where they are in these. Settled states are in the image of any set that holds them, so
// the set is mapped until it fits: by `from`, where that is a box that ends here, then by slopes of H at the knot.
bool SweepCover::come_within(const SweepBox& from, bool ends_here, const Knot& knot,
                             const double into[kN][kN], const double most_m[kN], double half_m[kN],
                             double least[kN]) noexcept {
  constexpr double kSteps_m[2] = {0.03, 0.003};
  constexpr int kMaxImages = 6;
  carry(into, from.y, half_m, least);
  if (within(least, most_m)) return true;
  SweepBox pose[2];
  const SweepBox* at = &from;
  for (int by = ends_here ? 0 : 1; by < 3; ++by) {
    if (by == 0) {
      if (!prover_.come_back(from)) continue;
    } else {
      SweepBox& next = pose[by - 1];
      if (!prover_.stand(*sweep_, {}, {}, knot, kSteps_m[by - 1], &next)) return false;
      double carried[kN];
      carry(next.jacobian, at->y, half_m, carried);
      for (int i = 0; i < kN; ++i) half_m[i] = carried[i];
      at = &next;
    }
    for (int image = 0; image < kMaxImages; ++image) {
      const bool shrinks = prover_.map_at(*at, by == 0, half_m);
      carry(into, at->y, half_m, least);
      if (within(least, most_m)) return true;
      if (!shrinks) break;
    }
  }
  return false;
}

// Bounds and margins of the sweep take in those of a box.
void SweepCover::include(const SweepBox& box) noexcept {
  const SafetyLimits& l = model_->limits;
  AceReport part;
  const auto hull = [&](int j) {
    return Bounds{smaller(box.q_from[j], box.q_to[j]) - box.state_half[j],
                  larger(box.q_from[j], box.q_to[j]) + box.state_half[j]};
  };
  part.roll_rad = hull(kRoll);
  part.pitch_rad = hull(kPitch);
  part.differential_rad = hull(kDifferentialState);
  part.bogie_left_rad = hull(kBogieLeft);
  part.bogie_right_rad = hull(kBogieRight);
  part.origin_z_m = hull(kHeight);
  const auto most = [](const Bounds& b) { return larger(-b.lo, b.hi); };
  part.tilt_max_rad = 0.0;
  for (const double* q : {box.q_from, box.q_to}) {
    const SinCos roll = det_sincos(std::fabs(q[kRoll]) + box.state_half[kRoll]);
    const SinCos pitch = det_sincos(std::fabs(q[kPitch]) + box.state_half[kPitch]);
    part.tilt_max_rad = larger(
        part.tilt_max_rad,
        det_atan2(std::sqrt(pitch.sin * pitch.sin + roll.sin * roll.sin * pitch.cos * pitch.cos),
                  pitch.cos * roll.cos) +
            1e-12);
  }
  part.clearance_min_m = box.clearance_m;
  part.relief_max_m = box.relief_m;
  part.margin_tilt_rad = l.tilt_max_rad - part.tilt_max_rad;
  part.margin_bogie_rad =
      l.bogie_max_rad - larger(most(part.bogie_left_rad), most(part.bogie_right_rad));
  part.margin_differential_rad = l.differential_max_rad - most(part.differential_rad);
  part.margin_clearance_m = part.clearance_min_m - l.clearance_min_m;
  part.margin_relief_m = l.relief_max_m - part.relief_max_m;
  if (begun_) {
    out_->include(part);
  } else {
    *out_ = part;
  }
}

std::size_t VerifiedChecker::memory_required() noexcept {
  return Arena::kAlignment + Arena::cost<SweepCover>(1);
}

Status VerifiedChecker::take_memory(Arena* arena) noexcept {
  void* const room = arena->take<SweepCover>(1);
  if (room == nullptr) return Status::kArenaTooSmall;
  cover_ = ::new (room) SweepCover;  // NOLINT(cppcoreguidelines-owning-memory): the arena's
  return Status::kOk;
}

AceReport VerifiedChecker::prove_sweep(const Sweep& sweep) const noexcept {
  AceReport proven;
  cover_->begin(map_, model_, settle_, config_, sweep, &proven);
  const Reasons reasons = cover_->prove();
  AceReport out;
  if (reasons == 0) out = proven;
  cover_->count(&out);
  out.reasons = reasons;
  out.safe = reasons == 0;
  return out;
}

}  // namespace mlnav
