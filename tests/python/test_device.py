"""Arrays on a GPU where there is none: what is refused, and how. gpu_check.py is for machines that have one."""
import unittest

import numpy as np

import minidirac as md


class Fake:
    """The CUDA array interface over memory of the host."""

    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": array.dtype.str, "strides": None,
                                         "data": (array.ctypes.data, False), "version": 3, **changes}


class Device(unittest.TestCase):
    def test_refusals(self):
        lattice = md.Lattice(np.broadcast_to(np.eye(3), (4, 4, 4, 4, 4, 3, 3)))
        b = np.zeros((3, *lattice.shape, 3), dtype=complex)
        # Without CUDA or a GPU there is no device; with one this memory is not on it.
        for call in (lambda: md.solve(lattice, Fake(b)), lambda: md.hop(lattice, Fake(b[0])),
                     lambda: md.Quark(lattice, n_rhs=3).apply(Fake(b)),
                     lambda: md.solve(lattice, b + 1, guess=Fake(b))):
            with self.assertRaisesRegex(md.Error, "no GPU support.*MINIDIRAC_CUDA=ON|GPU|CUDA") as caught:
                call()
            self.assertIsInstance(caught.exception, (md.MachineError, md.InputError))
        for words, wrong in (("without gaps, got <c8", Fake(b.astype("c8"))),
                             (r"strides \(1, 2", Fake(b, strides=(1, 2, 3, 4, 5, 6))),
                             ("must have the shape", Fake(b[..., :2].copy()))):
            with self.assertRaisesRegex(md.InputError, words):
                md.solve(lattice, wrong)
        with self.assertRaisesRegex(md.InputError, "host|device"):
            md.solve(lattice, b, space="moon")
        whole = tuple(np.zeros((3, *lattice.shape, 3), dtype=complex).strides)  # no gaps, as strides say
        with self.assertRaisesRegex(md.Error, "GPU|CUDA"):
            md.solve(lattice, Fake(b, strides=whole))


if __name__ == "__main__":
    unittest.main()
