"""Files of cases: a .jsonl file with a case a line, and a .safetensors file beside it with their tensors."""
import json
import pathlib
import struct
import time

from calls import DTYPES, bytes_of, values_of

STORED = {  # safetensors' names; complex numbers are pairs of real ones
    "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16", "float32": "F32",
    "float64": "F64", "bool": "BOOL", "bfloat16": "BF16", "float8_e5m2": "F8_E5M2", "float8_e4m3fn": "F8_E4M3",
    "uint16": "U16", "uint32": "U32", "uint64": "U64", "complex64": "F32", "complex128": "F64",
}


def stored(tensor):
    """(dtype, shape, bytes) as safetensors have them."""
    values = values_of(tensor)
    return STORED[DTYPES[tensor.dtype]], list(values.shape) + [2] * values.is_complex(), bytes_of(values)


class CaseFiles:
    """Writes cases to folder/0000.jsonl and folder/0000.safetensors, then to the next ones."""

    def __init__(self, folder, most_cases=1000, most_bytes=32 << 20, most_seconds=20):
        self.folder, self.most_cases, self.most_bytes = pathlib.Path(folder), most_cases, most_bytes
        self.most_seconds = most_seconds  # so that few cases are lost with a process that has to be killed
        self.files = 0
        self.begin()

    def begin(self):
        self.lines, self.tensors, self.size, self.since = [], {}, 0, time.monotonic()

    def add(self, case, tensors):
        self.lines.append(json.dumps(case))
        self.tensors.update(tensors)
        self.size += sum(len(data) for _, _, data in tensors.values())
        is_late = time.monotonic() > self.since + self.most_seconds
        if len(self.lines) >= self.most_cases or self.size >= self.most_bytes or is_late:
            self.flush()

    def flush(self):
        if not self.lines:
            return
        path = self.folder / f"{self.files:04}.safetensors"
        write_safetensors(path, self.tensors)
        part = path.with_suffix(".part")
        part.write_text("\n".join(self.lines) + "\n")
        part.rename(path.with_suffix(".jsonl"))  # whoever sees it finds both files whole
        self.files += 1
        self.begin()


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for key, (dtype, shape, data) in tensors.items():
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)
