"""``bench serve`` / ``bench_serving`` results without detailed lists, and InferenceMAX's aggregates made from them.

``mean_ttft_ms``, ``median_tpot_ms``, ``p99_itl_ms``, ``p90_e2el_ms`` (SGLang: ``e2e_latency``). InferenceMAX writes the
same names without ``_ms``, in seconds: the unit of a name without one follows from ``intvty`` (its reciprocal in
tokens/s), else from the size of the TPOT. ITL is the gap between chunks, TPOT that between tokens: with speculative
decoding they differ by the tokens of a chunk.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from scopedown.errors import InputError
from scopedown.read.base import HEAD, Artifact, Source, Summary
from scopedown.read.bench import MS, Notes, S, head_of, ns, whole
from scopedown.read.bench_runs import chosen_run
from scopedown.read.bench_vllm import load_of, producer_of, runs_of
from scopedown.read.summary import STATISTICS, distribution, number, summary_artifact
from scopedown.terms import Metric, Scope

_KEY = re.compile(r"(mean|median|p50|p90|p95|p99|max)_(ttft|tpot|itl|e2el|e2e_latency)(_ms)?")
_SNIFF = re.compile(rb'"(mean|median|p\d+)_(ttft|tpot|itl|e2el|e2e_latency)(_ms)?"\s*:')
_METRICS = {
    "ttft": Metric.TTFT,
    "tpot": Metric.TPOT,
    "itl": Metric.ITL,
    "e2el": Metric.E2E,
    "e2e_latency": Metric.E2E,
}


class BenchServingSummary:
    kind: ClassVar[str] = "bench-serving-summary"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "vLLM, SGLang or TensorRT-LLM bench serving result, or InferenceMAX: statistics only"

    def __init__(self, run: int | None = None) -> None:
        self.run = run

    def sniff(self, source: Source) -> bool:
        head = head_of(source)
        if not head.startswith((b"{", b"[")):
            return False
        return bool(_SNIFF.search(head)) or (len(source.head) == HEAD and bool(_SNIFF.search(source.read())))

    def read(self, source: Source) -> Artifact:
        notes = Notes()
        runs = runs_of(source, notes)
        chosen = chosen_run(source, runs, [load_of(r) for r in runs], self.run, Notes())
        if len(chosen) > 1:
            named = ", ".join(f"{i} = {load_of(r)}" for i, r in chosen[:8])
            notes.say(f"{len(runs)} runs in one file ({named}): the last is taken; choose with --columns run=N")
        run = chosen[-1][1]
        summary = Summary(
            values=_values(source, run, notes),
            completed=whole(run.get("completed")),
            failed=whole(run.get("failed")),
            duration_ns=ns(run.get("duration"), S),
            request_rate=number(run.get("request_throughput")),
            output_rate=number(run.get("output_throughput")),
            load=load_of(run),
        )
        again = run.get("total_output_tokens_retokenized")
        if again not in (None, run.get("total_output_tokens")):
            notes.say(f"{run.get('total_output_tokens')} output tokens asked for, {again} counted again from the text")
        tpot, itl = (summary.values.get(m, {}) for m in (Metric.TPOT, Metric.ITL))
        mean = STATISTICS["mean"]
        if mean in tpot and mean in itl and itl[mean] > 1.5 * tpot[mean]:
            notes.say(f"a chunk holds {itl[mean] / tpot[mean]:.1f} tokens on average: ITL is between chunks")
        producer = "InferenceMAX" if "infmax_model_prefix" in run or "tput_per_gpu" in run else producer_of(run)
        return summary_artifact(source, self, summary, notes, producer)


def _values(source: Source, run: dict[str, Any], notes: Notes) -> dict[Metric, dict[Any, int]]:
    bare = _unit(source, run, notes)
    cells: dict[Metric, dict[str, Any]] = {}
    scales: dict[Metric, int] = {}
    for key, value in run.items():
        if (match := _KEY.fullmatch(key)) is not None:
            metric = _METRICS[match[2]]
            cells.setdefault(metric, {})[match[1]] = value
            scales[metric] = MS if match[3] else bare
    return {m: found for m, c in cells.items() if (found := distribution(c, scales[m]))}


def _unit(source: Source, run: dict[str, Any], notes: Notes) -> int:
    """Of names without a unit. Raises InputError where nothing tells seconds from milliseconds."""
    if not any((m := _KEY.fullmatch(k)) is not None and not m[3] for k in run):
        return MS
    tpot = number(run.get("median_tpot")) or number(run.get("mean_tpot")) or number(run.get("median_itl"))
    rate = number(run.get("median_intvty"))
    if rate and tpot and 0.5 < rate * tpot < 2:
        why, scale = "intvty is its reciprocal", S
    elif rate and tpot and 500 < rate * tpot < 2000:
        why, scale = "intvty is its reciprocal in tokens/s", MS
    elif tpot:
        # 0.5 ms a token is beyond what serving does, 0.5 s a token as well: in between lies all there is.
        why, scale = f"a TPOT of {tpot:.3g} can be no other", S if tpot < 0.5 else MS
    else:
        raise InputError(source.path, "mean_ttft", "has no unit, and no TPOT tells which", "name it mean_ttft_ms")
    notes.say(f"latencies have no unit in their names and are read as {'seconds' if scale == S else 'ms'}: {why}")
    return scale
