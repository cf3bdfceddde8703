"""Shell scripts -> the commands that they start, variables replaced where the file tells them.

The structure comes from tree-sitter's bash grammar, which survives errors; the words within a command are expanded
by `shardlint.text.words`, because the grammar drops escaped blanks and splits some concatenations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from shardlint.findings import Maybe, Problem, Span, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.text import trees
from shardlint.text.arithmetic import calculate
from shardlint.text.prefixes import ASSIGNMENT, command_start, name_of, shell_text
from shardlint.text.source import Fragment, Source
from shardlint.text.variables import Variables
from shardlint.text.words import (
    Array,
    Expander,
    Piece,
    Value,
    as_fragment,
    fields,
    given,
    hole_of,
    path_of,
    text_of,
    value_of,
    word_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

Word = Maybe[str]
"""`Located` where the file tells what the shell will pass, `Unknown` with the text as written where it does not."""

MAX_CHARACTERS: Final = 300_000
"""Of one script that are read; the largest in public repositories have some 60,000."""
MAX_COMMANDS: Final = 5_000
MAX_STEPS: Final = 100_000
"""Nodes visited: functions that call each other twice would double with every level."""
MAX_DEPTH: Final = 60
"""Statements inside statements, scripts in scripts included."""
MAX_SCRIPTS: Final = 6
"""`bash -c "bash -c ..."`."""
MAX_SOURCES: Final = 50
"""Files of variables that one script takes in, those of such files included."""


class Command(NamedTuple):
    """One simple command, without redirections and without what only starts it (`exec`, `env A=b`, `timeout 60`)."""

    words: tuple[Word, ...]
    env: Mapping[str, Word]
    """Exported variables and those set for this command alone, `env`'s included."""
    span: Span
    """From its first word (assignments and prefixes included) to its last."""
    heredocs: tuple[Fragment, ...] = ()
    """Bodies of its here-documents as it is given them: variables replaced where their mark is not quoted."""
    conditional: bool = False
    """Whether it stands in a branch or loop, or after `||`, so that it may not run."""
    background: bool = False
    """Whether the script goes on while it runs (`&`)."""
    texts: tuple[Fragment, ...] = ()
    """Each word once more as a text that can be read in turn (the script in `docker run IMAGE bash -c '...'`)."""


class Script(NamedTuple):
    """The commands of a script in the order in which they stand, and the variables when it ends."""

    commands: tuple[Command, ...]
    variables: Mapping[str, Word] = MappingProxyType({})
    problems: tuple[Problem, ...] = ()


Files = Callable[[str], Source | Unknown]
"""A file that a script names, by its path; relative ones are looked for beside the script."""


def _no_files(path: str) -> Unknown:
    return Unknown(f"{path} was not looked for")


def read(
    fragment: Fragment,
    env: Mapping[str, Word] | None = None,
    arguments: Sequence[Fragment] | None = None,
    files: Files = _no_files,
) -> Script:
    """Reads a script as bash would run it, as far as its text tells.

    `env` is what is set before it starts (all of it exported); `arguments` its positional parameters, None where
    they are not known; `files` those that it may take variables from (`source x.env`). Never raises for what the
    script says.
    """
    variables = Variables(arguments=None if arguments is None else [_verbatim(text) for text in arguments])
    for name, word in (env or {}).items():
        variables.values[name] = given(word, fragment.source)
        variables.exported.add(name)
    run = _Run(files)
    reader = _Reader(fragment, variables, run, 0)
    reader.script()
    after = {name: value_of(value) for name, value in reader.variables.values.items() if not isinstance(value, list)}
    return Script(tuple(run.commands), MappingProxyType(after), tuple(run.problems))


def joined(texts: Sequence[Fragment], between: str = " ") -> Fragment:
    """Several words as one text with a blank between each, as `ssh` and `eval` make of theirs; or several lines."""
    characters: list[str] = []
    offsets: list[int] = []
    holes: dict[int, Unknown] = {}
    for text in texts:
        if offsets:
            characters.append(between)
            offsets.append(offsets[-1])
        holes.update({at + len(offsets): hole for at, hole in text.holes.items()})
        characters.append(text.text)
        offsets.extend(text.offsets[:-1])
    end = texts[-1].offsets[-1]
    return Fragment("".join(characters), texts[0].source, [*offsets, end], holes)


def _verbatim(text: Fragment) -> Value:
    piece = Piece(text.text, text.source, 0, 0, text.offsets[:-1], quoted=True)
    return (piece.cut(0, len(text.text)),)


