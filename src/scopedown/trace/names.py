"""What names mean: API calls by what they do, kernels by family, annotations without their counters.

>>> api_meaning("cuMemAlloc_v2").name, kernel_family("void at::native::reduce_kernel<512, 1>(T3)")
('ALLOC', 'at::native::reduce_kernel')
"""

from __future__ import annotations

import re
from enum import IntEnum

from scopedown.trace.model import LONGEST_NAME


class ApiMeaning(IntEnum):
    """What a runtime or driver call does, whatever the vendor."""

    LAUNCH = 0
    GRAPH_LAUNCH = 1
    SYNC = 2
    """Returns when earlier device work is done."""
    ALLOC = 3
    COPY = 4
    MEMSET = 5
    MODULE = 6
    """Loads, links or compiles device code."""
    EVENT_RECORD = 7
    STREAM_WAIT = 8
    OTHER = 9


_SUFFIX = re.compile(r"(?:_v\d+|_ptsz|_ptds|_spt)+$")

# Runtime (cuda*, hip*) and driver (cu*) names share their stems. The order matters: cuMemsetD8 sets memory, while
# cuMemSetAccess maps it; a graph launch is not a kernel launch.
_VENDOR = r"(?:cuda|cu|hip)"
_API: tuple[tuple[re.Pattern[str], ApiMeaning], ...] = (
    (re.compile(_VENDOR + r"GraphLaunch"), ApiMeaning.GRAPH_LAUNCH),
    (re.compile(_VENDOR + r"LaunchHostFunc"), ApiMeaning.OTHER),
    (re.compile(_VENDOR + r"(?:Ext)?(?:Module)?Launch|hipHccModuleLaunchKernel"), ApiMeaning.LAUNCH),
    (re.compile(_VENDOR + r"(?:Stream|Device|Event|Ctx|Thread|Context)Synchronize"), ApiMeaning.SYNC),
    (re.compile(_VENDOR + r"EventRecord"), ApiMeaning.EVENT_RECORD),
    (re.compile(_VENDOR + r"StreamWait(?:Event|Value)"), ApiMeaning.STREAM_WAIT),
    (re.compile(_VENDOR + r"(?:Drv)?Mem(?:cpy|Prefetch)"), ApiMeaning.COPY),
    (re.compile(_VENDOR + r"(?:Drv)?Memset"), ApiMeaning.MEMSET),
    (
        re.compile(
            r"(?:cuda|hip)(?:Ext)?(?:Malloc|Free|HostAlloc|HostMalloc|HostFree|HostRegister|HostUnregister|MemPool|"
            r"MemAlloc|MemCreate|MemMap|MemUnmap|MemRelease|MemSetAccess|MemAddress|ArrayCreate|ArrayDestroy)"
            r"|cu(?:Mem(?:Alloc|Free|Host|Create|Map|Unmap|Release|SetAccess|Address|Pool)|ArrayCreate|ArrayDestroy"
            r"|Array3DCreate|MipmappedArrayCreate|MipmappedArrayDestroy)"
        ),
        ApiMeaning.ALLOC,
    ),
    (re.compile(r"(?:cu|hip)Module(?:Load|Unload|GetFunction|GetGlobal|GetTexRef)"), ApiMeaning.MODULE),
    (
        re.compile(
            r"(?:cuda|cu|hip)(?:Library|Link)|cuKernelGetFunction|cuda(?:Module|GetKernel)"
            r"|__(?:cuda|hip)(?:Register|Unregister)|nvrtc|hiprtc|nvJitLink|nvPTXCompiler"
        ),
        ApiMeaning.MODULE,
    ),
    # HSA, on which HIP stands: alone in a trace where HIP was not traced (hsa.h, hsa_ext_amd.h).
    (re.compile(r"hsa_(?:amd_)?signal_(?:group_)?wait"), ApiMeaning.SYNC),
    (re.compile(r"hsa_(?:amd_)?memory_(?:async_)?copy(?!_engine)|hsa_amd_svm_prefetch"), ApiMeaning.COPY),
    (re.compile(r"hsa_amd_memory_fill"), ApiMeaning.MEMSET),
    (
        re.compile(
            r"hsa_(?:amd_)?memory_(?:pool_)?(?:allocate|free)|hsa_memory_(?:de)?register|hsa_amd_memory_(?:un)?lock"
            r"|hsa_amd_vmem_"
        ),
        ApiMeaning.ALLOC,
    ),
    (re.compile(r"hsa_(?:executable|code_object)_"), ApiMeaning.MODULE),
)

_STEMS = ("cu", "hip", "hsa_", "__cuda", "__hip", "nvrtc", "nvJitLink", "nvPTXCompiler")


