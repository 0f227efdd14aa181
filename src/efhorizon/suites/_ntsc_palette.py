"""The 128 colours of an NTSC Atari 2600 as ALE draws them: entry i is the colour of screen value 2 i.

Read off ale-py 0.12.1 by comparing `getScreen` with `getScreenRGB` in all games of the catalogue; no two entries are
equal, so screens differ in values exactly if they differ in colours.
"""

from __future__ import annotations

import numpy as np

_HEX = (
    "0000004a4a4a6f6f6f8e8e8eaaaaaac0c0c0d6d6d6ececec48480069690f86861da2a22abbbb35d2d240e8e84afcfc54"
    "7c2c00904811a26221b47a30c3903dd2a44adfb755ecc860901c00a33915b55328c66c3ad5824ae39759f0aa67fcbc74"
    "940000a71a1ab83232c84848d65c5ce46f6ff08080fc909084006497197aa8308fb846a2c659b3d46cc3e07cd2ec8ce0"
    "50008468199a7d30ad9246c0a459d0b56ce0c57ceed48cfc140090331aa34e32b56848c67f5cd5956fe3a980f0bc90fc"
    "000094181aa72d32b84248c8545cd6656fe47580f08490fc001c88183b9d2d57b04272c2548ad265a0e175b5ef84c8fc"
    "0030641850802d6d984288b054a0c565b7d975cceb84e0fc00403018624e2d8169429e8254b89965d1ae75e7c284fcd4"
    "0044001a661a32843248a0485cba5c6fd26f80e88090fc90143c00355f18527e2d6e9c4287b7549ed065b4e775c8fc84"
    "3038005059166d762b88923ea0ab4fb7c25fccd86ee0ec7c482c00694d14866a26a28638bb9f47d2b656e8cc63fce070"
)
PALETTE = np.frombuffer(bytes.fromhex(_HEX), np.uint8).reshape(128, 3)
PALETTE.flags.writeable = False
