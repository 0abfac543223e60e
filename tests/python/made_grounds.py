"""Grounds that several tests stand on."""

import numpy as np

from mlnav.terrain import Terrain


def ground(holes: bool = False) -> Terrain:
    """16 m of rolling ground with a dozen bumps; with holes, a strip that is unknown."""
    rng = np.random.default_rng(5)
    y, x = np.meshgrid(*[np.arange(160) * 0.1] * 2, indexing="ij")
    z = 0.15 * np.sin(0.8 * x) * np.cos(0.6 * y) + rng.normal(0.0, 0.004, x.shape)
    for _ in range(12):
        cx, cy = rng.uniform(2.0, 14.0, 2)
        z += 0.3 * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 0.2**2)
    if holes:
        z[130:150, 40:120] = np.nan
    return Terrain(z.astype(np.float32), 0.1, (-3.0, 2.0), name="bumps")
