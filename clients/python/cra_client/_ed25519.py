"""Verification of Ed25519 signatures (RFC 8032), in plain Python.

It only verifies and knows no secret, so its running time may depend on its input. It is as strict as the console's own
hooks: an encoding that is not canonical, a point of small order and a signature with a scalar that is too large are all
refused.
"""

from __future__ import annotations

import hashlib
from typing import Optional, Tuple

# The field, the order of the base point, and the constant of the curve.
_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_SQRT_MINUS_ONE = pow(2, (_P - 1) // 4, _P)

# Extended coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, xy = T/Z.
_Point = Tuple[int, int, int, int]

_NEUTRAL: _Point = (0, 1, 1, 0)


def _add(p: _Point, q: _Point) -> _Point:
    a = (p[1] - p[0]) * (q[1] - q[0]) % _P
    b = (p[1] + p[0]) * (q[1] + q[0]) % _P
    c = 2 * p[3] * q[3] * _D % _P
    d = 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _multiply_add(s: int, p: _Point, k: int, q: _Point) -> _Point:
    """Returns s * p + k * q."""
    both = _add(p, q)
    total = _NEUTRAL
    for bit in range(max(s.bit_length(), k.bit_length()) - 1, -1, -1):
        total = _add(total, total)
        s_bit, k_bit = s >> bit & 1, k >> bit & 1
        if s_bit and k_bit:
            total = _add(total, both)
        elif s_bit:
            total = _add(total, p)
        elif k_bit:
            total = _add(total, q)
    return total


def _is_neutral(p: _Point) -> bool:
    return p[0] % _P == 0 and (p[1] - p[2]) % _P == 0


def _has_small_order(p: _Point) -> bool:
    for _ in range(3):
        p = _add(p, p)
    return _is_neutral(p)


def _x_of(y: int, sign: int) -> Optional[int]:
    xx = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(xx, (_P + 3) // 8, _P)
    if (x * x - xx) % _P != 0:
        x = x * _SQRT_MINUS_ONE % _P
    if (x * x - xx) % _P != 0 or (x == 0 and sign):
        return None
    return _P - x if x & 1 != sign else x


def _decode(encoded: bytes) -> Optional[_Point]:
    if len(encoded) != 32:
        return None
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= _P:
        return None
    x = _x_of(y, sign)
    return None if x is None else (x, y, 1, x * y % _P)


def _base() -> _Point:
    y = 4 * pow(5, _P - 2, _P) % _P
    x = _x_of(y, 0)
    assert x is not None
    return (x, y, 1, x * y % _P)


_BASE = _base()


def is_valid_key(public_key: bytes) -> bool:
    """Returns whether these bytes are a public key. With a key of small order, one signature fits many texts."""
    point = _decode(public_key)
    return point is not None and not _has_small_order(point)


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Returns whether the owner of the key signed the message."""
    if len(signature) != 64:
        return False
    key, commitment = _decode(public_key), _decode(signature[:32])
    if key is None or commitment is None or _has_small_order(key) or _has_small_order(commitment):
        return False
    s = int.from_bytes(signature[32:], "little")
    if s >= _L:
        return False
    digest = hashlib.sha512(signature[:32] + public_key + message).digest()
    k = int.from_bytes(digest, "little") % _L
    # s * B = R + k * A, written as s * B + k * (-A) = R.
    minus_key = (_P - key[0], key[1], key[2], _P - key[3])
    found = _multiply_add(s, _BASE, k, minus_key)
    same_x = (found[0] * commitment[2] - commitment[0] * found[2]) % _P == 0
    same_y = (found[1] * commitment[2] - commitment[1] * found[2]) % _P == 0
    return same_x and same_y
