"""The protobuf wire format, as much of it as reading needs: fields of a message in a buffer, bounds checked.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The buffer is not a message: where, and why."""


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(value, next position) of an unsigned varint."""
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise WireError(f"byte {at}: a number of more than ten bytes")
    raise WireError(f"byte {at}: ends inside a number")


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(field number, value, stop) of a message in ``data[at:end]``, in the file's order.

    Of bytes, texts and messages ``data[value:stop]`` is the content. Of numbers ``stop`` is -1; fixed ones are given
    as they lie, as an unsigned integer.
    """
    while at < end:
        # Most numbers are of one byte: they are taken here, the others cost a call.
        key = data[at]
        at += 1
        if key >= 0x80:
            key, at = varint(data, at - 1, end)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            if at < end and data[at] < 0x80:
                value = data[at]
                at += 1
            else:
                value, at = varint(data, at, end)
            yield number, value, -1
        elif kind == _BYTES:
            if at < end and data[at] < 0x80:
                size = data[at]
                at += 1
            else:
                size, at = varint(data, at, end)
            stop = at + size
            if stop > end:
                raise WireError(f"byte {at}: {size} bytes were announced, {end - at} are left")
            yield number, at, stop
            at = stop
        elif kind in (_FIXED64, _FIXED32):
            stop = at + (8 if kind == _FIXED64 else 4)
            if stop > end:
                raise WireError(f"byte {at}: ends inside a number")
            yield number, int.from_bytes(data[at:stop], "little"), -1
            at = stop
        else:
            raise WireError(f"byte {at}: a field of wire type {kind}")
        if not number:
            raise WireError(f"byte {at}: a field without a number")


def signed(value: int) -> int:
    """An int64 from its unsigned varint."""
    return value - (1 << 64) if value >= 1 << 63 else value


def text(data: bytes, at: int, stop: int) -> str:
    return data[at:stop].decode("utf-8", "replace")
