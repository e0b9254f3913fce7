#!/usr/bin/env python3
"""Measures which share of libtorch's public names compiles against compat/: those of the C++ frontend's headers, ATen's operators
as functions, and the methods of Tensor. A name counts when the compiler finds it; whether its overloads and results are libtorch's
is what tests/torch_programs checks. TorchScript, c10d and quantized tensors are left out: APART. usage: torch_names.py TORCH_INCLUDE [--missing] [--compiler c++]
TORCH_INCLUDE is the folder that holds torch/ and ATen/; --missing lists the names that are not found."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HIDDEN = re.compile(r"^_|^detail$|^impl$|^internal$|_symint_?$|^__|^TORCH_|^AT_|^C10_|^operator")
# TorchScript, distributed communication and quantized tensors, which Rushlight does not have: their names do not count.
APART = re.compile(
    r"^torch::(jit|distributed|c10d)\b|^(torch::)?(quantized_|quantize_|fake_quantize_|fused_moving_avg_obs_fake_quant$|fbgemm_|q_)"
    r"|^(torch::)?(dequantize|int_repr|is_quantized|qscheme|quantizer|empty_quantized|choose_qparams_optimized)$"
)
# A declaration at the scope of a namespace, and what it declares.
DECLARATIONS = [
    re.compile(r"^(?:template\s*<.*?>\s*)?(?:class|struct|enum(?:\s+class)?)\s+(?:TORCH_API\s+|C10_API\s+)?(\w+)\b(?!\s*<)"),
    re.compile(r"^using\s+(\w+)\s*="),
    re.compile(r"^TORCH_MODULE(?:_IMPL)?\((\w+)"),
    re.compile(r"^(?:(?:inline|static|constexpr|const|TORCH_API|extern)\s+)+[\w:<>,&\*\s]*?\b(\w+)\s*(?:=|\(|\{|$)"),
    re.compile(r"^(?:template\s*<.*?>\s*)?[A-Za-z_][\w:<>,&\*\s]*?[\s&\*](\w+)\s*\("),
]


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", "", text).replace("\\\n", " ")
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))


def declared_names(text):
    """(namespace, name) of every declaration outside of classes and functions."""
    scopes, statement, depth = [], "", 0  # depth: of braces that are no namespace's
    for char in without_comments(text):
        if depth == 0 and char == "{":
            opened = re.search(r"\bnamespace\s+([\w:]*)\s*$", statement)
            if opened:
                scopes.append(opened.group(1) or "detail")
                statement = ""
                continue
        if char == "{":
            depth += 1
            if depth == 1:
                statement += "{"
            continue
        if char == "}":
            if depth == 0:
                if scopes:
                    scopes.pop()
                statement = ""
                continue
            depth -= 1
            if depth > 0 or statement.lstrip().startswith(("class", "struct", "enum", "template")):
                continue
            if "(" in statement:  # a function's body ends without a semicolon
                yield from match(scopes, statement)
                statement = ""
            continue
        if depth > 0:
            continue
        if char == ";" or (char == ")" and re.match(r"\s*TORCH_MODULE", statement)):
            yield from match(scopes, statement)
            statement = ""
        else:
            statement += char


def match(scopes, statement):
    statement = " ".join(statement.split())
    if "friend " in statement or " operator" in statement or "::" in statement.split("(")[0].split(" ")[-1]:
        return
    for pattern in DECLARATIONS:
        found = pattern.match(statement)
        if found:
            yield "::".join(scopes), found.group(1)
            return


def frontend_names(include):
    names = set()
    for header in sorted((include / "torch/csrc/api/include/torch").rglob("*.h")):
        if {"detail", "python", "python.h"} & set(header.parts):
            continue
        for scope, name in declared_names(header.read_text(errors="replace")):
            parts = scope.split("::")
            if parts[0] == "torch" and not any(HIDDEN.search(part) for part in [*parts, name]):
                names.add(f"{scope}::{name}")
    return sorted(names)


def operator_names(include):
    suffixes = ("_native", "_ops", "_meta", "_dispatch")
    stems = {path.stem for path in (include / "ATen/ops").glob("*.h")}
    stems = {stem for stem in stems if not stem.endswith(suffixes) and not HIDDEN.search(stem) and "backward" not in stem}
    declared = [s for s in stems if re.search(rf"^\w.* {s}\(", (include / f"ATen/ops/{s}.h").read_text(), re.MULTILINE)]
    return [f"torch::{stem}" for stem in sorted(declared)]


def public_members(text, class_name):
    """The text of the class's body without what is not public."""
    body = re.search(rf"^class TORCH_API {class_name}\b[^;{{]*\{{\n(.*?)^\}};", text, re.MULTILINE | re.DOTALL).group(1)
    parts = re.split(r"^ *(public|protected|private) *:", "private:" + body, flags=re.MULTILINE)
    return "".join(part for access, part in zip(parts[1::2], parts[2::2]) if access == "public")


def method_names(include):
    names = set()
    for header, class_name in [("ATen/core/TensorBody.h", "Tensor"), ("ATen/core/TensorBase.h", "TensorBase")]:
        text = public_members(without_comments((include / header).read_text()), class_name)
        names |= set(re.findall(r"^  [A-Za-z_:][\w:<>,&\* ]*[ &\*](\w+)\(", text, re.MULTILINE))
    words = {"if", "return", "TensorBase", "fn", "func", "defined_"}
    return sorted(name for name in names if not HIDDEN.search(name) and name not in words and not name.isupper())


def found_by_compiler(compiler, lines):
    """Which of these lines, a declaration each, compile."""
    text = "#include <torch/torch.h>\n" + "\n".join(lines) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "names.cpp"
        source.write_text(text)
        command = [compiler, "-std=c++20", "-fsyntax-only", "-w", "-fmax-errors=0", f"-I{ROOT}", f"-I{ROOT}/compat", source]
        result = subprocess.run(command, capture_output=True, text=True)
        wrong = {int(line) for line in re.findall(r"names\.cpp:(\d+):\d+: error", result.stderr)}
        if result.returncode != 0 and not wrong:
            sys.exit(result.stderr)
    return [number + 2 not in wrong for number in range(len(lines))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--compiler", default="c++")
    args = parser.parse_args()
    groups = {
        "names of the C++ frontend": frontend_names(args.include),
        "operators as functions": operator_names(args.include),
        "methods of Tensor": method_names(args.include),
    }
    groups = {group: [name for name in names if not APART.search(name)] for group, names in groups.items()}
    lines = []
    for group, names in groups.items():
        for i, name in enumerate(names):
            if group == "methods of Tensor":
                lines.append(f"struct Method{i} : torch::Tensor {{ using torch::Tensor::{name}; }};")
            else:
                lines.append(f"namespace name{len(lines)} {{ using {name}; }}")
    found = found_by_compiler(args.compiler, lines)
    total = 0
    for group, names in groups.items():
        results, found = found[: len(names)], found[len(names) :]
        total += sum(results)
        print(f"{group}: {sum(results)} of {len(names)}, {100 * sum(results) / len(names):.1f} %")
        if args.missing:
            print("".join(f"  {name}\n" for name, ok in zip(names, results) if not ok), end="")
    print(f"together: {total} of {len(lines)}, {100 * total / len(lines):.1f} %")


main()
