"""The API reference: what the public headers declare, as Doxygen reads it, with the comments of the source.

A declaration is documented where
- a comment ends on the line above it, or stands behind it on its line;
- a comment stands above its group: the lines before it without a blank line or another comment between them;
- it overloads a documented one of the same scope and file, or is the in-place form of one (`relu_` of `relu`);
- it is a method of Tensor from core/ops/methods.inc, and the free function of the same name is documented;
- it is an operator object, which its schema documents;
- it is a constructor, or the forward() of a module, and the class is documented;
- it is the holder of a documented module (`Linear` of `LinearImpl`).
Not counted are namespaces of the implementation (detail, native, kernels), what is private or protected, destructors, overrides,
functions that are defaulted or deleted, and options (RUSH_ARG), which are data.

usage: api.py ROOT   lists the functions and classes that are not documented"""
import html
import re
import subprocess
import sys
import tempfile
from collections import defaultdict, namedtuple
from pathlib import Path
from xml.etree import ElementTree

ROOMS = ("core", "autograd", "nn", "optim")
HIDDEN = re.compile(r"(^|::)(detail|native|kernels|std)(::|$)")
METHODS = {"core/ops/methods.inc"}
KINDS = {"function", "variable", "typedef", "enum"}
Declaration = namedtuple("Declaration", "kind name scope text file line comment documented")


def public_headers(root):
    found, new = set(), ["rushlight.h"]
    while new:
        name = new.pop()
        if name not in found and (root / name).is_file():
            found.add(name)
            new += re.findall(r'^#include "([\w./]+)"', (root / name).read_text(), re.M)
    return sorted(name for name in found if name.startswith(ROOMS) and (name.endswith(".h") or name in METHODS))


def run_doxygen(root, headers, folder):
    configuration = {
        "INPUT": " ".join(f'"{root / name}"' for name in headers), "OUTPUT_DIRECTORY": f'"{folder}"', "INCLUDE_PATH": f'"{root}"',
        "STRIP_FROM_PATH": f'"{root}"',
        "GENERATE_HTML": "NO", "GENERATE_LATEX": "NO", "GENERATE_XML": "YES", "XML_PROGRAMLISTING": "NO", "EXTRACT_ALL": "YES",
        "MACRO_EXPANSION": "YES", "EXTENSION_MAPPING": "inc=C++", "QUIET": "YES", "WARNINGS": "NO", "HAVE_DOT": "NO",
        # The lines of a class's body, which Doxygen does not read where they are included.
        "FILTER_PATTERNS": '''*.inc="sed -e '1s|^|class Methods { public: |' -e '$s|$| };|'"'''}
    text = "".join(f"{key} = {value}\n" for key, value in configuration.items())
    subprocess.run(["doxygen", "-"], input=text, text=True, check=True)


class Comments:
    """What the comments of a file say, by line."""
    def __init__(self, file):
        self.lines = file.read_text(encoding="utf-8").splitlines()

    def is_comment(self, line):
        return line >= 1 and self.lines[line - 1].lstrip().startswith("//")

    def first(self):
        return self.above(next((i for i in range(1, len(self.lines) + 1) if not self.is_comment(i)), 1))

    def above(self, line):
        """The comment that ends above this line."""
        taken = []
        while self.is_comment(line - 1):
            line -= 1
            taken.append(self.lines[line - 1].strip().lstrip("/").strip())
            if re.match(r"---- .* ----$", taken[-1]):  # the title of a section
                return taken[-2::-1] if len(taken) > 1 else []
            if taken[-1].startswith("Note ["):
                return []
        return [each.strip("- ") for each in taken[::-1]]

    def of(self, line):
        """(the comment of a declaration, the line that its group begins at)"""
        code, behind, said = re.sub(r'"(\\.|[^"\\])*"', '""', self.lines[line - 1]).partition("//")
        if behind and code.strip():
            return [said.strip()], line
        start = line
        while start > 1 and self.lines[start - 2].strip() and not self.is_comment(start - 1):
            if re.search(r"\{$|^\s*(public|private|protected):$", self.lines[start - 2]) and not self.inside_a_body(start - 1):
                break
            start -= 1
        return self.above(start), start

    def inside_a_body(self, line):
        """Whether the `{` at the end of a line opens a function, whose lines belong to the group."""
        return not re.match(r"\s*(\}|class|struct|namespace|enum|union|extern|public|private|protected)\b", self.lines[line - 1])


