"""Runs a program as Python would run it by its name."""
import hashlib
import os
import runpy
import sys
import traceback
import unittest


def run(command, seed):
    """`command` is the file and its arguments. The program may exit, or fail: its calls up to then are recorded."""
    path = os.path.abspath(command[0])
    sys.argv = [path, *command[1:]]
    sys.path.insert(0, os.path.dirname(path))
    shuffle_tests(seed)
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit:
        pass
    except Exception:
        traceback.print_exc()


def shuffle_tests(seed):
    """Has unittest run the tests of a class in an order of the seed, so that a program that is stopped has tried some
    of everything."""

    def place(name):
        return hashlib.sha256(f"{seed} {name}".encode()).digest()

    def compare(one, other):
        return (place(one) > place(other)) - (place(one) < place(other))

    unittest.TestLoader.sortTestMethodsUsing = staticmethod(compare)
