"""The reference as Markdown: the public names from their docstrings, the command from its help."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import typer

import stair
from stair.cli import app

# What belongs together; a test holds that every public name is in one of these.
GROUPS = {
    "One call": ("summarize", "AllBut", "Summary"),
    "Classifiers": ("DistilledStair", "Stair", "LocalStair", "ID3", "CART", "ColumnWish"),
    "Rules": ("RuleSet", "Rule", "Interval", "Among", "Mentions", "Period",
              "Explanation", "load", "Rulebook"),
    "Rules in use": ("check", "CheckUp", "compare", "Comparison", "update", "Update",
                     "learn_exceptions"),
    "Data, engines": ("Source", "DuckDB", "Dask", "Spark", "Cuda"),
    "Exports, errors": ("export", "StairError", "FloorNotReached", "OutlierGuessed"),
}  # fmt: skip
WIDTH = 88
# A heading of a docstring, and an entry below it: "name : type", and what it is.
SECTION = re.compile(r"^(\w+)\n-{3,}\n", re.M)
ENTRY = re.compile(r"^(\S[^\n]*)\n((?:[ ]+[^\n]*\n?|\n)*)", re.M)


def api() -> str:
    """Every public name of the package."""
    parts = ["# Python reference\n", "Made from the docstrings of `stair`.\n"]
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        for name in names:
            parts += _object(name, getattr(stair, name))
    return "\n".join(parts)


def symbols() -> dict[str, str]:
    """What has a place in the reference, as others write it: `stair.Rule`, `Rule.length`."""
    found = {}
    for name in (name for names in GROUPS.values() for name in names):
        value = getattr(stair, name)
        found[name] = found[f"stair.{name}"] = anchor(name)
        if inspect.ismodule(value):
            members = [(n, getattr(value, n)) for n in _functions(value)]
        elif inspect.isclass(value) and not _is_exception(value):
            members = list(_members(value))
        else:
            continue
        for each, _ in members:
            found[f"{name}.{each}"] = found[f"stair.{name}.{each}"] = anchor(f"{name}.{each}")
    return found


def anchor(name: str) -> str:
    """Where a name stands on the page: what its heading becomes."""
    return name.lower().replace(".", "")


def _functions(module: Any) -> list[str]:
    return [n for n in ("load",) if hasattr(module, n)]


def _source(value: Any) -> str:
    """A link to where it is written."""
    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if inspect.ismodule(value):
        home, place = value, ""
    else:
        home, place = sys.modules[value.__module__], f"#{value.__qualname__}"
    inside = home.__name__.replace(".", "/")
    ending = "/__init__.py" if hasattr(home, "__path__") else ".py"
    return f"[source](../src/{inside}{ending}{place})\n"


def _object(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}\n"
    if inspect.ismodule(value):
        yield f"{_prose(value)}\n"
        yield _source(value)
        for each in _functions(value):
            yield from _member(f"{name}.{each}", getattr(value, each))
        return
    if not _is_exception(value):
        yield _signature(f"stair.{name}", value)
    yield _docstring(value)
    yield _source(value)
    if inspect.isclass(value) and not _is_exception(value):
        for each, member in _members(value):
            yield from _member(f"{name}.{each}", member)


def _is_exception(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


def _members(value: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that were written here and have a docstring, as they stand."""
    for owner in value.__mro__:
        if not owner.__module__.startswith("stair"):
            continue
        for name, member in vars(owner).items():
            thing = member.fget if isinstance(member, property) else member
            thing = getattr(thing, "__func__", thing)
            own = inspect.isfunction(thing) and thing.__doc__
            if own and not name.startswith("_") and getattr(value, name) is not None:
                yield name, member


def _member(name: str, member: Any) -> Iterator[str]:
    yield f"#### {name}\n"
    if isinstance(member, property):
        yield f"{_prose(member)}\n"
    else:
        function = getattr(member, "__func__", member)
        yield f"{_signature(name, function)}\n{_docstring(function)}"
    yield _source(member)


