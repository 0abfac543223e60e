"""The sensors that local maps come from."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from mlnav.config.section import NonNegative, PartSection, Positive, refusal


class Sensor(PartSection):
    """The base of all sensors."""

    kind: ClassVar[str] = "sensor"


class TruthSensor(Sensor):
    """The true heights around the rover."""

    name: Literal["truth"] = "truth"
    half_width_m: Positive = 16.0
    """Of the local map."""
    height_error_m: NonNegative = 0.0
    """No known height is off by more: `verified` proves for all ground within it."""


class Stereo(Sensor):
    """Stereo cameras on the mast; their points are averaged in the cells of a rolling map."""

    name: Literal["stereo"] = "stereo"
    half_width_m: Positive = 16.0
    """Of the local map, which keeps the points of earlier views."""
    resolution_m: Annotated[float, Field(ge=0.02, le=0.5)] = 0.1
    """Of its cells."""
    fill_m: Annotated[float, Field(ge=0, le=2)] = 0.4
    """Holes up to this wide (an even number of cells), most of them behind rocks, get the mean
    height around them, for costs and heuristics only: checkers use seen ground. 0: not filled."""
    mast_m: tuple[float, float, Positive] = (0.80, -0.56, 1.98)
    """The cameras' place: forward, left, up in the rover frame."""
    azimuth_deg: Annotated[list[float], Field(min_length=1, max_length=16)] = [0.0, 60.0, -60.0]
    """Of the views at every stop, left positive."""
    elevation_deg: Annotated[float, Field(ge=-90, le=30)] = -32.0
    """Of the middle of a view; up positive."""
    width_deg: Annotated[float, Field(gt=0, lt=180)] = 96.0
    height_deg: Annotated[float, Field(gt=0, lt=180)] = 73.0
    pixel_deg: Annotated[float, Field(ge=0.02, le=5)] = 0.075
    """Of the images: 1,280 over the width. Points are half a map cell apart (rows on level ground,
    columns at range_max_m), at least a pixel."""
    range_min_m: NonNegative = 0.5
    range_max_m: Annotated[float, Field(gt=0, le=1000)] = 12.0
    """There rows of pixels on level ground are a map cell apart, and ranges as uncertain."""
    baseline_m: Positive = 0.424
    disparity_sigma_px: NonNegative = 0.25
    """Error of matching: sigma of a range is range^2 x this x pixel [rad] / baseline."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Share of points that find no match."""
    height_error_m: NonNegative = 0.0
    """As of the truth sensor."""
    error_sigmas: NonNegative = 0.0
    """And so many sigmas of a cell's mean height, by the noise of its ranges: 3.3 hold for 99.9 %
    of the cells. That rough ground's mean is not the height at the centre is not in it."""
    known_start_m: NonNegative = 2.5
    """Ground this near the start is known, from the drive before."""

    @model_validator(mode="after")
    def _ranges_in_order(self) -> Self:
        if self.range_max_m <= self.range_min_m:
            raise refusal("range_max_m must be more than range_min_m")
        return self