class _Run:
    """What all scripts inside one another share."""

    def __init__(self, files: Files) -> None:
        self.files: Final = files
        self.commands: list[Command] = []
        self.problems: list[Problem] = []
        self.steps = 0
        self.sources = 0
        self.open: frozenset[str] = frozenset()
        """Paths of the files that are being read one inside another."""
        self.stopped = False

    def stop(self, span: Span, why: str) -> None:
        if not self.stopped:
            self.problems.append(Problem(span, f"The script is read only up to here: {why}.", severity="note"))
        self.stopped = True


_LOOSE_WORDS: Final = frozenset(
    ("command_name", "word", "string", "raw_string", "ansi_c_string", "number", "concatenation", "simple_expansion",
     "expansion", "command_substitution", "arithmetic_expansion", "process_substitution", "brace_expression")
)  # fmt: skip
_REDIRECTS: Final = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_NO_STATEMENTS: Final = _REDIRECTS | _LOOSE_WORDS | {"file_descriptor", "comment"}


class _Field(NamedTuple):
    """One word of a command: what it holds and where the command has it."""

    value: Value
    start: int
    end: int


class _Reader:
    """One script: walks the tree in the order of execution and keeps the variables."""

    def __init__(self, fragment: Fragment, variables: Variables, run: _Run, scripts: int) -> None:
        self.fragment = _within_limit(fragment, run)
        self.variables = variables
        self._run = run
        self._scripts = scripts
        self._depth = 0
        self._conditions = 0
        self._background = 0
        self._input: Value | None = None
        """What `<<<` gives to the command at hand."""
        self._functions: dict[str, Node] = {}
        self._called: set[str] = set()
        self._active: set[str] = set()

    def script(self) -> None:
        """Reads it from its first statement to its last, then the functions that nothing called."""
        root = trees.parse(self.fragment.text, "bash")
        before = len(self._run.commands)
        self._statement(root)
        while uncalled := [name for name in self._functions if name not in self._called]:
            self._called.add(uncalled[0])
            self.variables.arguments = None
            self._branch([self._functions[uncalled[0]]])
        if root.has_error and len(self._run.commands) == before and not self.variables.values:
            self._unreadable(root)

    def _unreadable(self, root: Node) -> None:
        error = next((node for node in _walk(root) if node.type == "ERROR" or node.is_missing), root)
        start, _ = self._range(error)
        span = self.fragment.span(start, start)
        self._run.problems.append(Problem(span, "No command can be read here as shell."))

    # Places and pieces

    def _range(self, node: Node) -> tuple[int, int]:
        return node.start_byte, node.end_byte

    def _text(self, node: Node) -> str:
        start, end = self._range(node)
        return self.fragment.text[start:end]

    def _here(self, node: Node) -> Piece:
        start, end = self._range(node)
        first = self.fragment.offsets[start]
        last = self.fragment.offsets[end - 1] + 1 if end > start else first
        return Piece("", self.fragment.source, first, last)

    def _pieces(self, start: int, end: int) -> list[Piece]:
        return Expander(self.fragment, self.variables.lookup, self.variables.assign).expand(start, end)

    def _fields(self, nodes: Sequence[Node]) -> list[_Field]:
        runs = [list(run) for is_comment, run in groupby(nodes, lambda node: node.type == "comment") if not is_comment]
        return [
            _Field(value, start, end)
            for run in runs
            for start, end in _word_ranges(self.fragment.text, [self._range(node) for node in run])
            for value in fields(self._pieces(start, end))
        ]

    # Statements

    def _statement(self, node: Node) -> None:
        self._run.steps += 1
        if self._run.steps > MAX_STEPS or self._depth > MAX_DEPTH or len(self._run.commands) >= MAX_COMMANDS:
            start, _ = self._range(node)
            self._run.stop(self.fragment.span(start, start), "it is too long or nested too deeply")
        if self._run.stopped:
            return
        self._depth += 1
        _STATEMENTS.get(node.type, _Reader._in_order)(self, node)
        self._depth -= 1

    def _in_order(self, node: Node) -> None:
        """Statements one after another; words that an error left without a command make one for each line."""
        loose: list[Node] = []
        for child in node.children:
            if child.type in _LOOSE_WORDS:
                if loose and child.start_point.row > loose[-1].end_point.row + 1:
                    self._loose(loose)
                    loose = []
                loose.append(child)
            elif child.is_named and child.type != "comment":
                self._loose(loose)
                loose = []
                beside = child.next_sibling is not None and child.next_sibling.type == "&"
                self._background += beside
                self._statement(child)
                self._background -= beside
        self._loose(loose)

    def _loose(self, nodes: Sequence[Node]) -> None:
        if nodes:
            self._run_command(nodes, [], self._heredocs_of(()), self._span(nodes[0], nodes[-1]))

    def _span(self, first: Node, last: Node) -> Span:
        return self.fragment.span(self._range(first)[0], self._range(last)[1])

    def _ignored(self, node: Node) -> None:
        pass

    def _branch(self, nodes: Iterable[Node]) -> Variables:
        """The variables after a branch; those in force stay as they are."""
        before = self.variables
        self.variables = before.copy()
        self._conditions += 1
        for node in nodes:
            self._statement(node)
        self._conditions -= 1
        after, self.variables = self.variables, before
        return after

    def _if(self, node: Node) -> None:
        here = self._here(node)
        branches: list[Variables] = []
        decided: Variables | None = None
        for condition, body in _branches_of_if(node):
            for part in condition:
                self._statement(part)
            truth = self._truth(condition[-1]) if len(condition) == 1 else None if condition else True
            after = self._branch(body)
            if truth is not False:
                branches.append(after)
            if truth is True:
                decided = after
                for _, rest in _branches_of_if(node)[len(branches) :]:
                    self._branch(rest)
                break
        if decided is None:
            branches.append(self.variables.copy())
        self.variables.become(branches, here)

    def _case(self, node: Node) -> None:
        subject = node.child_by_field_name("value")
        items = [child for child in node.children if child.type == "case_item"]
        known = None
        if subject is not None:
            value = self._pieces(*self._range(subject))
            known = None if hole_of(value) is not None else text_of(value)
        branches, complete = [], False
        for item in items:
            patterns = [self._text(pattern) for pattern in item.children_by_field_name("value")]
            body = [child for child in item.named_children if child not in item.children_by_field_name("value")]
            after = self._branch(body)
            if complete or (known is not None and not any(_matches(known, pattern) for pattern in patterns)):
                continue
            branches.append(after)
            complete = known is not None or "*" in patterns
        if not complete:
            branches.append(self.variables.copy())
        self.variables.become(branches, self._here(node))

    def _loop(self, node: Node) -> None:
        """What a loop changes is not known inside it before it is set there anew, nor after it."""
        here = self._here(node)
        body = node.child_by_field_name("body")
        for name in _assigned(node, self._text):
            if name in self.variables.values:
                self.variables.forget(name, f"${name} changes in a loop", here)
        if node.type in ("for_statement", "select_statement"):
            self._loop_variable(node, here)
        for child in node.children:
            if child.is_named and child != body and node.type == "while_statement" and child.type != "comment":
                self._statement(child)
        if body is not None:
            after = self._branch([body])
            self.variables.become([after, self.variables.copy()], here)

    def _loop_variable(self, node: Node, here: Piece) -> None:
        variable = node.child_by_field_name("variable")
        if variable is None:
            return
        name = self._text(variable)
        values = self._fields(node.children_by_field_name("value"))
        if len(values) == 1 and hole_of(values[0].value) is None:
            self.variables.assign(name, values[0].value)
        else:
            self.variables.forget(name, f"${name} takes several values in a loop", here)

    def _list(self, node: Node) -> None:
        """`a && b` counts as both; `a || b` as `a` alone; after a test it depends."""
        left, right = node.named_children[0], node.named_children[-1]
        operator = next((child.type for child in node.children if child.type in ("&&", "||")), "&&")
        self._statement(left)
        if left == right:
            return
        last = _last_of_list(left)
        truth = self._truth(last)
        if operator == "&&" and truth is None and last.type != "test_command":
            truth = True
        runs = truth if operator == "&&" else None if truth is None else not truth
        if runs is True:
            self._statement(right)
            return
        after = self._branch([right])
        if runs is None and (operator == "&&" or last.type == "test_command"):
            self.variables.become([after, self.variables.copy()], self._here(node))

    def _pipeline(self, node: Node) -> None:
        """Each part of a pipe has variables of its own."""
        before = self.variables
        for child in node.named_children:
            if child.type != "comment":
                self.variables = before.copy()
                self._statement(child)
        self.variables = before

    def _subshell(self, node: Node) -> None:
        before = self.variables
        self.variables = before.copy()
        self._in_order(node)
        self.variables = before

    def _compound(self, node: Node) -> None:
        if node.children and node.children[0].type == "((":
            self._calculated(node)
        else:
            self._in_order(node)

    def _calculated(self, node: Node) -> None:
        """`(( X = 2 * Y ))`: an assignment if it is a plain one; whatever else it changes is not known any more."""
        start, end = self._range(node)
        self._let(self.fragment.text[start + 2 : end - 2], self._here(node))

    def _let(self, text: str, here: Piece) -> None:
        assignment = _LET.fullmatch(text)
        if assignment is None:
            for changed in _CHANGED.finditer(text):
                name = changed[1] or changed[2]
                self.variables.forget(name, f"${name} is counted when it runs", here)
            return
        result = calculate(assignment[2].replace("$", ""), self._number)
        if isinstance(result, int):
            self.variables.assign(assignment[1], (here._replace(text=str(result)),))
        else:
            self.variables.forget(assignment[1], result, here)

    def _number(self, name: str) -> str | Unknown:
        value = self.variables.lookup(name)
        if value is None or isinstance(value, list):
            return Unknown(f"${name} is not set in this file")
        return hole_of(value) or text_of(value)

    def _function(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self._functions[self._text(name)] = body

    # Assignments

    def _assignment(self, node: Node) -> None:
        target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if target is None:
            return
        appends = any(child.type == "+=" for child in node.children)
        if target.type == "subscript":
            name = target.child_by_field_name("name")
            if name is not None:
                self.variables.forget(self._text(name), "an element of it is set alone", self._here(node))
            return
        name_text = self._text(target)
        if value is not None and value.type == "array" and any(map(_WITH_KEY.match, map(self._text, value.children))):
            self.variables.forget(name_text, "an array with keys is looked up when it runs", self._here(node))
            return
        (self.variables.append if appends else self.variables.assign)(name_text, self._assigned_value(node, value))

    def _assigned_value(self, node: Node, value: Node | None) -> Value | Array:
        if value is None:
            return (self._here(node)._replace(quoted=True),)
        if value.type == "array":
            elements = [child for child in value.children if child.type not in ("(", ")")]
            return [field.value for field in self._fields(elements)]
        return tuple(self._pieces(*self._range(value)))

    def _declaration(self, node: Node) -> None:
        options = [self._text(child) for child in node.named_children if child.type == "word"]
        kind = self._text(node).split(maxsplit=1)[0]
        exports = kind == "export" or any(option.startswith("-") and "x" in option for option in options)
        removes = kind == "export" and any(option.startswith("-") and "n" in option for option in options)
        for child in node.named_children:
            if child.type == "command_substitution" and exports:
                self._export_output(child)
            if child.type == "variable_assignment":
                self._assignment(child)
                child = child.child_by_field_name("name") or child
            elif child.type != "variable_name":
                continue
            name = self._text(child)
            if removes:
                self.variables.exported.discard(name)
            elif exports:
                self.variables.exported.add(name)

    def _unset(self, node: Node) -> None:
        for child in node.named_children:
            self.variables.values.pop(self._text(child), None)
            self.variables.exported.discard(self._text(child))

    # Commands

    def _redirected(self, node: Node) -> None:
        """A statement with redirections; words that the grammar takes for part of one belong to the command."""
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child.type in _REDIRECTS]
        extra = [word for redirect in redirects for word in _words_after_target(redirect)]
        if body is not None and body.type == "command":
            self._command(body, extra, redirects)
        elif body is not None:
            self._statement(body)
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                self._after_heredoc(redirect)

    def _after_heredoc(self, redirect: Node) -> None:
        """`cat <<EOF | sh` and `cat <<EOF && next`: the grammar hangs what follows under the redirection."""
        for child in redirect.named_children:
            if child.type.startswith("heredoc") or child.type in _NO_STATEMENTS:
                continue
            if _SHELL_ALONE.fullmatch(self._text(child)) and self._scripts < MAX_SCRIPTS:
                for text in self._heredocs_of((redirect,)):
                    self._nested(text, self._of_another_shell(self.variables))
            else:
                self._statement(child)

    def _command(self, node: Node, extra: Sequence[Node] = (), redirects: Sequence[Node] = ()) -> None:
        """A simple command: prefix assignments, words, redirections among them."""
        inner = [child for child in node.children if child.type in _REDIRECTS]
        assignments: list[Node] = []
        words: list[Node] = []
        for child in node.children:
            if child.type == "variable_assignment" and not words:
                assignments.append(child)
            elif child.type not in _REDIRECTS and child.type != "comment":
                words.append(child)
        for redirect in inner:
            words.extend(_words_after_target(redirect))
        words = sorted([*words, *extra], key=lambda word: word.start_byte)
        texts = [
            child for part in (*inner, *redirects) if part.type == "herestring_redirect" for child in part.children
        ]
        given = [text for text in texts if text.type in _LOOSE_WORDS]
        self._input = tuple(self._pieces(*self._range(given[0]))) if given else None
        last = max([node, *extra], key=lambda part: part.end_byte)
        self._run_command(words, assignments, self._heredocs_of([*inner, *redirects]), self._span(node, last))

    def _heredocs_of(self, redirects: Iterable[Node]) -> tuple[Fragment, ...]:
        found = []
        for redirect in redirects:
            for child in redirect.children:
                if child.type == "heredoc_body":
                    found.append(self._heredoc(redirect, child))
        return tuple(found)

    def _heredoc(self, redirect: Node, body: Node) -> Fragment:
        """The lines of a here-document; `<<-` takes the tabs off their fronts."""
        mark = next((self._text(child) for child in redirect.children if child.type == "heredoc_start"), "'")
        lines = self._lines_of(redirect, body)
        if re.search(r"[\"'\\]", mark) or not re.search(r"[$`]", lines.text):
            return lines
        pieces = Expander(lines, self.variables.lookup, self.variables.assign).expand(0, len(lines.text), double=True)
        return as_fragment(tuple(pieces), self.fragment.source)

    def _lines_of(self, redirect: Node, body: Node) -> Fragment:
        start, end = self._range(body)
        text = self.fragment.text
        start = text.rfind("\n", 0, start) + 1
        if redirect.children[0].type != "<<-" and not any(child.type == "<<-" for child in redirect.children):
            return self.fragment.part(start, end)
        kept = [at for at in range(start, end) if text[text.rfind("\n", 0, at) + 1 : at + 1].strip("\t")]
        offsets = [self.fragment.offsets[at] for at in kept]
        return Fragment("".join(text[at] for at in kept), self.fragment.source, [*offsets, self.fragment.offsets[end]])

    def _run_command(
        self, nodes: Sequence[Node], assignments: Sequence[Node], heredocs: tuple[Fragment, ...], span: Span
    ) -> None:
        words = self._fields(nodes)
        if not words:
            for assignment in assignments:
                self._assignment(assignment)
            return
        before = self.variables
        self.variables = before.copy()
        for assignment in assignments:
            self._assignment(assignment)
            name = assignment.child_by_field_name("name")
            if name is not None:
                self.variables.exported.add(self._text(name))
        within, self.variables = self.variables, before
        start = command_start([word.value for word in words])
        self._set_by_env(words[:start], within)
        self._dispatch(words[start:], within, heredocs, span)

    @staticmethod
    def _set_by_env(words: Sequence[_Field], within: Variables) -> None:
        """`env A=b command`."""
        for word in words:
            text = text_of(word.value)
            if ASSIGNMENT.match(text):
                name = text.partition("=")[0]
                within.values[name] = _from(word.value, len(name) + 1)
                within.exported.add(name)

    def _dispatch(self, words: list[_Field], within: Variables, heredocs: tuple[Fragment, ...], span: Span) -> None:
        if not words:
            return
        name = name_of(words[0].value)
        script = shell_text([word.value for word in words])
        if name in _BUILTINS:
            _BUILTINS[name](self, words)
        if name in self._functions:
            self._call(name, words)
        elif name == "eval" and len(words) > 1 and self._scripts < MAX_SCRIPTS:
            self._evaluate(words)
        elif script is not None and self._scripts < MAX_SCRIPTS:
            self._inner_script(words, script, within)
        elif heredocs and _reads_its_input(words) and self._scripts < MAX_SCRIPTS:
            for text in heredocs:
                self._nested(text, self._of_another_shell(within))
        else:
            self._record(words, within, heredocs, span)

    def _record(self, words: list[_Field], within: Variables, heredocs: tuple[Fragment, ...], span: Span) -> None:
        env = {
            name: value_of(value)
            for name in sorted(within.exported)
            if (value := within.values.get(name)) is not None and not isinstance(value, list)
        }
        command = Command(
            tuple(word_of(word.value, self.fragment, word.start, word.end) for word in words),
            MappingProxyType(env),
            span,
            heredocs,
            self._conditions > 0,
            background=self._background > 0,
            texts=tuple(as_fragment(word.value, self.fragment.source) for word in words),
        )
        self._run.commands.append(command)

    def _call(self, name: str, words: list[_Field]) -> None:
        """A function, where it is called; one that calls itself is read once."""
        self._called.add(name)
        if name in self._active:
            return
        self._active.add(name)
        arguments = self.variables.arguments
        values = [word.value for word in words[1:]]
        open_ended = any(hole_of(value) is not None and not value[0].quoted for value in values)
        self.variables.arguments = None if open_ended else values
        self._statement(self._functions[name])
        self.variables.arguments = arguments
        self._active.discard(name)

    def _evaluate(self, words: list[_Field]) -> None:
        """`eval` reads its words once more, in this very shell."""
        joined: list[Piece] = []
        for word in words[1:]:
            joined.extend((*word.value, word.value[-1]._replace(text=" ", offsets=None, hole=None)))
        self._nested(as_fragment(tuple(joined), self.fragment.source), self.variables)

    def _inner_script(self, words: list[_Field], script: int, within: Variables) -> None:
        """`bash -c TEXT NAME ARGUMENTS`: another shell, which knows only what is exported."""
        inner = self._of_another_shell(within, [word.value for word in words[script + 2 :]])
        self._nested(as_fragment(words[script].value, self.fragment.source), inner)

    @staticmethod
    def _of_another_shell(within: Variables, arguments: Array | None = None) -> Variables:
        known = {name: value for name, value in within.values.items() if name in within.exported}
        return Variables(known, set(within.exported), arguments)

    def _nested(self, fragment: Fragment, variables: Variables) -> None:
        reader = _Reader(fragment, variables, self._run, self._scripts + 1)
        reader._conditions = self._conditions
        reader._background = self._background
        reader._depth = self._depth
        reader.script()

    # Files that variables come from

    def _source(self, words: list[_Field]) -> None:
        """`source FILE`: the variables that it sets; the commands in it are looked at where it is read itself."""
        if len(words) > 1:
            self._take_variables(path_of(words[1].value))

    def _take_variables(self, path: str | None) -> None:
        file = self._run.files(path) if path is not None else None
        if not isinstance(file, Source) or file.path in self._run.open or self._run.sources >= MAX_SOURCES:
            return
        run = _Run(self._run.files)
        run.steps, run.sources, run.open = self._run.steps, self._run.sources + 1, self._run.open | {file.path}
        arguments = self.variables.arguments
        _Reader(Fragment.whole(file), self.variables, run, self._scripts + 1).script()
        self.variables.arguments = arguments
        self._run.steps, self._run.sources = run.steps, run.sources

    def _export_output(self, node: Node) -> None:
        """`export $(grep -v '^#' .env | xargs)`: the lines of the file, exported."""
        named = _ENV_FILE.search(self._text(node))
        before, self.variables.export_all = self.variables.export_all, True
        self._take_variables(named[0] if named else None)
        self.variables.export_all = before

    def _is_there(self, node: Node) -> bool | None:
        """Whether a file is found that a script which takes variables from files asks for."""
        if not _SOURCES.search(self.fragment.text):
            return None
        path = path_of(self._pieces(*self._range(node)))
        return True if path is not None and isinstance(self._run.files(path), Source) else None

    # Builtins that change variables

    def _set(self, words: list[_Field]) -> None:
        texts = [text_of(word.value) for word in words]
        if "--" in texts:
            rest = words[texts.index("--") + 1 :]
            open_ended = any(hole_of(word.value) is not None for word in rest)
            self.variables.arguments = None if open_ended else [word.value for word in rest]
        elif any(re.fullmatch(r"-[a-z]*a[a-z]*|allexport", text) for text in texts[1:]):
            self.variables.export_all = True
        elif "+a" in texts:
            self.variables.export_all = False

    def _shift(self, words: list[_Field]) -> None:
        count = text_of(words[1].value) if len(words) > 1 else "1"
        if self.variables.arguments is not None:
            self.variables.arguments = self.variables.arguments[int(count) :] if count.isdigit() else None

    def _read(self, words: list[_Field]) -> None:
        """`read A B`, `mapfile A`, `printf -v A`, `getopts x A`: set to what only the run tells.

        `read -a A <<<"$X"` makes an array of the words of a text.
        """
        options = [text_of(word.value) for word in words[1:] if text_of(word.value).startswith("-")]
        names = [text for word in words[1:] if _NAME.fullmatch(text := text_of(word.value))]
        if self._input is not None and len(names) == 1 and hole_of(self._input) is None:
            parts = fields([piece._replace(splits=True) for piece in self._input])
            is_array = any(re.fullmatch(r"-[a-z]*a", option) for option in options)
            self.variables.assign(names[0], parts if is_array else self._input)
            return
        for word in words[1:]:
            name = text_of(word.value)
            if _NAME.fullmatch(name):
                here = Piece("", self.fragment.source, *_offsets(self.fragment, word))
                self.variables.forget(name, f"${name} is read when it runs", here)

    def _printf(self, words: list[_Field]) -> None:
        if len(words) > 2 and text_of(words[1].value) == "-v":
            self._read(words[1:3])

    def _let_builtin(self, words: list[_Field]) -> None:
        for word in words[1:]:
            self._let(text_of(word.value), Piece("", self.fragment.source, *_offsets(self.fragment, word)))

    # Conditions

    def _truth(self, node: Node) -> bool | None:
        """Whether a test holds, from what the file sets; an unset variable counts as empty."""
        if node.type in ("true", "command") and self._text(node) in ("true", ":"):
            return True
        if node.type == "negated_command" and node.named_children:
            inner = self._truth(node.named_children[-1])
            return None if inner is None else not inner
        if node.type != "test_command" or node.children[0].type not in ("[", "[["):
            return None
        inside = [child for child in node.named_children if child.type != "comment"]
        return self._holds(inside[0]) if len(inside) == 1 else None

    def _holds(self, node: Node) -> bool | None:
        if node.type == "unary_expression" and len(node.children) == 2:
            operator = self._text(node.children[0])
            if operator == "!":
                inner = self._holds(node.children[1])
                return None if inner is None else not inner
            if operator in ("-f", "-e", "-r", "-s"):
                return self._is_there(node.children[1])
            text = self._operand(node.children[1])
            return None if text is None or operator not in ("-z", "-n") else (not text) == (operator == "-z")
        if node.type == "binary_expression" and len(node.children) == 3:
            left, right = self._operand(node.children[0]), self._operand(node.children[2])
            return _compare(self._text(node.children[1]), left, right)
        text = self._operand(node) if node.type in ("string", "word", "simple_expansion", "expansion") else None
        return None if text is None else bool(text)

    def _operand(self, node: Node) -> str | None:
        """The text of an operand; None where it is not known."""
        if node.type == "binary_expression" or node.type == "unary_expression":
            return None
        pieces = self._pieces(*self._range(node))
        holes = [piece.hole for piece in pieces if piece.hole is not None]
        if all(hole.reason.endswith("is not set in this file") for hole in holes):
            return "".join(piece.text for piece in pieces if piece.hole is None)
        return None


