#!/usr/bin/env python3
"""Arrays on a GPU through the package: solutions and hops of sources that lie there are those of the same sources
on the host. Needs numpy and libcudart; takes CuPy and PyTorch too where they are. Exit code 77: no GPU here.

    MINIDIRAC_INPUTS=inputs MINIDIRAC_LIBRARY=build/libminidirac.so.0 PYTHONPATH=python tests/python/gpu_check.py
"""
import ctypes
import importlib.util
import os
import sys

import numpy as np

import minidirac as md


def cuda_runtime():
    for name in ("libcudart.so", "/usr/local/cuda/lib64/libcudart.so", "libcudart.so.13", "libcudart.so.12"):
        try:
            runtime = ctypes.CDLL(name)
        except OSError:
            continue
        count = ctypes.c_int()
        if runtime.cudaGetDeviceCount(ctypes.byref(count)) == 0 and count.value > 0:
            return runtime
    print("no CUDA runtime with a GPU")
    sys.exit(77)


RUNTIME = cuda_runtime()


def check(status):
    assert status == 0, f"CUDA error {status}"


class CudaArray:
    """A copy on the GPU of an array of numpy."""

    def __init__(self, array):
        pointer = ctypes.c_void_p()
        check(RUNTIME.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(array.nbytes)))
        check(RUNTIME.cudaMemcpy(pointer, array.ctypes, ctypes.c_size_t(array.nbytes), 1))
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": array.dtype.str, "strides": None,
                                         "data": (pointer.value, False), "version": 3}


def on_host(there):
    interface = there.__cuda_array_interface__
    array = np.empty(interface["shape"], dtype=interface["typestr"])
    check(RUNTIME.cudaMemcpy(array.ctypes, ctypes.c_void_p(interface["data"][0]), ctypes.c_size_t(array.nbytes), 2))
    return array


def refused(error, words, call):
    try:
        call()
    except error as fault:
        assert words in str(fault), fault
    else:
        raise AssertionError(f"not refused: {words}")


def same(there, here):
    """The same bits, in memory of the GPU."""
    assert isinstance(there, md.DeviceArray), there
    assert there.shape == here.shape and np.array_equal(on_host(there), here)


lattice = md.load(os.path.join(os.environ["MINIDIRAC_INPUTS"], "beta5.9_6x4x8x10.nersc"))
rng = np.random.default_rng(11)
b = rng.normal(size=(3, *lattice.shape, 3)) + 1j * rng.normal(size=(3, *lattice.shape, 3))
for backend in ("cuda", "cpu_simd"):
    for source in (b, b[0]):
        quark = md.Quark(lattice, "hisq", 3 if source is b else 1, backend=backend)
        there = CudaArray(source)
        for parity in (0, 1):
            same(quark.hop(there, parity), quark.hop(source, parity))
        same(quark.apply(there, 0.3), quark.apply(source, 0.3))
        host, device = quark.solve(source, 0.1), quark.solve(there, 0.1)
        assert host.converged and device.converged and device.iterations == host.iterations
        assert isinstance(host.x, np.ndarray) and isinstance(device.x, md.DeviceArray)
        assert np.allclose(on_host(device.x), host.x, rtol=0, atol=1e-9 * abs(host.x).max())
        assert isinstance(quark.solve(there, 0.1, space="host").x, np.ndarray)
        assert isinstance(quark.solve(source, 0.1, space="device").x, md.DeviceArray)
        assert quark.solve(there, 0.1, guess=device).iterations <= 2
for words in ({"precision": "half"}, {"precision": "single"}):  # fields of other precisions convert on the GPU
    quark = md.Quark(lattice, n_rhs=3, backend="cuda", **words)
    same(quark.apply(CudaArray(b), 0.3), quark.apply(b, 0.3))
mixed = md.solve(lattice, CudaArray(b), 0.1, action="hisq", backend="cuda", inner="single")
assert mixed.converged and mixed.residuals.max() < 1e-10
fake = md.DeviceArray(lattice.context, b.shape)  # zeros, and then a host address under its name
assert not on_host(fake).any()
liar = CudaArray(b)
liar.__cuda_array_interface__["data"] = (b.ctypes.data, False)
refused(md.InputError, "memory of GPU", lambda: md.solve(lattice, liar, 0.1))
refused(md.InputError, "without gaps", lambda: md.solve(lattice, CudaArray(b.astype("c8")), 0.1))
want = quark.apply(b, 0.3)
for name in ("cupy", "torch"):
    if not importlib.util.find_spec(name):
        print(f"without {name}")
        continue
    if name == "cupy":
        import cupy

        got = cupy.asnumpy(cupy.asarray(quark.apply(cupy.asarray(b), 0.3)))
    else:
        import torch

        got = torch.as_tensor(quark.apply(torch.from_numpy(b).cuda(), 0.3), device="cuda").cpu().numpy()
    assert np.array_equal(got, want), name
print(f"arrays on the GPU: in order, backend cuda of {md.version()}")
