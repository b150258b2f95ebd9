"""The closed lists of words: scopes, categories, kinds. No such word is typed as a string anywhere else."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """The measurement scopes, from wide to narrow; the order of definition is the order of width."""

    APPLICATION = "application"
    TIMELINE = "timeline"
    FRAMEWORK = "framework"
    KERNEL = "kernel"
    SOURCE = "source"
    INSTRUCTIONS = "instructions"

    @property
    def width(self) -> int:
        """0 for the widest scope."""
        return list(Scope).index(self)


class Category(StrEnum):
    """What a line of a ledger is made of. Closed: other programs rely on it."""

    CLIENT = "client"
    NETWORK = "network"
    FRONTEND = "frontend"
    QUEUE = "queue"
    SCHEDULER = "scheduler"
    HOST_SYNC = "host.sync"
    HOST_ALLOC = "host.alloc"
    HOST_COPY = "host.copy"
    HOST_API = "host.api"
    HOST_MODULE = "host.module"
    HOST_FRAMEWORK = "host.framework"
    HOST_GRAPH_BREAK = "host.graph_break"
    HOST_RECOMPILE = "host.recompile"
    HOST_SCALAR_READ = "host.scalar_read"
    HOST_SHAPE_LOGIC = "host.shape_logic"
    HOST_LOGGING = "host.logging"
    HOST_DATA_LOADING = "host.data_loading"
    HOST_GC = "host.gc"
    HOST_PYTHON = "host.python"
    HOST_OS_WAIT = "host.os_wait"
    HOST_ANNOTATION = "host.annotation"
    HOST_UNTRACED = "host.untraced"
    LAUNCH = "launch"
    DEPENDENCY = "dependency"
    DEVICE_KERNEL = "device.kernel"
    DEVICE_COLLECTIVE = "device.collective"
    DEVICE_COPY = "device.copy"
    DEVICE_MEMSET = "device.memset"
    DEVICE_OPAQUE_GRAPH = "device.opaque_graph"
    DEVICE_ACTIVE = "device.active"
    DEVICE_INACTIVE = "device.inactive"
    ALIGNMENT_UNCERTAIN = "alignment-uncertain"
    NO_LAUNCH_RECORD = "no-launch-record"
    OUTSIDE_CAPTURE = "outside-capture"
    UNACCOUNTED = "unaccounted"

    @property
    def code(self) -> int:
        """Small integer for columns; the inverse is ``CATEGORIES[code]``."""
        return _CODES[self]

    @property
    def is_host(self) -> bool:
        return self.startswith("host.")

    @property
    def is_device(self) -> bool:
        return self.startswith("device.")


CATEGORIES: tuple[Category, ...] = tuple(Category)
_CODES: dict[Category, int] = {c: i for i, c in enumerate(CATEGORIES)}


class Kind(StrEnum):
    """Kinds of a decision."""

    MEASURE = "measure"
    CHANGE = "change"
    RECAPTURE = "recapture"
    ENOUGH = "enough"


class Metric(StrEnum):
    TTFT = "ttft"
    TPOT = "tpot"
    ITL = "itl"
    E2E = "e2e"
    QUEUE_TIME = "queue_time"
    STEP_TIME = "step_time"
    REQUEST_THROUGHPUT = "request_throughput"
    TOKEN_THROUGHPUT = "token_throughput"
    COST = "cost"

    @property
    def is_latency(self) -> bool:
        return self not in (Metric.REQUEST_THROUGHPUT, Metric.TOKEN_THROUGHPUT, Metric.COST)


class Statistic(StrEnum):
    MEAN = "mean"
    P50 = "p50"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    MAX = "max"
    REQUEST = "request"


class Objective(StrEnum):
    LATENCY = "latency"
    THROUGHPUT = "throughput"
    COST = "cost"
    OTHER = "other"


class Verdict(StrEnum):
    """Of a statement."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNTESTED = "untested"


class Status(StrEnum):
    """Of a request."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class FieldSource(StrEnum):
    """Where a field of the comparison contract comes from."""

    OBSERVED = "observed"
    DECLARED = "declared"
    MISSING = "missing"


_APPLICATION = frozenset({Category.CLIENT, Category.NETWORK, Category.FRONTEND, Category.QUEUE, Category.SCHEDULER})
_TIMELINE = frozenset(
    {
        Category.HOST_SYNC,
        Category.HOST_ALLOC,
        Category.HOST_COPY,
        Category.HOST_MODULE,
        Category.HOST_OS_WAIT,
        Category.DEVICE_COPY,
        Category.DEVICE_MEMSET,
        Category.DEPENDENCY,
    }
)
_FRAMEWORK = frozenset(
    {
        Category.HOST_GRAPH_BREAK,
        Category.HOST_RECOMPILE,
        Category.HOST_SCALAR_READ,
        Category.HOST_SHAPE_LOGIC,
        Category.HOST_LOGGING,
        Category.HOST_DATA_LOADING,
        Category.HOST_GC,
        Category.HOST_PYTHON,
    }
)

#: The scope whose evidence explains a category by naming its cause. Categories that are absent are explained by no
#: event of a timeline: ``RESOLVABLE_BY`` says who could.
EXPLAINED_BY: dict[Category, Scope] = (
    dict.fromkeys(_APPLICATION, Scope.APPLICATION)
    | dict.fromkeys(_TIMELINE, Scope.TIMELINE)
    | dict.fromkeys(_FRAMEWORK, Scope.FRAMEWORK)
)

#: For a category that the evidence sees but does not explain: the scopes that could, widest first.
RESOLVABLE_BY: dict[Category, tuple[Scope, ...]] = {
    Category.HOST_ANNOTATION: (Scope.FRAMEWORK,),
    Category.HOST_UNTRACED: (Scope.FRAMEWORK,),
    Category.HOST_FRAMEWORK: (Scope.FRAMEWORK,),
    Category.HOST_API: (Scope.FRAMEWORK,),
    Category.LAUNCH: (Scope.FRAMEWORK,),
    Category.DEVICE_KERNEL: (Scope.KERNEL,),
    Category.DEVICE_COLLECTIVE: (Scope.TIMELINE,),
    Category.UNACCOUNTED: (Scope.TIMELINE,),
    Category.OUTSIDE_CAPTURE: (Scope.TIMELINE,),
    Category.NO_LAUNCH_RECORD: (Scope.TIMELINE,),
    Category.DEVICE_OPAQUE_GRAPH: (Scope.TIMELINE,),
    Category.DEVICE_ACTIVE: (Scope.TIMELINE,),
    Category.DEVICE_INACTIVE: (Scope.TIMELINE,),
    Category.ALIGNMENT_UNCERTAIN: (Scope.APPLICATION,),
}

#: Host time that only the framework scope can explain: who runs there, and who makes so many calls.
HOST_WITHOUT_CAUSE: frozenset[Category] = frozenset(
    {
        Category.HOST_ANNOTATION,
        Category.HOST_UNTRACED,
        Category.HOST_FRAMEWORK,
        Category.HOST_API,
        Category.LAUNCH,
    }
)
