"""Questions, reasons and labels of a decision, from its numbers."""

from __future__ import annotations

from scopedown.decide.command import Context, Question, next_command
from scopedown.decide.kernels import Family
from scopedown.decide.select import Bound, Candidate, Selection
from scopedown.decide.situation import Situation
from scopedown.report import Command, Rejected
from scopedown.terms import Category, Kind, Scope
from scopedown.units import show_ns, show_share

_PHASE = {
    Category.CLIENT: "the lateness of the load client",
    Category.NETWORK: "the way to the engine (network and front end)",
    Category.FRONTEND: "the front end",
    Category.QUEUE: "waiting in the queue",
    Category.SCHEDULER: "device work of other requests",
}
_CAUSE = {
    Category.HOST_SYNC: "the return of synchronising calls",
    Category.HOST_ALLOC: "allocation and release of memory",
    Category.HOST_COPY: "blocking copy calls",
    Category.HOST_MODULE: "module load or compilation",
    Category.HOST_OS_WAIT: "waits of the operating system",
    Category.DEVICE_COPY: "copies that nothing overlaps",
    Category.DEVICE_MEMSET: "memsets",
    Category.DEPENDENCY: "waits for work of another device or stream",
}
_ANSWERS = {
    Scope.TIMELINE: "when the host submits and when the device executes",
    Scope.FRAMEWORK: "which host code runs between launches",
    Scope.KERNEL: "how far one launch is from its roofs",
    Scope.SOURCE: "which lines of one kernel make its traffic or its waits",
    Scope.INSTRUCTIONS: "what the compiler made of one kernel",
}


#: What to change where a cause is explained, in order of what is tried first.
_REMEDY = {
    Category.CLIENT: "repair the load client: one process that only sends, on schedule",
    Category.NETWORK: "shorten the way to the engine: proxies, connections, the front end's own work",
    Category.FRONTEND: "move the front end's work (tokenising, detokenising, serialising) off the token's way",
    Category.QUEUE: "lower the load, add a replica, batch more, or shorten the service",
    Category.SCHEDULER: "chunk the prefills of others, or keep prefill and decode on devices of their own",
    Category.HOST_SYNC: "drop the waits that nothing needs, or wait for an event instead of the stream",
    Category.HOST_ALLOC: "allocate once before the loop, or from a pool (cudaMallocAsync, the framework's allocator)",
    Category.HOST_COPY: "pin the host buffer and copy asynchronously, or copy less often",
    Category.HOST_MODULE: "load, compile and warm up before what is measured (a warm-up request, eager module loading)",
    Category.HOST_OS_WAIT: "take the lock, sleep or poll out of the way of the launching thread",
    Category.DEVICE_COPY: "pin the host buffers, copy less, or overlap the copies with kernels on another stream",
    Category.DEVICE_MEMSET: "clear less, or inside the kernels that write the memory",
    Category.DEPENDENCY: "look at what the awaited device or stream does meanwhile",
}


def question_of(s: Situation, x: Selection) -> Question | None:
    """What the next measurement is to answer; None takes the scope's first question."""
    categories = x.winner.categories if x.winner is not None else ()
    if s.summary is not None and x.scope is Scope.APPLICATION and s.account.timeline is None:
        return Question.CLIENT
    if x.kind is Kind.RECAPTURE:
        return Question.TIMELINE if x.scope is Scope.TIMELINE else Question.STAMPS
    if Category.CLIENT in categories or (Category.QUEUE in categories and x.kind is Kind.CHANGE):
        return Question.CLIENT
    if Category.DEVICE_OPAQUE_GRAPH in categories:
        return Question.GRAPH_NODES
    if Category.DEVICE_COLLECTIVE in categories:
        return Question.RANKS
    if Category.HOST_OS_WAIT in categories:
        return Question.OS
    if x.scope is Scope.TIMELINE:
        return Question.TIMELINE
    return None


