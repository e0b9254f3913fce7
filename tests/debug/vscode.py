#!/usr/bin/env python3
"""Holds .vscode/ to the tree: what its files name is there, and gdb, set up as they say, loads the printers from a program.
usage: vscode.py ROOT PROGRAM"""
import json
import pathlib
import re
import subprocess
import sys

ROOT, PROGRAM = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
SOURCES = {"mnist": "examples/mnist/main.cpp", "rush_tests": "tests/main.cpp"}  # of what is launched


def filled_in(text, inputs):
    values = {"workspaceFolder": str(ROOT), **{"input:" + each["id"]: each["default"] for each in inputs}}
    return re.sub(r"\$\{([^}]*)\}", lambda found: values[found[1]], text)


def check_launch(launch, inputs, tasks):
    program = pathlib.Path(filled_in(launch["program"], inputs))
    assert program.parent == ROOT / "build/debug/bin", f"{program} is not where ./rush --debug builds it"
    assert (ROOT / SOURCES[program.name]).is_file(), f"nothing builds {program.name}"
    task = tasks[launch["preLaunchTask"]]
    assert task["command"] == "${workspaceFolder}/rush" and task["args"][0] == "--debug", task
    assert task["args"][-2:] == ["build", program.name], f"{task['label']} does not build {program.name}"
    for file in re.findall(r"--source-file=\*/(\S+)", filled_in(" ".join(launch["args"]), inputs)):
        assert (ROOT / file).is_file(), f"there is no {file}"
    check_options(launch["args"], SOURCES[program.name])


def check_options(args, source):
    text = (ROOT / source).read_text()
    for option in (arg for arg in args if arg.startswith("--") and "=" not in arg):
        assert f'"{option}' in text, f"{source} has no option {option}"


def check_gdb(launch, inputs):
    """Gives gdb the commands as VS Code does: before the program, by its machine interface."""
    texts = [filled_in(command["text"], inputs) for command in launch["setupCommands"]]
    commands = [text if text.startswith("-") else f'-interpreter-exec console "{text}"' for text in texts]
    commands += [f"-file-exec-and-symbols {PROGRAM}", '-interpreter-exec console "info auto-load python-scripts"', "-gdb-exit"]
    said = subprocess.run(["gdb", "-nx", "-q", "-i=mi"], input="\n".join(commands), capture_output=True, text=True).stdout
    assert "^error" not in said and re.search(r"Yes +rushlight\.py", said), said


settings = json.loads((ROOT / ".vscode/launch.json").read_text())
tasks = {task["label"]: task for task in json.loads((ROOT / ".vscode/tasks.json").read_text())["tasks"]}
for launch in settings["configurations"]:
    check_launch(launch, settings["inputs"], tasks)
    check_gdb(launch, settings["inputs"])
print(len(settings["configurations"]), "launches")