def clean_api(name: str) -> str:
    """The name without the version and stream suffixes that tools append: ``cudaLaunchKernel_v7000`` and
    ``cudaMemcpyAsync_ptsz`` become ``cudaLaunchKernel`` and ``cudaMemcpyAsync``."""
    # Suffixes are short; over all of a long name the pattern would take the square of its length.
    return name[:-100] + _SUFFIX.sub("", name[-100:])


def api_meaning(name: str) -> ApiMeaning:
    """The meaning of a CUDA runtime, CUDA driver, HIP or HSA call, by its name with or without suffixes."""
    if not name.startswith(_STEMS):
        return ApiMeaning.OTHER
    for pattern, meaning in _API:
        if pattern.match(name):
            return meaning
    return ApiMeaning.OTHER


#: Values of ``overheadType`` in the table CUPTI_ACTIVITY_KIND_OVERHEAD of Nsight Systems exports (schema 3.24).
OVERHEAD_TYPES: dict[int, str] = {
    2: "JIT compilation",
    3: "CUPTI buffer flush",
    4: "CUPTI instrumentation",
    6: "module loading",
    7: "lazy function loading",
    8: "command buffer full",
}


class OverheadMeaning(IntEnum):
    MODULE = 0
    """The driver loads, links or compiles device code: the program's own cost."""
    COMMAND_BUFFER = 1
    """The launch queue is full: the host waits for the device."""
    TOOL = 2
    """The profiler's cost: absent without it."""


def overhead_meaning(name: str) -> OverheadMeaning:
    """What an overhead record of CUPTI, Kineto or Nsight Systems stands for, by its name."""
    text = name.lower()
    if "module load" in text or "function load" in text or "jit" in text or "compil" in text:
        return OverheadMeaning.MODULE
    if "command buffer" in text:
        return OverheadMeaning.COMMAND_BUFFER
    return OverheadMeaning.TOOL


_KEPT = r"(?P<kept>\.py[(:]\d+|(?<![A-Za-z0-9])v\d+(?:\.\d+)+)"
_COUNTER = re.compile(
    _KEPT
    + r"|(?P<before>\b[Rr]equest[ =:]+)(?=[^\s,;)\]]*\d)[^\s,;)\]]+"
    + r"|\b(?:chat)?cmpl-[\w-]+"
    + r"|\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
    + r"|\b0x[0-9a-fA-F]+\b"
    + r"|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b"
    + r"|(?<![A-Za-z0-9])\d+(?:[.,]\d+)*(?![A-Za-z0-9_])"
)


_DIGIT = re.compile(r"\d")


def without_counters(text: str) -> str:
    """Annotations that differ by a counter only become equal: ``step 12`` and ``aten::mm, op_id = 77`` become
    ``step #`` and ``aten::mm, op_id = #``.

    Counters are numbers that stand alone, also after an underscore, addresses, UUIDs and the ids of requests.
    Digits within a word (``sm80``, ``128x64``), source lines (``model.py(42)``) and versions stay.
    """
    if not _DIGIT.search(text):
        return text
    return _COUNTER.sub(lambda m: m["kept"] or (m["before"] or "") + "#", text)


class Counterless:
    """``without_counters`` for many names of few shapes: one range a layer and step makes a name of its own.

    Which parts of a name are counters does not depend on the values of its digits, but for zero (``0x1f``): names that
    agree in everything else are cut at the same places.
    """

    _SHAPE = str.maketrans("23456789", "11111111")

    def __init__(self) -> None:
        self._cuts: dict[str, list[tuple[int, int]]] = {}

    def __call__(self, text: str) -> str:
        shape = text.translate(self._SHAPE)
        cuts = self._cuts.get(shape)
        if cuts is None:
            found = _COUNTER.finditer(text) if _DIGIT.search(text) else ()
            cuts = self._cuts[shape] = [(m.start() + len(m["before"] or ""), m.end()) for m in found if not m["kept"]]
        for begin, end in reversed(cuts):
            text = f"{text[:begin]}#{text[end:]}"
        return text


_UNNAMED = re.compile(r"(?:<unnamed>|\(anonymous namespace\)|\{anonymous\})(?:::)?")
_WRAPPERS = frozenset({"cutlass::Kernel", "cutlass::Kernel2", "cutlass::device_kernel"})
_OPENING, _CLOSING = "([{", ")]}"


