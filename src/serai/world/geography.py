"""Degrees and metres: where on earth a field lies, and places on the earth as places in the field."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from serai.world.grid import Floats

_EQUATOR_RADIUS_M = 6_378_137.0  # WGS 84
_FLATTENING = 1 / 298.257223563
_ECCENTRICITY_SQUARED = _FLATTENING * (2 - _FLATTENING)


class Origin(NamedTuple):
    """Where the plane of a field touches the earth (degrees), and where in that plane its lower left corner is."""

    lon: float
    lat: float
    east_m: float = 0.0
    north_m: float = 0.0

    def metres(self, lon: Floats, lat: Floats) -> tuple[Floats, Floats]:
        """Places on the earth as x and y from the field's lower left corner."""
        near = lon - 360.0 * np.rint((lon - self.lon) / 360.0)  # the same, seen from this side of the date line
        east, north = local_metres(near, lat, self.lon, self.lat)
        return east - self.east_m, north - self.north_m


def origin_of(lon: Floats, lat: Floats) -> Origin:
    """An origin for which the westernmost of some places has x = 0 and the southernmost y = 0.

    The parallel through the corner is no straight line: the southernmost need not be at the corner's latitude.
    """
    if np.ptp(lon) > 180.0:  # on both sides of the date line
        lon = np.where(lon < 0.0, lon + 360.0, lon)
    corner = float(lon.min()), float(lat.min())
    east, north = local_metres(lon, lat, *corner)
    return Origin(*corner, float(east.min()), float(north.min()))


def local_metres(lon: Floats, lat: Floats, lon0: float, lat0: float) -> tuple[Floats, Floats]:
    """East and north of points (degrees, WGS 84) as seen from (lon0, lat0), in metres."""
    from_corner = _earth_centred(lon, lat) - _earth_centred(np.array([lon0]), np.array([lat0]))
    dx, dy, dz = from_corner
    sin_lon, cos_lon = math.sin(math.radians(lon0)), math.cos(math.radians(lon0))
    sin_lat, cos_lat = math.sin(math.radians(lat0)), math.cos(math.radians(lat0))
    east = -sin_lon * dx + cos_lon * dy
    north = -sin_lat * (cos_lon * dx + sin_lon * dy) + cos_lat * dz
    return east, north


def _earth_centred(lon: Floats, lat: Floats) -> Floats:
    """Points of the ellipsoid as rows x, y, z in metres from the centre of the earth (ECEF)."""
    longitude, latitude = np.radians(lon), np.radians(lat)
    radius = _EQUATOR_RADIUS_M / np.sqrt(1 - _ECCENTRICITY_SQUARED * np.sin(latitude) ** 2)
    x = radius * np.cos(latitude) * np.cos(longitude)
    y = radius * np.cos(latitude) * np.sin(longitude)
    z = radius * (1 - _ECCENTRICITY_SQUARED) * np.sin(latitude)
    return np.stack((x, y, z))
