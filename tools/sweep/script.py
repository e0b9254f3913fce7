"""Runs a program as Python would run it by its name."""
import os
import runpy
import sys
import traceback


def run(command):
    """`command` is the file and its arguments. The program may exit, or fail: its calls up to then are recorded."""
    path = os.path.abspath(command[0])
    sys.argv = [path, *command[1:]]
    sys.path.insert(0, os.path.dirname(path))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit:
        pass
    except Exception:
        traceback.print_exc()
