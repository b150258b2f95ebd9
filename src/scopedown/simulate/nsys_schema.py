"""The tables of an Nsight Systems SQLite export: columns, their types, and the schema version that brought them.

Facts read from exports of 2020 to 2026 (``PRAGMA table_info``); names such as ``ENUM_CUDA_KRENEL_LAUNCH_TYPE`` are the
tool's own. ``!`` marks NOT NULL, ``@3.11`` the first schema version that has the column, ``~3.0`` the first that lacks
it; columns are INTEGER unless named otherwise.
"""

from __future__ import annotations

Version = tuple[int, int]

_ACTIVITY = "start! end! deviceId! contextId! greenContextId@3.11 streamId! correlationId globalPid"
_SYNC = "start! end! deviceId! contextId! greenContextId@3.16 streamId! correlationId globalPid"
_API = "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId"

_TABLES: dict[str, str] = {
    "META_DATA_EXPORT": "name:TEXT! value:TEXT",
    "EXPORT_META_DATA": "name:TEXT! value:TEXT",
    "META_DATA_CAPTURE": "name:TEXT! value:TEXT",
    "StringIds": "id:KEY value:TEXT!",
    "PROCESSES": "globalPid pid name:TEXT",
    "ThreadNames": "nameId! priority globalTid",
    "ANALYSIS_DETAILS": "globalVid! duration! startTime! stopTime!",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime:TEXT localTime:TEXT systemClockNs@3.24",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid! uuid:TEXT@3.20 numMultiprocessors@3.20",
    "TARGET_INFO_GPU": (
        "vmId! id! name:TEXT busLocation:TEXT isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount"
        " pwGpuId uuid:TEXT luid chipName:TEXT cuDevice ctxswDevPath:TEXT ctrlDevPath:TEXT revision nodeMask"
        " constantMemory maxIPC maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm"
        " maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm maxBlocksPerSm maxThreadsPerBlock maxBlockDimX"
        " maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ computeMajor computeMinor smMajor smMinor"
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        f"{_ACTIVITY} demangledName! shortName! mangledName@2.9 launchType cacheConfig registersPerThread! gridX!"
        " gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory! localMemoryPerThread!"
        " localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig@2.9"
        " qmdBulkReleaseDone@3.24 qmdPreexitDone@3.24 qmdLastCtaDone@3.24 graphId@3.24 clusterX@3.24 clusterY@3.24"
        " clusterZ@3.24 clusterSchedulingPolicy@3.24 maxPotentialClusterSize@3.24 maxActiveClusters@3.24"
        " sharedMemoryRequestedPercentage@3.25 tensorSizeMinusOneElements:TEXT@3.25"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        f"{_ACTIVITY} bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId"
        " dstContextId migrationCause@2.9 graphNodeId virtualAddress@2.9 copyCount@3.20"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_ACTIVITY} value! bytes! graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_ACTIVITY} graphId! graphExecId!",
    "CUPTI_ACTIVITY_KIND_RUNTIME": _API,
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (f"{_SYNC} deprecatedSyncType@3.17 syncType! eventId! eventSyncId@3.17"),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (
        "timestamp@3.24 deviceId! contextId! greenContextId@3.16 streamId! correlationId globalPid eventId!"
        " eventSyncId@3.24"
    ),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "start! end! eventClass! globalTid correlationId nameId overheadType!",
    "NVTX_EVENTS": (
        "start! end eventType! rangeId category color text:TEXT globalTid endGlobalTid textId domainId uint64Value"
        " int64Value doubleValue:REAL uint32Value int32Value floatValue:REAL jsonTextId jsonText:TEXT"
        " binaryData:TEXT@3.16"
    ),
    "OSRT_API": "start! end! eventClass! globalTid nameId! returnValue! nestingLevel callchainId! argumentsId@3.23",
    "SCHED_EVENTS": "start! cpu! isSchedIn! globalTid threadState@3.16 threadBlock@3.16",
    "DIAGNOSTIC_EVENT": "timestamp! timestampType! source! severity! text:TEXT! globalPid",
    "ENUM_CUDA_MEMCPY_OPER": "id:KEY name:TEXT label:TEXT",
    "ENUM_CUDA_MEM_KIND": "id:KEY name:TEXT label:TEXT",
    "ENUM_CUPTI_SYNC_TYPE": "id:KEY name:TEXT label:TEXT",
    "ENUM_CUPTI_OVERHEAD_TYPE": "id:KEY name:TEXT label:TEXT",
    "ENUM_NSYS_EVENT_TYPE": "id:KEY name:TEXT label:TEXT",
}

#: Tables that came or went with a schema version: (first, first without).
_LIFE: dict[str, tuple[Version, Version]] = {
    "META_DATA_EXPORT": ((3, 4), (99, 0)),
    "EXPORT_META_DATA": ((2, 9), (3, 4)),
    "META_DATA_CAPTURE": ((3, 4), (99, 0)),
    "TARGET_INFO_CUDA_DEVICE": ((3, 17), (99, 0)),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": ((3, 24), (99, 0)),
    "DIAGNOSTIC_EVENT": ((3, 11), (99, 0)),
    **{name: ((3, 0), (99, 0)) for name in _TABLES if name.startswith("ENUM_")},
}

ENUMS: dict[str, dict[int, tuple[str, str]]] = {
    "ENUM_CUDA_MEMCPY_OPER": {
        0: ("CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"),
        1: ("CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"),
        2: ("CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"),
        8: ("CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"),
        10: ("CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"),
    },
    "ENUM_CUDA_MEM_KIND": {
        0: ("CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"),
        1: ("CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"),
        2: ("CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"),
    },
    "ENUM_CUPTI_SYNC_TYPE": {
        1: ("CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"),
        2: ("CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait sync"),
        3: ("CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"),
        4: ("CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"),
    },
    "ENUM_CUPTI_OVERHEAD_TYPE": {
        2: ("CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER", "Driver compiler"),
        6: ("CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING", "Runtime triggered module loading"),
        7: ("CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING", "Lazy function loading"),
        8: ("CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL", "Command buffer full"),
    },
    "ENUM_NSYS_EVENT_TYPE": {
        34: ("NvtxMark", "NvtxMark"),
        59: ("NvtxPushPopRange", "NvtxPushPopRange"),
        60: ("NvtxStartEndRange", "NvtxStartEndRange"),
        75: ("NvtxDomainCreate", "NvtxDomainCreate"),
    },
}


def tables(version: Version) -> dict[str, dict[str, str]]:
    """Table -> column -> SQL type, as a tool of that schema version writes them."""
    found: dict[str, dict[str, str]] = {}
    for table, text in _TABLES.items():
        first, gone = _LIFE.get(table, ((0, 0), (99, 0)))
        if first <= version < gone:
            found[table] = dict(c for c in map(_column, text.split()) if c is not None and _since(c[1]) <= version)
            found[table] = {c: t.partition("@")[0] for c, t in found[table].items()}
    return found


def _column(text: str) -> tuple[str, str] | None:
    name, _, since = text.partition("@")
    not_null = " NOT NULL" if name.endswith("!") else ""
    name, _, kind = name.rstrip("!").partition(":")
    sql = {"KEY": "INTEGER NOT NULL PRIMARY KEY", "": "INTEGER"}.get(kind, kind) + not_null
    return name, f"{sql}@{since}" if since else sql


def _since(sql: str) -> Version:
    _, _, since = sql.partition("@")
    major, _, minor = since.partition(".")
    return (int(major), int(minor)) if since else (0, 0)