def command(x: Selection, asked: Question | None, context: Context) -> Command | None:
    """The commands of the decision; for a change those that measure it afterwards."""
    if x.kind is Kind.ENOUGH:
        return None
    made = next_command(x.scope, asked, context)
    if x.kind is Kind.CHANGE:
        made.needs.insert(0, "first the change: these commands measure it afterwards, as it was measured before")
    return made


def metrics(x: Selection) -> list[str]:
    """The smallest set that answers the question."""
    if x.scope is Scope.KERNEL:
        return [
            "gpu__time_duration.sum",
            "sm__throughput.avg.pct_of_peak_sustained_elapsed",
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "launch__waves_per_multiprocessor",
        ]
    if x.scope is Scope.TIMELINE:
        return ["API call start and end", "device op start and end", "correlation"]
    if x.scope is Scope.FRAMEWORK:
        return ["operator start and end", "launch call", "device op"]
    return ["arrival", "sent", "queued", "scheduled", "first token"] if x.kind is not Kind.ENOUGH else []


def question(s: Situation, x: Selection, families: list[Family]) -> str:
    """The question that the next step answers, as a sentence."""
    c = x.winner
    if x.kind is Kind.ENOUGH:
        return "Is anything left to do? No: the symptom is within its target."
    if s.summary is not None and x.scope is Scope.APPLICATION and s.account.timeline is None:
        return f"Which requests make the {show_ns(s.total_ns)}, and in which of their phases? The summary keeps none."
    if x.kind is Kind.RECAPTURE:
        return "What happened in the part of the interval that the evidence does not cover?"
    if c is None:
        return f"What does the {x.scope} scope say of this interval?"
    amount = show_ns(c.path_ns)
    if x.kind is Kind.CHANGE:
        what = _PHASE.get(c.categories[0]) or _CAUSE.get(c.categories[0]) or c.categories[0]
        gain = show_ns(c.reachable_ns)
        if not s.is_latency:
            return f"Does the {s.metric} improve without {what} ({amount} of {show_ns(s.total_ns)})?"
        return f"Does the {s.metric} fall by up to {gain} without {what} ({amount} on the path)?"
    if c.scope is Scope.KERNEL and c.family is not None:
        return (
            f"How far is one launch of {c.family.name} ({show_ns(c.family.median_ns)} in the middle of the family's "
            f"time, {c.family.launches} launches, {amount} on the path) from its roofs?"
        )
    if c.scope is Scope.FRAMEWORK:
        return f"Which host code makes the {amount} of the path in which the host had not asked for work or was asking?"
    if c.categories == (Category.DEVICE_COLLECTIVE,):
        return f"Which rank arrives last at the collectives that hold {amount} of the path?"
    if c.categories == (Category.DEVICE_OPAQUE_GRAPH,):
        return f"What is inside the graph launches that hold {amount} of the path?"
    if c.categories == (Category.QUEUE,):
        if s.queue is None:
            return f"How much of the {amount} that the requests took is queue? No server stamp says."
        return f"How much of the {s.metric} is queue? An estimate from requests in flight says {amount}."
    t = s.account.timeline
    if t is not None and not t.has_device_rows:
        return f"What did the device do during the {amount}? CUDA was not traced: the capture shows the host alone."
    del families
    return f"When does the host submit and the device execute in the {amount} that nothing has looked into?"