def _signature(name: str, value: Any) -> str:
    given = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in inspect.signature(value).parameters.values()
        if p.name not in ("self", "cls") and not p.name.startswith("_")
    ]
    # The ends of time are no default that a person would read.
    given = [p.replace(default=...) if "datetime64(" in repr(p.default) else p for p in given]
    line = f"{name}{inspect.Signature(given)}".replace("Ellipsis", "…")
    if len(line) > WIDTH:
        star = next((i for i, p in enumerate(given) if p.kind is p.KEYWORD_ONLY), None)
        words = [str(p).replace("Ellipsis", "…") for p in given]
        if star is not None:
            words.insert(star, "*")
        inside = textwrap.fill(", ".join(word.replace(" ", "\0") for word in words), WIDTH - 4)
        line = f"{name}(\n{textwrap.indent(inside, '    ')},\n)".replace("\0", " ")
    return f"```signature\n{line}\n```\n"


def _prose(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "")


def _docstring(value: Any) -> str:
    """Prose as it is; sections of parameters as lists."""
    text = _prose(value)
    if text.startswith(getattr(value, "__name__", "?") + "("):
        return ""  # what a dataclass says by itself
    opening, *sections = SECTION.split(text)
    parts = [opening.strip(), ""]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == "Returns":
            continue
        parts += [f"*{title}*", ""]
        for head, words in ENTRY.findall(body.strip() + "\n"):
            names, _, kind = head.partition(" : ")
            said = " ".join(words.split())
            marked = ", ".join(f"`{n}`" for n in names.split(", "))
            parts.append(f"- **{marked}** {f'({_plain(kind)})' if kind else ''} {said}".rstrip())
        parts.append("")
    return "\n".join(parts)


def _plain(kind: str) -> str:
    """A type in words; public names are marked, so that they lead to their place."""
    named = "|".join(n for names in GROUPS.values() for n in names if n[0].isupper())
    escaped = re.sub(r"([{}\[\]<>*_|])", r"\\\1", kind)
    return re.sub(rf"\b({named})\b", r"`\1`", escaped)


def command() -> str:
    """Every command with its arguments and options, as `--help` has them."""
    group: Any = typer.main.get_command(app)
    parts = [
        "# The command\n",
        f"{group.help}\n",
        "Exit codes: 0 done, 1 the floor was not reached (the rules are still written), 2 bad"
        " input, said in one sentence.\n",
        "`-` is standard input in place of a file to read and standard output in place of one to"
        " write; `python -m stair` is the same command.\n",
    ]
    for name, each in group.commands.items():
        usage = " ".join(["stair", name, *_arguments(each)])
        parts += [f"## {name}\n", f"{each.help}\n", f"```signature\n{usage} [OPTIONS]\n```\n"]
        parts.append(_options(each))
    return "\n".join(parts)


def _arguments(each: Any) -> Iterator[str]:
    for parameter in each.params:
        if parameter.param_type_name == "argument":
            word = str(parameter.name).upper()
            yield word if parameter.required else f"[{word}]"


def _options(each: Any) -> str:
    """A table for each group of options, as the help shows them."""
    groups: dict[str, list[str]] = {}
    for parameter in each.params:
        said = getattr(parameter, "help", "") or ""
        group = getattr(parameter, "rich_help_panel", None) or "Options"
        if parameter.param_type_name == "argument":
            row = f"| `{str(parameter.name).upper()}` | {said} | |"
            groups.setdefault("Arguments", []).append(row)
        elif parameter.name != "help":
            flags = ", ".join(f"`{flag}`" for flag in parameter.opts)
            groups.setdefault(group, []).append(f"| {flags} | {said} | {_default(parameter)} |")
    return "\n".join(
        f"| {group} | | {'default' if any('` |' in row[-4:] for row in rows) else ''} |\n"
        "|---|---|---|\n" + "\n".join(rows) + "\n"
        for group, rows in groups.items()
    )


def _default(parameter: Any) -> str:
    value = parameter.default
    if value in (None, False, "", ()) or callable(value):
        return "required" if parameter.required else ""
    return f"`{value}`"
