#!/usr/bin/env python3
"""Makes cases with the PyTorch of the Python that runs this. `./rush sweep` starts it: record.py SETTINGS.json"""
import contextlib
import json
import os
import pathlib
import signal
import sys

import torch

import script
from case_files import CaseFiles
from recorder import Functions, Operators, Recorder


def main():
    settings = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folder = pathlib.Path(settings["folder"])
    torch.set_num_threads(1)
    recorder = Recorder(
        CaseFiles(folder), frozenset(settings["operators"]), settings["filter"], settings["dtypes"], settings["most"],
        settings["most_alike"], settings["seconds"])

    def finish():
        recorder.files.flush()
        (folder / "summary.json").write_text(json.dumps({**recorder.summary(), "torch": torch.__version__}))

    def finish_late(*_):
        if recorder.is_busy:  # the next call of an operator finds that it is late
            return
        finish()
        sys.stdout.flush()
        os._exit(0)

    signal.signal(signal.SIGALRM, finish_late)
    signal.alarm(int(settings["seconds"]) + 1)  # for a program that calls no operator any more
    with contextlib.ExitStack() as modes:
        modes.enter_context(Functions())
        modes.enter_context(Operators(recorder, finish_late))
        if settings["source"] == "samples":
            import samples  # which wants what PyTorch's tests want

            samples.run(settings)
        else:
            script.run(settings["script"], settings["seed"])
    finish()


if __name__ == "__main__":
    main()