_SHELL_ALONE = re.compile(r"\|?\s*(?:sudo\s+)?(?:/\S*/)?(?:ba|da|z|k)?sh(?:\s+-[seux]+)*\s*(?:-)?\s*")
_SOURCES = re.compile(r"(?:^|[\s;&(])(?:source|\.)[ \t]")
_ENV_FILE = re.compile(r"[\w./-]*\.env\b[\w.-]*", re.ASCII)
_LET = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)([^=]+)", re.ASCII)
_CHANGED = re.compile(r"([A-Za-z_]\w*)\s*(?:\+\+|--|[-+*/%]?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)", re.ASCII)
_WITH_KEY = re.compile(r"\[[^\]\n]*\]=")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_STATEMENTS: Final[dict[str, Callable[[_Reader, Node], None]]] = {
    "command": _Reader._command,
    "redirected_statement": _Reader._redirected,
    "variable_assignment": _Reader._assignment,
    "declaration_command": _Reader._declaration,
    "unset_command": _Reader._unset,
    "if_statement": _Reader._if,
    "case_statement": _Reader._case,
    "for_statement": _Reader._loop,
    "select_statement": _Reader._loop,
    "c_style_for_statement": _Reader._loop,
    "while_statement": _Reader._loop,
    "list": _Reader._list,
    "pipeline": _Reader._pipeline,
    "subshell": _Reader._subshell,
    "compound_statement": _Reader._compound,
    "function_definition": _Reader._function,
    "test_command": _Reader._ignored,
    "comment": _Reader._ignored,
}

