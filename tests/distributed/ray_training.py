#!/usr/bin/env python3
"""ray_training.py RAY_TRAIN LAUNCH GPT: a training by tools/ray_train.py, whose worker is killed after a checkpoint, comes to
the weights and results of one that is started by hand; and workers that have a GPU each get torchrun's variables, also when
one of them has failed. Where the package `ray` is installed."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    import ray.train  # noqa: F401
except ImportError:
    print("skipped: no ray")
    sys.exit()


def check(condition, *what):
    if not condition:
        sys.exit("ray_training: " + " ".join(map(str, what)))


tool, launch, program = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:4])
OPTIONS = ["--n_layer", "2", "--n_head", "2", "--n_embd", "32", "--block_size", "32", "--batch_size", "8", "--max_iters", "2000",
           "--checkpoint_interval", "20", "--eval_interval", "1000", "--eval_iters", "2", "--max_new_tokens", "0", "--fsdp", "2"]
ENVIRONMENT = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


def start(folder, *call, **more):
    return subprocess.Popen([sys.executable, tool, "--processes", "2", "--out", folder, *call], stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.STDOUT, env={**ENVIRONMENT, **more})


def processes_of(folder):
    """The mpirun of a run, and the program's processes."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(folder / "run") in (process / "cmdline").read_text().split("\0"):
                found.append(process)
        except OSError:
            pass
    return found


def kill_worker(folder):
    mpirun = [process for process in processes_of(folder) if (process / "comm").read_text() == "mpirun\n"]
    worker = (mpirun[0] / "stat").read_text().rpartition(")")[2].split()[1]
    os.kill(int(worker), 9)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    subprocess.run([launch, "-n", "2", program, *OPTIONS, "--out_dir", folder / "alone", "--json", folder / "alone.json"], check=True,
                   stdout=subprocess.DEVNULL)

    training = start(folder / "ray", "--restarts", "1", "--", program, *OPTIONS)
    while not list((folder / "ray").glob("run/checkpoint-*")) and training.poll() is None:
        time.sleep(0.02)
    if training.poll() is None:
        kill_worker(folder / "ray")
    told = training.communicate()[0]
    log = (folder / "ray/log.txt").read_text()
    check(training.returncode == 0, told, log)
    check("going on from" in log, "it was not started again:", log)
    expected, found = ((folder / path).read_bytes() for path in ["alone/ckpt.safetensors", "ray/run/ckpt.safetensors"])
    check(expected == found, "the weights differ")
    loss = json.loads((folder / "alone.json").read_text())["val_loss"]
    check(json.loads(told.splitlines()[-2])["val_loss"] == loss, "the loss is not", loss, told)
    check(told.splitlines()[-1] == f"checkpoint: {folder}/ray/run", told)
    check(not processes_of(folder / "ray"), "a process is left")

    stand_in = folder / "stand_in"
    stand_in.write_text("""#!/usr/bin/env bash
echo "$MASTER_ADDR:$MASTER_PORT" "$WORLD_SIZE" "$RANK" "$CUDA_VISIBLE_DEVICES" "$LOCAL_RANK/$LOCAL_WORLD_SIZE" "$5"
if [[ $RANK == 1 && ! -e $2 ]]; then mkdir "$2" && exit 1; fi
[[ $RANK != 0 ]] || echo '{"val_loss": 1.5}' >"$4"
""")
    stand_in.chmod(0o755)
    training = start(folder / "gpus", "--gpus", "--restarts", "1", "--", stand_in, RAY_OVERRIDE_RESOURCES='{"CPU": 2, "GPU": 2}')
    told = training.communicate()[0]
    log = (folder / "gpus/log.txt").read_text()
    check(training.returncode == 0 and '{"val_loss": 1.5}' in told, told, log)
    last = [line.split() for line in log.splitlines()[-2:]]
    check(last[0][:2] == last[1][:2] and last[0][1] == "2" and last[0][0].partition(":")[2].isdigit(), "no common address:", log)
    check({line[2] for line in last} == {line[3] for line in last} == {"0", "1"}, "ranks and GPUs:", log)
    check(all(line[4:] == ["0/1", "--resume"] for line in last), "local ranks:", log)
print("a training that has lost its worker comes to the weights of another")
