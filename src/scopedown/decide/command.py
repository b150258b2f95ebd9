"""The next measurement as one exact command: the smallest that answers one question, for this tool and version.

Rules behind the tables: graph level before node level; device and API before host stacks; the framework's profiler
without stacks before with; ``ncu`` on one launch with few sections and never on a live server.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from scopedown.decide.ask import amd, application, framework, kernel, timeline
from scopedown.decide.servers import Context, Server, Vendor
from scopedown.decide.tools import is_collective
from scopedown.report import Command
from scopedown.terms import Scope

__all__ = ["FIRST", "Context", "Question", "Scope", "Server", "Vendor", "next_command"]


class Question(StrEnum):
    """What a measurement is to answer."""

    STAMPS = "stamps"
    """How the wait divides between queue and service."""
    CLIENT = "client"
    """Whether the client sent when it meant to."""
    MONITOR = "monitor"
    """When the device was active, over a long window."""
    TIMELINE = "timeline"
    """When the host submits and the device executes."""
    GRAPH_NODES = "graph-nodes"
    """What happens inside a graph launch that was recorded as a whole."""
    OS = "os"
    """Why a host thread was late as the operating system sees it."""
    RANKS = "ranks"
    """Which rank arrives last."""
    FRAMEWORK = "framework"
    """Which operators and calls the host makes between two launches."""
    PYTHON = "python"
    """Which Python functions they come from."""
    COMPILE = "compile"
    """Which graph breaks and recompilations, and because of which guard."""
    KERNEL = "kernel"
    """How far one launch is from its roofs."""
    LINES = "lines"
    """On which lines its warps wait."""
    INSTRUCTIONS = "instructions"
    """What the compiler made of it."""


#: The question that a scope is opened with.
FIRST: dict[Scope, Question] = {
    Scope.APPLICATION: Question.STAMPS,
    Scope.TIMELINE: Question.TIMELINE,
    Scope.FRAMEWORK: Question.FRAMEWORK,
    Scope.KERNEL: Question.KERNEL,
    Scope.SOURCE: Question.LINES,
    Scope.INSTRUCTIONS: Question.INSTRUCTIONS,
}


def next_command(scope: Scope, question: Question | None = None, context: Context | None = None) -> Command:
    """The command for a question (the first of its scope where none is given).

    A kernel question about a collective becomes the question which rank is late: a collective cannot be replayed
    alone.
    """
    asked, context = question or FIRST[scope], context or Context()
    if asked in (Question.KERNEL, Question.LINES) and context.kernel_name and is_collective(context.kernel_name):
        asked = Question.RANKS
    if asked in (Question.FRAMEWORK, Question.PYTHON) and not context.python:
        asked = Question.OS
    makers = _MAKERS | _OF_VENDOR.get(context.vendor, {})
    command = makers[asked](context)
    if context.server is Server.PLAIN:
        command.needs.append("for a model server name it: --server vllm, sglang or trtllm, with ==VERSION")
    if any("MODEL" in step.argv for step in command.steps):
        command.needs.append("your model in place of MODEL, and your server's own options behind it")
    if any('"PROMPT"' in word for step in command.steps for word in step.argv):
        command.needs.append("the prompt of the symptom in place of PROMPT")
    return command


_MAKERS: dict[Question, Callable[[Context], Command]] = {
    Question.STAMPS: application.stamps,
    Question.CLIENT: application.client,
    Question.MONITOR: application.monitor,
    Question.TIMELINE: timeline.timeline,
    Question.GRAPH_NODES: timeline.graph_nodes,
    Question.OS: timeline.os,
    Question.RANKS: timeline.ranks,
    Question.FRAMEWORK: framework.framework,
    Question.PYTHON: framework.python,
    Question.COMPILE: framework.compile_log,
    Question.KERNEL: kernel.kernel,
    Question.LINES: kernel.source_lines,
    Question.INSTRUCTIONS: kernel.instructions,
}

_TIMELINES = (Question.TIMELINE, Question.GRAPH_NODES, Question.OS, Question.RANKS)
_KERNELS = (Question.KERNEL, Question.LINES, Question.INSTRUCTIONS)
#: Where another vendor's tools answer a question.
_OF_VENDOR: dict[Vendor, dict[Question, Callable[[Context], Command]]] = {
    Vendor.AMD: {
        **dict.fromkeys(_TIMELINES, amd.timeline),
        **dict.fromkeys(_KERNELS, amd.kernel),
        Question.MONITOR: amd.monitor,
    },
    Vendor.TPU: dict.fromkeys((*_TIMELINES, Question.FRAMEWORK, Question.PYTHON, *_KERNELS), amd.tpu),
}