_BUILTINS: Final[dict[str, Callable[[_Reader, list[_Field]], None]]] = {
    "source": _Reader._source,
    ".": _Reader._source,
    "set": _Reader._set,
    "shift": _Reader._shift,
    "read": _Reader._read,
    "mapfile": _Reader._read,
    "readarray": _Reader._read,
    "getopts": _Reader._read,
    "printf": _Reader._printf,
    "let": _Reader._let_builtin,
}


def _reads_its_input(words: Sequence[_Field]) -> bool:
    """`bash <<EOF`, and `sbatch <<EOF`, which makes a job of it."""
    name = name_of(words[0].value)
    if name == "sbatch":
        return all(text_of(word.value).startswith("-") for word in words[1:])
    texts = [text_of(word.value) for word in words[1:]]
    return name in ("bash", "sh", "dash", "zsh", "ksh") and all(text in ("-s", "-e", "-x", "-l", "-") for text in texts)


def _within_limit(fragment: Fragment, run: _Run) -> Fragment:
    if len(fragment.text) <= MAX_CHARACTERS:
        return fragment
    end = fragment.text.rfind("\n", 0, MAX_CHARACTERS) + 1 or MAX_CHARACTERS
    why = f"{end} of {len(fragment.text)} characters"
    run.problems.append(
        Problem(fragment.span(end, end), f"The script is read only up to here: {why}.", severity="note")
    )
    return fragment.part(0, end)