def close_brackets(text):
    return re.sub(r"(?<!operator)<(?!<) ", "<", re.sub(r" >(?!>)", ">", text))


def text_of(member):
    kind, name = member.get("kind"), member.findtext("name")
    flat = lambda tag: " ".join("".join(member.find(tag).itertext()).split()) if member.find(tag) is not None else ""
    if kind == "enum":
        return f"enum {name} {{ {', '.join(each.findtext('name') for each in member.iter('enumvalue'))} }}"
    if kind == "typedef":
        return close_brackets(f"using {name} = {flat('type').removeprefix('typedef ')}{flat('argsstring')}")
    parameters = [" ".join(f"{''.join(p.find('type').itertext())} {p.findtext('declname', '')}".split())
                  for p in member.findall("templateparamlist/param")]
    template = f"template <{', '.join(parameters)}> " if parameters else ""
    static = "static " if member.get("static") == "yes" and kind == "function" else ""
    text = f"{template}{static}{flat('type')} {name}{flat('argsstring')}"
    text = re.sub(r" (&&|[&*])(?=\w)", r"\1 ", text).replace(" &", "&").replace(" *", "*").replace("constinit ", "")
    return close_brackets(text).strip()


def declarations(root, headers):
    with tempfile.TemporaryDirectory() as folder:
        run_doxygen(root, headers, folder)
        compounds = [ElementTree.parse(file).getroot().find("compounddef") for file in sorted(Path(folder, "xml").glob("*.xml"))
                     if re.match("(class|struct|namespace)", file.name)]
    comments = {name: Comments(root / name) for name in headers}
    found = {}
    for compound in compounds:
        scope, is_class = compound.findtext("compoundname"), compound.get("kind") in ("class", "struct")
        if HIDDEN.search(scope) or compound.get("prot") in ("private", "protected"):
            continue
        if "<" in scope:  # a specialisation of what stands elsewhere
            continue
        if is_class:
            outer, _, name = scope.rpartition("::")
            add(found, comments, compound, compound.get("kind"), name, outer, f"{compound.get('kind')} {name}")
        for member in compound.iter("memberdef"):
            arguments, name = member.findtext("argsstring") or "", member.findtext("name")
            hidden = member.get("prot") != "public" or member.get("kind") not in KINDS or name.startswith("~")
            if hidden or re.search(r"\boverride\b|=\s?(default|delete)$", arguments) or name.startswith("@") or not name:
                continue
            add(found, comments, member, member.get("kind"), name, scope, text_of(member))
    return complete(sorted(found.values(), key=lambda each: (each.file, each.line)))


def add(found, comments, element, kind, name, scope, text):
    place = element.find("location")
    if kind in ("class", "struct") and place.get("bodyfile"):  # not where it is declared ahead
        place.attrib.update(file=place.get("bodyfile"), line=place.get("bodystart"))
    file = place.get("declfile") or place.get("file")
    line = int(place.get("declline") or place.get("line"))
    if file not in comments or (kind == "variable" and name.endswith("_") and not scope.endswith("::ops")):
        return
    scope = "rush::Tensor" if file in METHODS else scope
    if name == "Methods" and file in METHODS:
        return
    lines = comments[file].lines
    # After macros of several lines Doxygen's count is a little behind.
    line = next((near for near in range(line, min(line + 4, len(lines) + 1)) if name in lines[near - 1].partition("//")[0]), line)
    # Doxygen's place is that of the name; what the declaration begins with may stand above it.
    begins = r"\s*(template\b.*|requires\b.*|inline [^;{(]*|RUSH_[A-Z_]+(\(.*\))?|\[\[.*\]\])$"
    while line > 1 and re.match(begins, lines[line - 2]):
        line -= 1
    option = re.match(r"\s*RUSH_ARG\((.*), (\w+)\)(.*);", lines[line - 1])
    accessor = re.search(r"-> decltype\(\*|noexcept$", text) and re.match(r"\s*RUSH_", lines[line - 1])
    if option:  # three accessors, which Doxygen sees
        kind, name, text = "option", option[2], f"{option[1]} {option[2]}{option[3]}"
    elif accessor:  # of an option that stands in another macro
        kind, text = "option", f"{name}"
    comment, group = comments[file].of(line)
    schema = kind == "variable" and re.search(r'"([^"]+\) -> [^"]+)"', " ".join(lines[line - 1:line + 2]))
    if schema:
        text = f"{text}  // {schema[1]}"
    documented = bool(comment or schema)
    found.setdefault((file, scope, text), Declaration(kind, name, scope, text, file, (group, line), tuple(comment), documented))


