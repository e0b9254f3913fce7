"""The API reference: what the public headers declare, as Doxygen reads it, with the comments of the source.

A declaration is documented where
- a comment ends on the line above it, or stands behind it on its line;
- a comment stands above its group: the lines before it without a blank line or another comment between them. The title of a
  section counts if it goes on behind a colon (`---- operators: in place where they have = ----`);
- a macro makes it, and a comment stands above the macro's definition, or behind the name in a table, X(name) /* ... */;
- it overloads a documented one of the same scope and file, or is the in-place form of one (`relu_` of `relu`);
- it is a method of Tensor from core/ops/methods.inc, and the free function of the same name is documented;
- it is an operator object, which its schema documents;
- it is a class, and the comment at the head of its file begins with its name (`Scalar: a number`);
- it is a constructor, or the forward() of a module, and the class is documented;
- the comment of a base names it in backquotes, as what a derived class has or writes (`describe`, `reset_parameters()`);
- it is the holder of a documented module (`Linear` of `LinearImpl`).
Not counted are namespaces of the implementation (detail, native, kernels), what is private or protected, destructors, overrides,
functions that are defaulted or deleted, copying and moving, constructors that `using Base::Base` brings, and options (RUSH_ARG),
which are data.

usage: api.py ROOT   lists the functions and classes that are not documented, and fails if there are any"""
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
BESIDE_THE_UMBRELLA = ["core/ops/pointwise/special.h",  # the methods igamma and igammac have their free functions there
                       "autograd/library/opcheck.h", "core/library/load_inline.h"]
KINDS = {"function", "variable", "typedef", "enum"}
Declaration = namedtuple("Declaration", "kind name scope text file line comment documented bases", defaults=[()])


def public_headers(root):
    found, new = set(), ["rushlight.h", *BESIDE_THE_UMBRELLA]
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
            if "clang-format o" in self.lines[line - 1]:
                continue
            taken.append(self.lines[line - 1].strip().lstrip("/").strip())
            if title := re.match(r"---- (.*) ----$", taken[-1]):  # of a section; what stands behind its colon is a comment
                return [title[1].partition(": ")[2]][:": " in title[1]] + taken[-2::-1]
        return [each.strip("- ") for each in taken[::-1]]

    def of(self, line, name_line):
        """(the comment of a declaration, the line that its group begins at)"""
        ends = (number for number in range(name_line, min(name_line + 5, len(self.lines)))
                if self.split(number)[0].rstrip().endswith((";", "{", "}")))
        for each in name_line, line, next(ends, line):
            code, said = self.split(each)
            if said and code.strip(" };"):
                return [said.strip()], line
        start = line
        while start > 1 and self.lines[start - 2].strip() and not self.is_comment(start - 1):
            if re.search(r"\{$|^\s*(public|private|protected):$", self.lines[start - 2]) and not self.inside_a_body(start - 1):
                break
            start -= 1
        return self.above(start) or self.above_macro(line), start

    def above_macro(self, line):
        """The comment of the macro that makes what stands here: RUSH_MODULE(Linear), RUSH_FORALL_PADDINGS(RUSH_MODULE)."""
        used = re.match(r"\s*(RUSH_\w+)\((RUSH_\w+)?", self.lines[line - 1])
        for number, text in enumerate(self.lines, 1):
            if used and re.match(rf"#define ({used[2] or used[1]})\(", text):
                return self.above(number)
        return []

    def split(self, line):
        """(the code of a line, the comment behind it)"""
        text = self.lines[line - 1]
        code = re.sub(r'"(\\.|[^"\\])*"', lambda string: " " * len(string[0]), text).partition("//")[0]
        return text[:len(code)], text[len(code) + 2:]

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
    found, rows = {}, rows_of_tables(comments)
    for compound in compounds:
        scope, is_class = compound.findtext("compoundname"), compound.get("kind") in ("class", "struct")
        if HIDDEN.search(scope) or compound.get("prot") in ("private", "protected"):
            continue
        if "<" in scope:  # a specialisation of what stands elsewhere
            continue
        if is_class:
            outer, _, name = scope.rpartition("::")
            bases = {re.sub("<.*", "", base.text.strip()).rpartition("::")[2] for base in compound.iter("basecompoundref")}
            add(found, comments, compound, compound.get("kind"), name, outer, f"{compound.get('kind')} {name}", bases)
        for member in compound.iter("memberdef"):
            arguments, name = member.findtext("argsstring") or "", member.findtext("name")
            hidden = member.get("prot") != "public" or member.get("kind") not in KINDS or name.startswith("~")
            if is_class and member.get("kind") == "function" and says_itself(member, name, arguments, scope):
                continue
            if hidden or re.search(r"\boverride\b|=\s?(default|delete)$", arguments) or name.startswith("@") or not name:
                continue
            add(found, comments, member, member.get("kind"), name, scope, text_of(member), row=rows.get(name))
    return complete(sorted(found.values(), key=lambda each: (each.file, each.line)))


