#!/usr/bin/env python3
"""Reads a memory snapshot as memory_viz does, with PyTorch's own functions. Exits with 77 where there is no PyTorch.

usage: read_snapshot.py FILE
"""
import pickle
import pickletools
import sys

SEGMENT = {"device", "address", "total_size", "stream", "segment_type", "allocated_size", "active_size",
           "requested_size", "segment_pool_id", "is_expandable", "frames", "blocks"}
BLOCK = {"address", "size", "requested_size", "state", "frames"}
STATES = {"active_allocated", "active_pending_free", "inactive"}
ACTIONS = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
           "oom", "snapshot"}
# What memory_viz's reader of pickles knows, of protocol 2.
OPCODES = {"PROTO", "EMPTY_DICT", "EMPTY_LIST", "MARK", "BINUNICODE", "BININT", "LONG1", "NEWTRUE", "NEWFALSE", "TUPLE",
           "APPENDS", "SETITEMS", "STOP"}


def check_pickle(data):
    marks, depth = [], 0
    for opcode, _, _ in pickletools.genops(data):
        assert opcode.name in OPCODES, opcode.name
        if opcode.name == "MARK":
            marks.append(depth)
        elif opcode.name in ("APPENDS", "SETITEMS", "TUPLE"):
            begin = marks.pop()
            assert depth - begin <= 10000, f"{depth - begin} values are appended at once"
            depth = begin + (opcode.name == "TUPLE")
        elif opcode.name not in ("PROTO", "STOP"):
            depth += 1


def check_structure(snapshot):
    for segment in snapshot["segments"]:
        assert set(segment) >= SEGMENT, SEGMENT - set(segment)
        assert segment["segment_type"] in ("small", "large")
        address = segment["address"]
        for block in segment["blocks"]:
            assert set(block) >= BLOCK, BLOCK - set(block)
            assert block["state"] in STATES, block["state"]
            assert block["address"] == address
            address += block["size"]
        assert address == segment["address"] + segment["total_size"]
    for trace in snapshot["device_traces"]:
        for entry in trace:
            assert entry["action"] in ACTIONS, entry["action"]
            needed = {"size", "stream", "frames", "device_free" if entry["action"] == "oom" else "addr"}
            assert set(entry) >= needed, needed - set(entry)
            assert entry["action"] != "oom" or entry["device_free"] > 0
            for frame in entry["frames"]:
                assert set(frame) >= {"name", "filename", "line"}


def check_with_torch(snapshot, viz):
    summary = viz.segsum(snapshot)
    assert f"segments: {len(snapshot['segments'])}" in summary
    events = viz.trace(snapshot)
    for text in ("# free completed for", "raise OutOfMemoryError"):
        assert text in events, f"{text}: not among the events"
    unchanged = {"format_flamegraph": lambda lines: lines}
    assert "active_allocated" in viz.segments(snapshot, **unchanged)
    assert "active_allocated" in viz.memory(snapshot, **unchanged)
    for page in (viz.trace_plot(snapshot), viz.segment_plot(snapshot)):
        assert "add_local_files" in page


def main(path):
    with open(path, "rb") as file:
        data = file.read()
    check_pickle(data)
    snapshot = pickle.loads(data)
    check_structure(snapshot)
    try:
        from torch.cuda import _memory_viz
    except ImportError:
        sys.exit(77)
    check_with_torch(snapshot, _memory_viz)


if __name__ == "__main__":
    main(sys.argv[1])