def _word_ranges(text: str, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Words from the grammar's: those without a blank between them are one, escaped blanks between them count.

    A backslash before a blank at the end of a line is a word too (and the line after it another command).
    """
    start = end = -1
    for first, last in ranges:
        if end >= 0:
            start = yield from _gap(text, start, end, first)
        start = first if start < 0 else start
        end = max(end, last)
    if start >= 0:
        tail = _ESCAPED_BLANKS.match(text, end)
        start = yield from _gap(text, start, end, tail.end() if tail else end)
        if start >= 0:
            yield start, tail.end() if tail else end


_ESCAPED_BLANKS = re.compile(r"(?:[ \t]*\\[ \t])+")


def _gap(text: str, start: int, at: int, end: int) -> Generator[tuple[int, int], None, int]:
    """Goes on from a word that began at `start` to `end`; returns where the word that reaches there began, or -1."""
    while at < end:
        if text.startswith("\\\n", at):
            at += 2
        elif text[at] == "\\":
            start = at if start < 0 else start
            at += 2
        else:
            if start >= 0:
                yield start, at
            start, at = -1, at + 1
    return start


def _words_after_target(redirect: Node) -> list[Node]:
    """`> log --flag`: the grammar takes every word after `>` into the redirection, bash only the first."""
    if redirect.type == "file_redirect":
        return redirect.children_by_field_name("destination")[1:]
    if redirect.type == "heredoc_redirect":
        inner = [
            word for child in redirect.children if child.type == "file_redirect" for word in _words_after_target(child)
        ]
        return [*(child for child in redirect.children if child.type in _LOOSE_WORDS), *inner]
    return []


def _branches_of_if(node: Node) -> list[tuple[list[Node], list[Node]]]:
    """(condition, body) of if, each elif, and else (without a condition)."""
    found: list[tuple[list[Node], list[Node]]] = []
    parts = [node, *(child for child in node.children if child.type in ("elif_clause", "else_clause"))]
    for part in parts:
        condition: list[Node] = []
        body: list[Node] = []
        into = body if part.type == "else_clause" else condition
        for child in part.children:
            if child.type == "then":
                into = body
            elif child.is_named and child.type not in ("comment", "elif_clause", "else_clause"):
                into.append(child)
        found.append((condition, body))
    return found


def _last_of_list(node: Node) -> Node:
    """What decides whether the right side of `a && b || c` runs."""
    while node.type == "list":
        node = node.named_children[-1]
    return node


def _assigned(node: Node, text: Callable[[Node], str]) -> set[str]:
    """Variables that are changed anywhere below a node."""
    names: set[str] = set()
    for inner in _walk(node):
        if inner.type == "variable_assignment":
            name = inner.child_by_field_name("name")
            if name is not None:
                names.add(text(name))
        elif inner.type in ("postfix_expression", "unary_expression", "compound_statement"):
            names.update(changed[1] or changed[2] for changed in _CHANGED.finditer(text(inner)[:200]))
    return names


def _walk(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children))


def _matches(text: str, pattern: str) -> bool:
    """A pattern of `case` that holds a variable or extended glob may match anything."""
    if re.search(r"[$`(]", pattern):
        return True
    return fnmatchcase(text, re.sub(r"[\"'\\]", "", pattern)) if len(text) + len(pattern) < 1000 else True


def _compare(operator: str, left: str | None, right: str | None) -> bool | None:
    if left is None or right is None:
        return None
    if operator in ("=", "=="):
        return left == right if not re.search(r"[*?\[]", right) else None
    if operator == "!=":
        return left != right if not re.search(r"[*?\[]", right) else None
    numbers = _NUMBERS.get(operator)
    if numbers is None or not (_INTEGER.fullmatch(left) and _INTEGER.fullmatch(right)):
        return None
    return numbers(int(left), int(right))


_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
_NUMBERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}


def _from(value: Value, start: int) -> Value:
    """A value without its first characters."""
    out: list[Piece] = []
    for piece in value:
        if start < len(piece.text):
            out.append(piece.cut(start, len(piece.text)))
        start = max(0, start - len(piece.text))
    return tuple(out) or (value[-1]._replace(text="", quoted=True),)


def _offsets(fragment: Fragment, word: _Field) -> tuple[int, int]:
    return fragment.offsets[word.start], fragment.offsets[max(word.start, word.end - 1)] + 1