def rows_of_tables(comments):
    """What stands behind a name in a table of a macro: X(digamma) /* derivative of lgamma */"""
    return {row[1]: row[2] for file in comments.values() for line in file.lines
            if (row := re.match(r"\s*X\((\w+)\b.*\)\s*/\* (.*?) \*/", line))}


def says_itself(member, name, arguments, scope):
    """Copying and moving, and constructors that `using Base::Base` brings, which stand with the base."""
    own = re.escape(re.sub("<.*", "", scope).rpartition("::")[2])
    copies = re.match(rf"\((const )?{own}(<[^()]*>)? ?&&? ?\w*\)", arguments) and re.fullmatch(rf"{own}|operator=", name)
    inherited = not "".join(member.find("type").itertext()) and not re.fullmatch(rf"{own}|operator.*", name)
    return copies or inherited


def line_of(lines, line, name, kind):
    """The line that has the name: after macros of several lines Doxygen's count is behind."""
    if kind in ("class", "struct"):  # Doxygen's place is that of the body
        heads = [number for number in range(max(1, line - 6), min(line + 12, len(lines) + 1))
                 if re.match(rf"\s*(class|struct)\b[^;:]*\b{re.escape(name)}\b(?!.*;)", lines[number - 1].partition("//")[0])]
        if heads:
            return min(heads, key=lambda number: abs(number - line))
    near = [(number, lines[number - 1].partition("//")[0]) for number in range(line, min(line + 12, len(lines) + 1))]
    word = rf"(?<!\w){re.escape(name)}(?!\w)"
    if re.search(word, near[0][1]) or re.match(r"\s*RUSH_", near[0][1]):
        return line
    return next((number for number, code in near if re.search(word + r" ?\(" if kind == "function" else word, code)),
                next((number for number, code in near[:4] if name in code), line))


def add(found, comments, element, kind, name, scope, text, bases=(), row=None):
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
    line = name_line = line_of(lines, line, name, kind)
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
    comment, group = comments[file].of(line, name_line)
    if kind in ("class", "struct") and not comment and re.match(rf"{name}\b[^.]*: ", " ".join(comments[file].first())):
        comment = comments[file].first()
    an_operator = kind == "variable" and name in lines[line - 1]
    schema = an_operator and re.search(r'"([^"]+\) -> [^"]+)"', " ".join(lines[line - 1:line + 2]))
    if schema:
        text = f"{text}  // {schema[1]}"
    row = row if kind == "function" and name not in lines[line - 1] else None
    if row:
        text = f"{text}  // {row}"
    documented = bool(comment or schema or row)
    made = Declaration(kind, name, scope, text, file, (group, line), tuple(comment), documented, bases)
    found.setdefault((file, scope, text), made)


def complete(all_of_them):
    """Marks those that a documented one of the same name speaks for."""
    key = lambda each: each.name.rstrip("_") or each.name
    here = {(each.file, each.scope, key(each)) for each in all_of_them if each.documented}
    classes = {f"{each.scope}::{each.name}" for each in all_of_them if each.documented and each.kind in ("class", "struct")}
    free = {key(each) for each in all_of_them if each.documented and each.kind == "function" and each.scope == "rush"}
    classes |= {name.removesuffix("Impl") for name in classes}
    by_name = {each.name: each for each in all_of_them if each.kind in ("class", "struct")}
    by_scope = {f"{each.scope}::{each.name}": each for each in by_name.values()}

    def asked_for(name, scope):
        """Whether the comment of a base names it in backquotes."""
        bases = [by_name[base] for base in (by_scope[scope].bases if scope in by_scope else ()) if base in by_name]
        return any(re.search(rf"`{re.escape(name)}(\(.*\))?`", " ".join(base.comment)) or
                   asked_for(name, f"{base.scope}::{base.name}") for base in bases)

    def spoken_for(each):
        return (f"{each.scope}::{each.name}" in classes or (each.file, each.scope, key(each)) in here or
                (each.file in METHODS and key(each) in free) or
                (each.scope in classes and each.name in ("forward", each.scope.rpartition("::")[2])) or
                asked_for(each.name, each.scope))

    return [each._replace(documented=each.documented or spoken_for(each)) for each in all_of_them]


def undocumented(all_of_them):
    return [each for each in all_of_them if not each.documented and each.kind in ("function", "class", "struct")]


def told(each):
    return f"{each.file}:{each.line[1]}: {each.scope}: {each.text}"


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
    """(the text of each page of the reference, by its path below api/; what is not documented)"""
    everything = declarations(root, public_headers(root))
    by_file = defaultdict(list)
    for each in everything:
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
    return made, list(map(told, undocumented(everything)))


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    everything = declarations(root, public_headers(root))
    missing = undocumented(everything)
    for each in missing:
        print(told(each))
    counted = [each for each in everything if each.kind in ("function", "class", "struct")]
    print(f"{len(missing)} of {len(counted)} public functions and classes have no comment")
    sys.exit(bool(missing))
