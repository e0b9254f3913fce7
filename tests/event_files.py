#!/usr/bin/env python3
"""event_files.py RUSH_TESTS: has it write what tests/nn/summary.cpp logs, and reads that with TensorBoard's own code, where
the package `tensorboard` is installed."""
import math
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing import plugin_event_multiplexer
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.util import tensor_util
except ImportError:
    print("skipped: no tensorboard")
    sys.exit()


def check(condition, *what):
    if not condition:
        sys.exit("event_files: " + " ".join(map(str, what)))


def check_scalars(run):
    # Scalars, histograms and images reach the pages as tensors.
    step = 1 << 40
    loss = run.Tensors("loss")
    check([event.step for event in loss] == [step, step + 1], "steps", loss)
    values = [tensor_util.make_ndarray(event.tensor_proto).item() for event in loss]
    check(values[0] == 0.5 and math.isnan(values[1]), "scalars", values)


def check_histogram(run):
    (event,) = run.Tensors("weights")
    buckets = tensor_util.make_ndarray(event.tensor_proto)  # rows of left, right, count
    check(event.step == 3 and buckets[:, 2].sum() == 5, "histogram", buckets)
    for value, count in {-1: 1, 0.5: 2, 2: 1}.items():
        found = [row[2] for row in buckets if row[0] <= value <= row[1] and row[2]]
        check(count in found, "histogram of", value, buckets)


def check_image(run):
    (event,) = run.Tensors("red")
    width, height, png = event.tensor_proto.string_val
    check((width, height) == (b"4", b"2") and png.startswith(b"\x89PNG"), "image", width, height)


def check_text(run):
    (event,) = run.Tensors("note/text_summary")
    check(tensor_util.make_ndarray(event.tensor_proto).tolist() == [b"some **bold** text"], "text", event)
    check("note/text_summary" in run.PluginTagToContent("text"), "text is not its plugin's")


def check_hparams(run):
    parts = {tag: plugin_data_pb2.HParamsPluginData.FromString(content)
             for tag, content in run.PluginTagToContent("hparams").items()}
    experiment = parts["_hparams_/experiment"].experiment
    check([info.name for info in experiment.hparam_infos] == ["rate", "layers", "name", "graph"], experiment)
    check([info.name.tag for info in experiment.metric_infos] == ["final/loss"], experiment)
    values = parts["_hparams_/session_start_info"].session_start_info.hparams
    check(values["rate"].number_value == 0.125 and values["layers"].number_value == 3, values)
    check(values["name"].string_value == "small" and values["graph"].bool_value is False, values)
    check(parts["_hparams_/session_end_info"].session_end_info.status == 1, "the session did not end well")


def check_graph(run):
    nodes = {node.name: node for node in run.Graph().node}
    check({"output", "fc/weight", "fc/bias"} <= set(nodes), nodes)
    convolution = [node for node in nodes.values() if node.op == "Convolution"]
    check(len(convolution) == 1 and set(convolution[0].input) == {"conv/weight", "conv/bias"}, convolution)
    check(all(name in nodes for node in nodes.values() for name in node.input), "an edge leads nowhere")


with tempfile.TemporaryDirectory() as folder:
    case = "--test-case=SummaryWriter: *hyperparameters and graph"
    subprocess.run([sys.argv[1], case], env={**os.environ, "RUSH_SUMMARIES": folder}, check=True)
    multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(folder)
    multiplexer.Reload()
    check(set(multiplexer.Runs()) == {"run", "run/both_train", "run/both_test"}, multiplexer.Runs())
    run = multiplexer.GetAccumulator("run")
    for each in (check_scalars, check_histogram, check_image, check_text, check_hparams, check_graph):
        each(run)
    for name, value in {"train": 1, "test": 2}.items():
        (event,) = multiplexer.GetAccumulator(f"run/both_{name}").Tensors("both")
        check(tensor_util.make_ndarray(event.tensor_proto).item() == value, "add_scalars", event)
    print("TensorBoard reads", ", ".join(file.name for file in pathlib.Path(folder, "run").glob("events*")))
