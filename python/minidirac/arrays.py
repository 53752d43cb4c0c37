"""Arrays of callers: of numpy, or on the GPU by the CUDA array interface. Fields take and give both."""
from __future__ import annotations

from ctypes import c_void_p
from dataclasses import dataclass
from typing import Any, Dict, Tuple

import numpy as np

from .library import Context, Handle, InputError, shown


def check_shape(shape: Tuple[int, ...], wanted: Tuple[int, ...], what: str) -> None:
    """An InputError unless they are the same; -1: any extent."""
    if len(shape) != len(wanted) or any(want not in (-1, got) for want, got in zip(wanted, shape)):
        words = ", ".join("any" if extent < 0 else str(extent) for extent in wanted)
        raise InputError(f"{what} must have the shape ({words}), got {shape}")


def numbers(array: Any, what: str, kind: Any = np.complex128) -> np.ndarray:
    """An array of complex128 or float without gaps; the array itself where it is that."""
    try:
        there = np.asarray(array)
        if isinstance(array, np.ma.MaskedArray) and np.any(array.mask):  # what a mask hides is no number
            raise TypeError
        return there.astype(kind, order="C", casting="same_kind", subok=False, copy=False)
    except (TypeError, ValueError):
        rule, way = "numbers", "see help(minidirac)"
        if kind is float:
            rule, way = "real numbers", "take .real, .imag or abs"
        raise InputError(f"{what} must be {rule}, got {shown(array)}; {way}") from None


def complex_array(array: Any, shape: Tuple[int, ...], what: str) -> np.ndarray:
    """complex128 without gaps, of this shape (-1: any extent); the array itself where it is that."""
    array = numbers(array, what)
    check_shape(array.shape, shape, what)
    return array


def copied(pointer: Any, count: int) -> np.ndarray:
    """A numpy array of its own from memory of the library."""
    return np.ctypeslib.as_array(pointer, (count,)).copy()


class DeviceArray:
    """complex128 on the GPU of a context. cupy.asarray, torch.as_tensor and numba.cuda.as_cuda_array take it
    without a copy; whoever holds such an array is to hold this too, as these three do."""

    def __init__(self, on: Context, shape: Tuple[int, ...]):
        self.shape = tuple(shape)
        self.dtype = np.dtype(np.complex128)
        size = self.dtype.itemsize * int(np.prod(shape))
        self._memory: Handle = on.make("md_device_array_create", "md_device_array_destroy", on, size)

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        return {"shape": self.shape, "typestr": "<c16", "data": (self._memory._as_parameter_.value, False),
                "strides": None, "version": 3, "stream": None}  # what made it has ended

    def __repr__(self) -> str:
        return f"<minidirac.DeviceArray {self.shape}>"


@dataclass(frozen=True)
class Given:
    """An array that a caller gave, or the complex128 copy without gaps that numpy made of it."""

    array: Any
    address: int
    shape: Tuple[int, ...]
    space: str  # "host" or "device"


def given(array: Any) -> Given:
    """What the library reads of an array, without a copy where it is complex128 without gaps."""
    if isinstance(array, Given):
        return array
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        array = numbers(array, "a field")
        return Given(array, array.ctypes.data, array.shape, "host")
    if getattr(array, "is_conj", bool)():  # torch hands out what lies in memory
        raise InputError("an array on the GPU must not be a conjugate yet to be formed; call resolve_conj()")
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    whole = tuple(16 * int(np.prod(shape[axis + 1:])) for axis in range(len(shape)))
    if interface["typestr"] != "<c16" or strides is not None and tuple(strides) != whole:
        raise InputError(f"an array on the GPU must be complex128 without gaps, got {interface['typestr']} with "
                         f"strides {strides}; copy it into one")
    return Given(array, interface["data"][0], shape, "device")


def assign_field(on: Context, field: Handle, values: Given) -> None:
    """Of the values' shape."""
    function = "md_fermion_set_device" if values.space == "device" else "md_fermion_set"
    on.call(function, field, c_void_p(values.address))


def values_of(on: Context, field: Handle, shape: Tuple[int, ...], space: str = "host") -> Any:
    """A new array of numpy, or a DeviceArray on the "device"."""
    if space == "device":
        there = DeviceArray(on, shape)
        on.call("md_fermion_get_device", field, there._memory)
        return there
    array = np.empty(shape, dtype=np.complex128)
    on.call("md_fermion_get", field, array.ctypes)
    return array