def _qualified(text: str) -> tuple[str, str]:
    """A demangled signature -> (function name with its namespaces, its first template argument)."""
    text = _UNNAMED.sub("", text).replace("operator ()", "operator()")
    kept: list[str] = []
    argument: list[str] = []
    angle = other = 0
    first = True
    i = 0
    while i < len(text):
        c = text[i]
        if angle == 0 and other == 0 and c == "(":
            if "".join(kept[-8:]) != "operator":
                break
            kept.append("()")
            i += 2
            continue
        if c == "<" and other == 0:
            angle += 1
            if angle > 1 and first:
                argument.append(c)
        elif c == ">" and other == 0 and text[i - 1 : i] != "-":
            angle -= 1
            if angle == 0:
                first = False
            elif first:
                argument.append(c)
        else:
            if angle == 0 and other == 0:
                kept.append(c)
            elif first:
                if c == "," and angle == 1 and other == 0:
                    first = False
                else:
                    argument.append(c)
            if c in _OPENING:
                other += 1
            elif c in _CLOSING:
                other -= 1
        i += 1
    words = "".join(kept).split()
    return (words[-1] if words else ""), "".join(argument).strip()


_NVJET = re.compile(r"nvjet_(?:sm\d+_)?([a-z]+)_")
_NCCL = re.compile(
    r"((?:nccl|rccl|msccl)[A-Za-z]*Kernel(?:_[A-Z][a-z]+[A-Za-z]*)??)"
    r"(?:_(?:Sum|Prod|Min|Max|Avg|PreMul|RING|TREE|NVLS|COLLNET|LL|SIMPLE|\d).*)?$"
)
_NVFUSER = re.compile(r"(nvfuser_[a-z_]+?)_f\d+_c\d+")
# The first token with a shape (128x64, tilesize64x256x8, MT128x128x32) begins the variant of a generated kernel.
_TILE = re.compile(r"_[A-Za-z]*\d+x\d+.*$")
_LAYOUT = re.compile(r"_[nt]{2}(?:_[nt])?$")
# Triton's older names end in the specialisation of the arguments: _0d1d2d3de4c.
_VARIANT = re.compile(r"(?:[_.]\d+|_(?:\d+(?:de|d|c)){1,}\d*)+$")
#: The patterns above take the square of the length.
_LONGEST_FUNCTION = 1000
_SIZE = re.compile(r"\d{1,9}")
_MANGLED = re.compile(r"_ZN?K?(?=\d)")


def _demangled(name: str) -> str:
    """The nested name of an Itanium-mangled symbol, without arguments: ``_ZN2at3fooIfEEvi`` -> ``at::foo``."""
    start = _MANGLED.match(name)
    if start is None:
        return name
    parts, at = [], start.end()
    while at < len(name) and (size := _SIZE.match(name, at)):
        begin = size.end()
        at = begin + int(size[0])
        parts.append(name[begin:at])
    return "::".join(p for p in parts if not p.startswith("_GLOBAL__N")) or name


def kernel_family(name: str) -> str:
    """Kernels that are variants of one function have one family.

    C++ names lose return type, template arguments and parameters; generated names lose tile shapes and trailing
    numbers; wrappers that only name their template argument (``cutlass::Kernel``) give way to it.

    >>> kernel_family("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT"), kernel_family("triton_poi_fused_add_3")
    ('nvjet_tst', 'triton_poi_fused_add')
    """
    text = name[:LONGEST_NAME].strip().removesuffix(" [clone .kd]").removesuffix(".kd")
    if text.startswith("_Z"):
        text = _demangled(text)
    if any(c in text for c in "(<: "):
        function, argument = _qualified(text)
        if function in _WRAPPERS and argument:
            return kernel_family(argument)
        text = function or text
    text = text[:_LONGEST_FUNCTION]
    if found := _NVJET.match(text):
        return f"nvjet_{found[1]}"
    for pattern in (_NCCL, _NVFUSER):
        if found := pattern.match(text):
            return found[1]
    shaped = _TILE.sub("", text)
    if shaped != text:
        shaped = _LAYOUT.sub("", shaped)
    return _VARIANT.sub("", shaped).rstrip("_") or text


def short_kernel_name(name: str, limit: int = 300) -> str:
    """The demangled name, or where it is longer than ``limit`` its function without template arguments and
    parameters. The family stays the same."""
    if len(name) <= limit:
        return name
    function, argument = _qualified(name[:LONGEST_NAME])
    if function in _WRAPPERS and argument:
        return f"{function}<{kernel_family(argument)}>"
    return function or name[:limit]


_COLLECTIVE = re.compile(
    r"nccl|rccl|msccl|nvshmem|rocshmem|cross_device_reduce|quick_?reduce|multimem_|deep_ep::|moe_?alltoall|userbuffers"
    r"|(?:one|two)_?shot|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all(?!oc)|ncclsym"
)


def is_collective(kernel: str) -> bool:
    """Whether a kernel exchanges data with other devices: NCCL, RCCL, MSCCL, NVSHMEM and the custom all-reduce
    kernels of serving engines. Judged by the function's own name, not by its template arguments."""
    return _COLLECTIVE.search(kernel_family(kernel).lower()) is not None
