"""The application scope: stamps, the load client, the device monitor."""

from __future__ import annotations

from scopedown.decide import servers
from scopedown.decide.ask.steps import diagnose_again, keep, step
from scopedown.decide.servers import Context, Server
from scopedown.report import Command


def stamps(context: Context) -> Command:
    before, after = "metrics-before.prom", "metrics-after.prom"
    steps = []
    start = servers.metrics_start(context)
    if start:
        steps.append(step("server", "metrics on: they are off by default", start))
    steps += [
        step("client", "the counters before the load", servers.scrape(context, before)),
        step("client", "a request like the symptom's; send the symptom's own load instead where you can",
             servers.send_request(context)),
        step("client", "the counters after it: their difference is the queue time of this window",
             servers.scrape(context, after)),
    ]  # fmt: skip
    needs = ["a request log with the server's own stamps settles it: queued_ns and scheduled_ns in requests.jsonl"]
    if context.server is Server.VLLM:
        needs.append("read vllm:request_queue_time_seconds (sum and count), before and after")
    elif context.server is Server.SGLANG:
        needs.append("read sglang:queue_time_seconds before and after; the server's log has a line a request")
    elif context.server is Server.TRTLLM:
        needs.append("metrics.yaml with `return_perf_metrics: true`")
    else:
        needs.append("a server with a /metrics page")
    return Command(
        steps=steps,
        needs=needs,
        overhead="a scrape costs a few ms; native metrics cost 3.5 % in one public measurement",
        alternative="a mean over a window is not this request's own wait: only stamps are",
    )


def client(context: Context) -> Command:
    """An open-loop client that keeps the time at which it meant to send beside that at which it did."""
    rate = f"{context.rate:g}" if context.rate else "RATE"
    argv = ["aiperf", "profile", "--model", context.model_name, "--url", context.url, "--endpoint-type", "chat",
            "--streaming", "--request-rate", rate, "--request-count", "200"]  # fmt: skip
    return Command(
        steps=[step("client", "the same load from an open-loop client, on cores that the server does not use", argv)],
        needs=[
            "in your own client: one process whose only work is to send on schedule; write arrival_ns (when the "
            "schedule wanted it sent) and sent_ns for every request",
            "no cap on requests in flight below what the load needs",
            *(["the offered load in place of RATE"] if rate == "RATE" else []),
        ],
        overhead="none on the server; on shared cores the client's choice moved TTFT 2.3 times",
    )


def monitor(context: Context) -> Command:
    out = keep(context, "gpu.csv")
    query = "timestamp,index,name,utilization.gpu,clocks.sm,power.draw,memory.used"
    argv = ["nvidia-smi", f"--query-gpu={query}", "--format=csv", "--loop-ms=100", f"--filename={out}"]
    return Command(
        steps=[
            step("server", "device activity while the load runs; end it with Ctrl-C", argv),
            diagnose_again(context, out),
        ],
        needs=["nvidia-smi; the driver averages utilisation over 1/6 to 1 s however often it is asked"],
        overhead="well below 1 %; below 100 ms it only repeats samples",
    )
