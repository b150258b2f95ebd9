"""The rules, in the order in which their findings are read. One file a rule; adding one is adding its name."""

from __future__ import annotations

from scopedown.decide.rules.alloc_churn import AllocChurn
from scopedown.decide.rules.blocking_copy import BlockingCopy
from scopedown.decide.rules.cold_wave import ColdWave
from scopedown.decide.rules.dominant_kernel import DominantKernel
from scopedown.decide.rules.exposed_collective import ExposedCollective
from scopedown.decide.rules.exposed_copy import ExposedCopy
from scopedown.decide.rules.host_gap import HostGap
from scopedown.decide.rules.late_client import LateClient
from scopedown.decide.rules.launch_bound import LaunchBound
from scopedown.decide.rules.module_load import ModuleLoad
from scopedown.decide.rules.neighbour_work import NeighbourWork
from scopedown.decide.rules.nothing_wrong import NothingWrong
from scopedown.decide.rules.opaque_graph import OpaqueGraph
from scopedown.decide.rules.os_wait import OsWait
from scopedown.decide.rules.partial_capture import PartialCapture
from scopedown.decide.rules.queue_wait import QueueWait
from scopedown.decide.rules.rare_pause import RarePause
from scopedown.decide.rules.short_gaps import ShortGaps
from scopedown.decide.rules.side_stream import SideStream
from scopedown.decide.rules.sync_is_work import SyncIsWork
from scopedown.decide.rules.sync_pattern import SyncPattern

RULES = (
    HostGap(),
    LaunchBound(),
    DominantKernel(),
    SyncPattern(),
    SyncIsWork(),
    ExposedCopy(),
    BlockingCopy(),
    AllocChurn(),
    ModuleLoad(),
    OsWait(),
    OpaqueGraph(),
    ExposedCollective(),
    RarePause(),
    ShortGaps(),
    SideStream(),
    LateClient(),
    QueueWait(),
    NeighbourWork(),
    PartialCapture(),
    ColdWave(),
    NothingWrong(),
)
