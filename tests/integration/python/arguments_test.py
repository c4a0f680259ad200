# SPDX-License-Identifier: BSD-3-Clause
"""The package without a job: versions, calls before the start, arguments of init, and the spread of experts."""
import os
import subprocess
import sys
import unittest

import npushmem
from npushmem import _library, buffer


class Arguments(unittest.TestCase):
    def test_the_version_is_that_of_the_project(self):
        self.assertEqual(".".join(map(str, _library.VERSION)), PROJECT_VERSION)

    def test_calls_before_the_start_are_refused(self):
        for call in (npushmem.my_pe, npushmem.n_pes, npushmem.barrier_all, npushmem.finalize,
                     lambda: npushmem.Buffer(max_tokens=1), lambda: npushmem.empty(3)):
            with self.assertRaisesRegex(RuntimeError, "not initialised"):
                call()

    def test_init_refuses_wrong_ids(self):
        with self.assertRaisesRegex(ValueError, "has 128 bytes, not 3"):
            npushmem.init(b"abc", 0, 1)
        with self.assertRaisesRegex(TypeError, "needs rank and n_ranks"):
            npushmem.init(bytes(128))
        with self.assertRaises(npushmem.Error) as failure:
            npushmem.init(bytes(128), 0, 2)
        self.assertNotEqual(failure.exception.code, 0)
        self.assertTrue(str(failure.exception))

    def test_an_absent_library_is_named(self):
        environment = dict(os.environ, LIBNPUSHMEM="/no/such/library.so")
        ended = subprocess.run([sys.executable, "-c", "import npushmem"], env=environment, stderr=subprocess.PIPE, check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertIn(b"cannot load /no/such/library.so", ended.stderr)

    def test_experts_are_spread_in_blocks(self):
        for experts in (1, 2, 5, 8, 256):
            for ranks in (1, 2, 3, 8):
                blocks = [buffer._experts_of(rank, experts, ranks) for rank in range(ranks)]
                self.assertEqual([e for block in blocks for e in block], list(range(experts)))
                self.assertEqual(max(map(len, blocks)) - min(map(len, blocks)) <= 1, True)


if __name__ == "__main__":
    PROJECT_VERSION = sys.argv.pop()
    unittest.main()
