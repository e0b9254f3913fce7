#!/usr/bin/env python3
"""checkpoint_files.py LAUNCH PROGRAM: has four processes of PROGRAM (rush_distributed_tests) save a sharded checkpoint, and
reads it by nothing but the descriptions of safetensors and of Hugging Face's index; also with the package `safetensors`,
where it is installed."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import safetensors
except ImportError:
    safetensors = None


def check(condition, *what):
    if not condition:
        sys.exit("checkpoint_files: " + " ".join(map(str, what)))


def read(path):
    """{name: (dtype, shape, bytes)} of a safetensors file, and its metadata."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__")
    tensors, covered = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        check(begin == covered, name, "begins at", begin, "and not at", covered)
        covered = end
        tensors[name] = entry["dtype"], entry["shape"], data[8 + length + begin : 8 + length + end]
    check(8 + length + covered == len(data), path.name, "has", len(data), "bytes")
    return tensors, metadata


launch, program = sys.argv[1:]
with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch) / "checkpoint"
    os.environ.update(RUSH_TEST_CHECKPOINT=str(folder), RUSH_TEST_SAVES="1")
    subprocess.run([launch, "-n", "4", program, "--no-skip", "--test-case=saves until it is killed"], check=True,
                   stdout=subprocess.DEVNULL)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    check(index["metadata"]["version"] == "1", index["metadata"])
    found = {}
    for file in sorted(set(index["weight_map"].values())):
        tensors, metadata = read(folder / file)
        check(metadata == {"format": "pt", "version": "1"}, metadata)
        for name, tensor in tensors.items():
            check(index["weight_map"][name] == file, name, "is in", file)
            found[name] = tensor
        if safetensors:
            read_by_it = dict(safetensors.deserialize((folder / file).read_bytes()))
            for name, tensor in tensors.items():
                theirs = read_by_it[name]
                check((theirs["dtype"], theirs["shape"], bytes(theirs["data"])) == tensor, name, "reads as", theirs)

check(found.keys() == index["weight_map"].keys(), "there are", *found)
check(sum(len(data) for _, _, data in found.values()) == index["metadata"]["total_size"], index["metadata"])
check(found["step"] == ("I64", [], struct.pack("<q", 1001)), found["step"])
check(found["empty"] == ("F16", [0, 3], b""), found["empty"])
# As input_of in rank_inputs.h makes them, for rank 1.
numbers = [((7 * i + 3) % 5 + 1) / 4 + 0.013 for i in range(35)]
check(found["rows"] == ("F64", [5, 7], struct.pack("<35d", *numbers)), found["rows"])
flags = bytes(int((7 * i + 4 * 3) % 5 + 1 > 2) for i in range(9))
check(found["flags"] == ("BOOL", [9], flags), found["flags"])
print(len(found), "tensors, also by the package safetensors" if safetensors else "tensors")
