"""Docstrings as text for retrieval: find an object by its dotted name, clean its docstring, cut it in two.

The script that makes the bundled data and the lookups of its texts share these functions, so that both see the same words.
"""

from __future__ import annotations

import importlib
import inspect
import re

MAX_CHARACTERS = 2000

NUMPY_MODULES = (
    "numpy.char",
    "numpy.ctypeslib",
    "numpy.dtypes",
    "numpy.exceptions",
    "numpy.fft",
    "numpy.lib",
    "numpy.linalg",
    "numpy.ma",
    "numpy.polynomial",
    "numpy.random",
    "numpy.rec",
    "numpy.strings",
    "numpy.testing",
    "numpy.typing",
)

# Never imported: they open windows, print, change the terminal or the process, belong to one platform, or are gone from newer Pythons.
# fmt: off
EXCLUDED_MODULES = frozenset({
    "__main__", "antigravity", "encodings", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "readline", "rlcompleter", "site", "test",
    "this", "tkinter", "turtle", "turtledemo",
    "genericpath", "nt", "ntpath", "nturl2path", "posix", "posixpath", "sre_compile", "sre_constants", "sre_parse",
    "aifc", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk", "crypt", "distutils", "imghdr", "imp", "mailcap", "msilib", "nis",
    "nntplib", "ossaudiodev", "pipes", "smtpd", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib",
})
# fmt: on

_NAME_BEFORE_PARENTHESIS = re.compile(r"[A-Za-z_][\w.]*\(")
_AFTER_SIGNATURE = re.compile(r"(\s*(-{1,2}>|=>)[^\n]*(\n[ \t]+[^\n]*)*)?[ \t]*(\n|$)")
_RULE = re.compile(r"\A[=*-]{3,}\n|(?<=\S)\n={3,}(?=\n|\Z)")  # around a heading
_DASHED = re.compile(r"\s*(--|:)\s+")
_ABBREVIATIONS = r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bcf\.)(?<!\bvs\.)(?<!\betc\.)"
_SENTENCE_END = re.compile(rf"{_ABBREVIATIONS}(?:(?<=[.!?])\s+(?=[^a-z\s])|(?<=[a-z]{{3}}\.)\s+)")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")


def resolve(name: str) -> object:
    """The object a dotted name stands for; attributes come before submodules, and excluded modules are never imported."""
    first, *rest = name.split(".")
    if first in EXCLUDED_MODULES:
        raise ImportError(f"{first} is never imported for its docstrings")
    found: object = importlib.import_module(first)
    for depth, part in enumerate(rest, start=2):
        if inspect.ismodule(found) and not hasattr(found, part):
            found = importlib.import_module(".".join(name.split(".")[:depth]))
        else:
            found = getattr(found, part)
    return found


def docstring_of(thing: object) -> str:
    """The object's own docstring without the signature lines that C functions and ufuncs open with; empty where there is none."""
    raw = getattr(thing, "__doc__", None)
    return without_signature(_RULE.sub("", inspect.cleandoc(raw))) if isinstance(raw, str) else ""


def without_signature(docstring: str) -> str:
    """Drop `name(arguments) -> result` lines from the top; of `name(arguments) -- what it does` keep what it does."""
    text = docstring.strip()
    while _NAME_BEFORE_PARENTHESIS.match(text):
        end = _closing_parenthesis(text)
        if end is None:
            break
        if line := _AFTER_SIGNATURE.match(text, end):
            text = text[line.end() :].lstrip("\n")
        elif dash := _DASHED.match(text, end):
            return text[dash.end() :].strip()
        else:
            break
    return inspect.cleandoc(text).strip()


def split_sentence(docstring: str) -> tuple[str, str]:
    """First sentence, its whitespace folded, and all that follows it."""
    end = _PARAGRAPH_END.search(docstring)
    paragraph = docstring[: end.start()] if end else docstring
    stop = _SENTENCE_END.search(paragraph)
    cut = stop.start() if stop else len(paragraph)
    return " ".join(docstring[:cut].split()), docstring[cut:].strip()


def document_text(name: str, docstring: str) -> str:
    """What stands for the object in the corpus: its name and its docstring without the first sentence."""
    return f"{name}\n{split_sentence(docstring)[1][:MAX_CHARACTERS]}".strip()


def query_text(docstring: str) -> str:
    """What asks for the object: the first sentence of its docstring."""
    return split_sentence(docstring)[0]


def group_of(name: str) -> str:
    """The module by which an object is put in a split: top-level for the standard library, one level further down in NumPy."""
    parts = name.split(".")
    namespace = ".".join(parts[:2])
    return namespace if namespace in NUMPY_MODULES else parts[0]


def _closing_parenthesis(text: str) -> int | None:
    """Position after the parenthesis that closes the first one, or None where a paragraph ends before it."""
    depth = 0
    for position, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                return position + 1
        elif text.startswith("\n\n", position):
            return None
    return None
