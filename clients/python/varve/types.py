# Made by generate.py; do not edit.
"""What the API answers, as its description has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Literal, Optional

Compaction = Literal["none", "queued", "already_queued"]
EventType = Literal["session.due", "session.compacted", "session.failed", "session.quarantined", "session.archived", "session.restored", "recompaction.started", "recompaction.progress", "recompaction.ended", "budget.spent", "webhook.disabled", "webhook.test"]
Format = Literal["openai-chat", "anthropic", "openai-responses", "gemini", "ai-sdk"]
From = Literal["checkpoint", "log"]
KeyScope = Literal["sessions:read", "sessions:write", "results:read", "compact", "policy", "export", "erase", "admin"]
RunState = Literal["queued", "running", "done", "unchanged", "postponed", "superseded", "failed"]
Trigger = Literal["threshold", "hard", "idle", "manual", "sweep", "follow_up", "recompaction", "restore", "damage", "summary"]
Verdict = Literal["now", "postponed", "unchanged"]
WindowSource = Literal["request", "model", "default"]


@dataclass
class Appended:
    """The answer to an append."""

    first_seq: int
    last_seq: int
    tokens: int
    context_tokens: int
    total_tokens: int
    compaction: Compaction
    replayed: bool
    usage_ignored: Optional[str] = None
    warnings: Optional[List[Warning]] = None
    context: Optional[View] = None
    problem: Optional[Problem] = None


@dataclass
class Cache:
    """What is known of the provider's cache of the session's prefix."""

    warm: bool
    age_seconds: int
    ttl_seconds: int


@dataclass
class ClientError:
    """An error in the form of OpenAI's API."""

    message: str
    type: Any
    code: str
    param: Optional[str]


@dataclass
class Cut:
    """A part of a message of which a view that fits the window has only the beginning and the end."""

    seq: int
    kind: str
    ref: str
    tokens_before: int
    tokens_after: int


@dataclass
class Decisions:
    """Counts what was decided about the tool results and large calls of the view that no summary has taken."""

    processed: int
    applied: int
    by_category: Dict[str, Any]
    by_reason: Dict[str, Any]


@dataclass
class Economy:
    """What a compaction gains and costs, in the price of an input token that no cache holds."""

    saved: int
    rewritten: int
    gain: float
    cost: float
    horizon: int
    read_back: Optional[float] = None


@dataclass
class Event:
    """Something that happened to a tenant's sessions or recompactions."""

    id: str
    n: int
    type: EventType
    timestamp: str
    session: Optional[str]
    data: Dict[str, Any]


@dataclass
class Failing:
    """A session whose compaction fails."""

    session: str
    key: str
    run: str
    failures: int
    deaths: int
    error: str
    since: str
    failed_at: str
    next_try_at: str
    quarantined_at: Optional[str]


@dataclass
class ForkedFrom:
    """What a session is a fork of."""

    session: str
    seq: int
    checkpoint: int


@dataclass
class Hit:
    """A passage that a search found."""

    ref: str
    line: int
    char_offset: int
    seq: int
    role: str
    part: int
    kind: str
    words: List[str]
    score: float
    snippet: str
    read_back: str
    tool: Optional[str] = None


@dataclass
class KeptPrefix:
    """The beginning of the view that keeps its bytes, and with them the provider's cache."""

    tokens: int
    share: float


@dataclass
class Message:
    """A message of a log."""

    seq: int
    role: str
    format: Format
    tokens: int
    client_id: Optional[str]
    created_at: str
    message: Dict[str, Any]
    removed_at: Optional[str] = None
    superseded_by: Optional[int] = None


@dataclass
class Omitted:
    """Counts what a bounded view leaves out."""

    messages: int
    tokens: int
    refs: List[str]
    units: Optional[int] = None


@dataclass
class OverflowRisk:
    """Reports that the view does not fit into its window although nothing more can be shortened."""

    over_by: int
    recommendation: str


@dataclass
class Policy:
    profile: Optional[str] = None
    enabled: Optional[bool] = None
    auto: Optional[bool] = None
    only_smaller: Optional[bool] = None
    trigger: Optional[float] = None
    trigger_tokens: Any = None
    trigger_bytes: Any = None
    target: Optional[float] = None
    target_tokens: Any = None
    media_bytes: Any = None
    hard: Optional[float] = None
    cache: Optional[Dict[str, Any]] = None
    economy: Optional[Dict[str, Any]] = None
    idle: Optional[Dict[str, Any]] = None
    tokens: Optional[Dict[str, Any]] = None
    tools: Optional[Dict[str, Any]] = None
    protect: Optional[Dict[str, Any]] = None
    cap: Optional[Dict[str, Any]] = None
    dedupe: Optional[Dict[str, Any]] = None
    arguments: Optional[Dict[str, Any]] = None
    trim: Optional[Dict[str, Any]] = None
    budget: Optional[Dict[str, Any]] = None
    whitespace: Optional[Dict[str, Any]] = None
    summarise: Optional[Dict[str, Any]] = None
    truncate: Optional[Dict[str, Any]] = None
    pins: Optional[Dict[str, Any]] = None
    wording: Optional[Dict[str, Any]] = None


@dataclass
class PolicyVersion:
    """How often each layer of a policy was changed."""

    tenant: int
    session: int