def complete(all_of_them):
    """Marks those that a documented one of the same name speaks for."""
    key = lambda each: each.name.rstrip("_") or each.name
    here = {(each.file, each.scope, key(each)) for each in all_of_them if each.documented}
    classes = {f"{each.scope}::{each.name}" for each in all_of_them if each.documented and each.kind in ("class", "struct")}
    free = {key(each) for each in all_of_them if each.documented and each.kind == "function" and each.file not in METHODS}
    classes |= {name.removesuffix("Impl") for name in classes}
    def spoken_for(each):
        return (f"{each.scope}::{each.name}" in classes or (each.file, each.scope, key(each)) in here or
                (each.file in METHODS and key(each) in free) or
                (each.scope in classes and each.name in ("forward", each.scope.rpartition("::")[2])))

    return [each._replace(documented=each.documented or spoken_for(each)) for each in all_of_them]


def undocumented(all_of_them):
    return [each for each in all_of_them if not each.documented and each.kind in ("function", "class", "struct")]


# ---- pages

def paragraph(comment):
    text = html.escape(" ".join(comment), quote=False)
    return "<p>" + re.sub(r"`([^`]+)`", r"<code>\1</code>", text) + "</p>\n\n" if text else ""


def groups(members):
    """Neighbours that one comment speaks for, or none, in the order of the file."""
    made = []
    for each in members:
        if made and (each.line[0] == made[-1][-1].line[0] or not (each.comment or made[-1][-1].comment)):
            made[-1].append(each)
        else:
            made.append([each])
    return made


def block(group):
    code = "\n".join(dict.fromkeys(re.sub(r"(?=  // )|$", ";", each.text, count=1) for each in group))
    return f"{paragraph(group[0].comment)}```cpp\n{code}\n```\n\n"


def heading(group):
    names = list(dict.fromkeys(each.name for each in group))
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")


def page_of_header(name, first, members):
    text = [f"# {name}\n\n{paragraph(first)}The source: `{name}`\n\n"]
    classes = {f"{each.scope}::{each.name}".removeprefix("::"): each for each in members if each.kind in ("class", "struct")}
    loose = defaultdict(list)
    for each in members:
        if each not in classes.values():
            loose[each.scope].append(each)
    for scope, each in classes.items():
        text.append(f"## {scope}\n\n" + block([each]) + "".join(map(block, groups(loose.pop(scope, [])))))
    for scope, inside in loose.items():
        text.append(f"## {scope or 'Without a namespace'}\n\n")
        text += [f"### {heading(group)}\n\n" + block(group) for group in groups(inside)]
    return "".join(text)


def pages(root):
    """The text of each page of the reference, by its path below api/."""
    headers = public_headers(root)
    by_file = defaultdict(list)
    for each in declarations(root, headers):
        by_file[each.file].append(each)
    made, rows = {}, defaultdict(list)
    for name, members in sorted(by_file.items()):
        first = Comments(root / name).first()
        made[f"{name}.md"] = page_of_header(name, first, members)
        what = paragraph(first).strip().removeprefix("<p>").removesuffix("</p>")
        rows[str(Path(name).parent)].append(f"| [{name}]({name}.md) | {what} |\n")
    index = "".join(f"## {folder}\n\n| header | what it has |\n|---|---|\n{''.join(lines)}\n" for folder, lines in rows.items())
    made["index.md"] = ("# API reference\n\nWhat `rushlight.h` brings, a page for each header, with the headers' own comments. "
                        "Methods of `Tensor` that are operators are documented with the free function of the same name.\n\n" + index)
    return made


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    everything = declarations(root, public_headers(root))
    missing = undocumented(everything)
    for each in missing:
        print(f"{each.file}:{each.line[1]}: {each.scope}: {each.text}")
    counted = [each for each in everything if each.kind in ("function", "class", "struct")]
    print(f"{len(missing)} of {len(counted)} public functions and classes have no comment")