def why(s: Situation, x: Selection) -> str:
    """Why this scope: the amounts that decided."""
    total = s.total_ns
    if x.kind is Kind.ENOUGH and s.symptom is not None and not s.symptom.metric.is_latency:
        return f"{s.symptom.metric} reaches its target of {s.symptom.target}: it is met."
    if x.kind is Kind.ENOUGH and s.symptom is not None:
        value = s.chosen.value_ns if s.chosen is not None else total // s.parts
        return f"{s.symptom.metric} is {show_ns(value)}, its target {show_ns(s.symptom.target_ns or 0)}: it is met."
    limit = f"material here is {show_ns(x.material_ns)} ({show_share(x.material_ns, total)} of {show_ns(total)})"
    if x.kind is Kind.RECAPTURE:
        reasons = "; ".join(s.recapture) or _largest(s, x)
        return f"{reasons}. {limit[0].upper()}{limit[1:]}."
    c = x.winner
    if c is None:
        return f"Asked for; {_largest(s, x)}. {limit[0].upper()}{limit[1:]}."
    parts = []
    if x.kind is Kind.CHANGE and (remedy := _REMEDY.get(c.categories[0])):
        parts.append(f"to change: {remedy}")
    t = s.account.timeline
    if t is not None and not t.has_device_rows and c.categories == (Category.UNACCOUNTED,):
        parts.append("CUDA was not traced: the ledger shows what the host did, not what it waited for")
    else:
        parts.append(_holds(s, c))
    if c.reachable_ns < x.material_ns:
        parts.append("host and device hide each other: neither alone would save a material part")
    others = [o for o in x.candidates if o is not c and o.reachable_ns >= x.material_ns]
    if others:
        parts.append("also material: " + ", ".join(f"{_name(o)} {show_ns(o.reachable_ns)}" for o in others[:3]))
    parts.append(limit)
    if s.distance_ns:
        parts.append(f"the target is {show_ns(s.distance_ns)} away")
    return "; ".join(parts) + "."


def _holds(s: Situation, c: Candidate) -> str:
    share = show_share(c.path_ns, s.total_ns)
    saves = f"; taking it out saves {show_ns(c.reachable_ns)} by replay" if c.reachable_ns != c.path_ns else ""
    busy = s.busy_share()
    idle = (
        f" while the device is busy {100 * busy:.1f} % of the covered interval"
        if busy is not None and c.scope is Scope.FRAMEWORK
        else ""
    )
    return f"{_name(c)}: {show_ns(c.path_ns)} ({share}) of the {s.part}{idle}{saves}"


def _name(c: Candidate) -> str:
    if c.family is not None:
        return f"kernel family {c.family.name}"
    if c.scope is Scope.FRAMEWORK and len(c.categories) > 1:
        return "host time without a cause"
    first = c.categories[0]
    return _PHASE.get(first) or _CAUSE.get(first) or str(first)


def _largest(s: Situation, x: Selection) -> str:
    if not x.candidates:
        return f"no line of the {show_ns(s.total_ns)} competes"
    c = x.candidates[0]
    return f"the largest candidate, {_name(c)}, could save {show_ns(c.reachable_ns)}"


def rejected(s: Situation, x: Selection) -> list[Rejected]:
    """Each narrower scope with the most that it could explain, and why it would be premature."""
    out = []
    for b in x.bounds:
        distance = s.distance_ns
        out.append(
            Rejected(
                scope=b.scope,
                bound_ns=b.ns,
                bound_share=s.share(b.ns),
                bound_of_distance=b.ns / distance if distance else None,
                reasons=_reasons(s, x, b),
            )
        )
    return out


def _reasons(s: Situation, x: Selection, b: Bound) -> list[str]:
    out = []
    t = s.account.timeline
    unseen = t is None or not t.has_device_rows or s.account.service is None
    answers = _ANSWERS[b.scope]
    if x.kind is Kind.ENOUGH:
        return [f"the target is met: it is not needed to know {answers}"]
    if unseen:
        out.append(f"nothing yet says whether any of the {show_ns(b.ns)} lies where it would tell {answers}")
    elif b.ns < x.material_ns:
        out.append(f"all that it could explain is {show_ns(b.ns)}, below the material {show_ns(x.material_ns)}")
    elif b.ns < x.reachable_ns:
        out.append(f"it could explain at most {show_ns(b.ns)}; the {x.scope} scope can reach {show_ns(x.reachable_ns)}")
    else:
        out.append(
            f"it could explain up to {show_ns(b.ns)}, but the {x.scope} scope has to say first which part matters"
        )
    if s.distance_ns and not unseen and b.ns < s.distance_ns:
        out.append(f"even with all of it gone the target is missed by {show_ns(s.distance_ns - b.ns)}")
    if b.scope in (Scope.SOURCE, Scope.INSTRUCTIONS) and not unseen:
        out.append("no kernel report names a limiter or leaves a question to the compiler")
    return out