@dataclass
class Problem:
    """An error (RFC 9457); clients of OpenAI's API read `error`."""

    type: Any
    title: str
    status: int
    detail: str
    instance: str
    code: Any
    request_id: str
    retryable: bool
    error: ClientError
    current_seq: Optional[int] = None
    minimum_tokens: Optional[int] = None
    missing_scope: Optional[KeyScope] = None
    errors: Optional[List[Dict[str, Any]]] = None


@dataclass
class Repair:
    """A difference between a view and the log, made because the provider would refuse what is in the log."""

    rule: str
    kind: str
    seq: int
    detail: str


@dataclass
class Replaced:
    """The answer to a replacement."""

    superseded: int
    appended: int
    first_seq: Optional[int]
    last_seq: int
    tokens: int
    context_tokens: int
    total_tokens: int
    compaction: Compaction
    usage_ignored: Optional[str] = None
    warnings: Optional[List[Warning]] = None


@dataclass
class Report:
    """What a compaction looked at, what it did and why, and what is left to worry about."""

    messages_total: int
    messages_compacted: int
    actions: Dict[str, Any]
    reasons: Dict[str, Any]
    results_persisted: int
    bytes_before: int
    bytes_after: int
    view_tokens_before: int
    tokens_saved: int
    stale: Stale
    kept_prefix: KeptPrefix
    failed_open: List[str]
    overflow_risk: Optional[OverflowRisk]
    from_: Optional[From] = field(default=None, metadata={"name": "from"})
    decisions: Optional[Decisions] = None


@dataclass
class Result:
    """Describes a persisted tool result without its content."""

    ref: str
    seq: int
    part: int
    tool: str
    call_id: str
    category: str
    media_type: str
    bytes: int
    lines: int
    tokens: int
    sha256: str
    created_at: str


@dataclass
class RetentionState:
    idle_seconds: Optional[int]
    max_age_seconds: Optional[int]
    then: Any
    archive_max_age_seconds: Optional[int]


@dataclass
class Run:
    """One compaction: what asked for it, what it did, and how it ended."""

    id: str
    trigger: Trigger
    state: RunState
    base_checkpoint: Optional[int]
    checkpoint: Optional[int]
    through_seq: Optional[int]
    tokens_before: Optional[int]
    tokens_after: Optional[int]
    results_persisted: Optional[int]
    bytes_persisted: Optional[int]
    stages: List[Stage]
    timings_ms: Dict[str, Any]
    reason: str
    why: Any
    report: Any
    error: Optional[str]
    triggered_at: str
    started_at: Optional[str]
    finished_at: Optional[str]


@dataclass
class Session:
    """A session and its size."""

    id: str
    format: Optional[Format]
    model: str
    window_tokens: int
    window_source: WindowSource
    overhead_tokens: int
    metadata: Dict[str, Any]
    policy_version: PolicyVersion
    last_seq: int
    context_tokens: int
    total_tokens: int
    calibration: float
    unseen_tokens: int
    calibrated_tokens: int
    last_usage: Optional[Usage]
    checkpoint: int
    created_at: str
    last_append_at: Optional[str]
    policy: Optional[Policy] = None
    forked_from: Optional[ForkedFrom] = None
    retention: Optional[RetentionState] = None
    expires_at: Optional[str] = None
    warnings: Optional[List[Warning]] = None
    failing: Optional[Failing] = None


@dataclass
class Stage:
    """What a stage of the engine did."""

    stage: str
    entered: bool
    actions: int
    tokens_saved: int
    error: Optional[str] = None


@dataclass
class Stale:
    """Has the results that were replaced because newer ones for their resource followed."""

    count: int
    resources: List[str]
    resources_total: Optional[int] = None


@dataclass
class ToolAnswer:
    """With a `call_id` of the request `format` and `messages`, else `text`, `structured` and `images`."""

    tool: str
    is_error: bool
    format: Optional[Format] = None
    messages: Optional[List[Dict[str, Any]]] = None
    text: Optional[str] = None
    structured: Optional[Dict[str, Any]] = None
    images: Optional[List[Dict[str, Any]]] = None


@dataclass
class UploadedResult:
    """A result that was uploaded, with the text that stands for it in a message."""

    ref: str
    seq: int
    part: int
    tool: str
    call_id: str
    category: str
    media_type: str
    bytes: int
    lines: int
    tokens: int
    sha256: str
    created_at: str
    upload: str
    text: str


@dataclass
class Usage:
    """The tokens that the provider reported for the request whose answer is the assistant's last message."""

    input_tokens: int
    model: Optional[str] = None
    cache_creation_tokens: Optional[int] = None
    cache_read_tokens: Optional[int] = None
    output_tokens: Optional[int] = None


@dataclass
class View:
    """What to send to the model."""

    session: str
    format: Optional[Format]
    checkpoint: int
    through_seq: int
    last_seq: int
    tokens: int
    window_tokens: int
    over_window: bool
    messages: List[Dict[str, Any]]
    omitted: Optional[Omitted] = None
    cut: Optional[List[Cut]] = None
    degraded: Optional[bool] = None
    repairs: Optional[List[Repair]] = None
    tool_names: Optional[Dict[str, Any]] = None
    system: Any = None


@dataclass
class Warning:
    """What the caller should know of a request that was carried out."""

    pointer: str
    code: str
    detail: str


@dataclass
class Why:
    """Why a session is compacted now, or why not yet: the figures that decided."""

    decision: Verdict
    cause: str
    context_tokens: int
    trigger_tokens: int
    hard_tokens: int
    calibration: float
    unseen_tokens: int
    cache: Optional[Cache] = None
    economy: Optional[Economy] = None
