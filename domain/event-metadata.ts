import type { AlertResource } from './alert-resource.ts'
import type { Changed } from './changed.ts'
import type { TokenUsage } from './chat.ts'
import type { StepVerification, VerificationOutcome } from './envelope.ts'
import type { EscalationReport } from './escalation.ts'
import type { Certainty, StoredClaim, StoredHypothesis, UnshownSentence } from './hypothesis.ts'
import type { EscalationCategory, IncidentRole, ResolveOutcome, ReviewVerdict, Severity } from './incident.ts'
import type { LeaderLooks } from './leader-look.ts'
import type { AnswerCost } from './price.ts'
import type { ResourceRef } from './registry.ts'
import type { RunbookGiven } from './runbook.ts'
import type { DiscoveredThing, EffectKind, Envelope, ListedNames, Preparation, Risk } from './tool.ts'
import type { Grade } from './trust.ts'
import type { RecordedUndo, Undoes } from './undo.ts'

/**
 * Metadata of each kind of row in an incident's log. Rows are stored for good, so the names and
 * shapes of their fields must not change.
 */

/** The type, severity, title and resource of an incident, in the row that opened the incident. */
export type OpenedIncident = { type: string; severity: Severity; title: string; resource: ResourceRef | null }

/**
 * Codes of notes about an incident that are not written by its runs. Pages and tests read the code
 * of a note; people read its text.
 */
export type NotedCode =
  /** Spending has reached this percentage of the model budget of the day or month. */
  | `budget_${'day' | 'month'}_${80 | 100}`
  | 'watch_started'
  | 'watch_over'
  | 'watch_unknown'
  | 'repair_confirmed'
  | 'reopened'
  | 'reminded'
  | 'quiet'
  | 'crowd'
  /**
   * The ends of many alerts were accepted as true, or an alert without an end was not repeated for
   * a long time.
   */
  | 'ends_believed'
  | 'stale'
  | 'quiet_unproven'
  | 'series_gone'
  | 'late_end'
  | 'foreign_end'
  | 'ending_kept'
  | 'approval_extended'
  | 'approval_passed'
  /** A person acts directly on the incident's resource. */
  | 'manual_change'
  /** A person requested the undo of a write, and it was carried out or refused. */
  | 'undo_asked'
  | 'undone'
  | 'undo_refused'
  /** A signal at Temporal without a decision token withdrew the questions of the run. */
  | 'withdrawn_at_temporal'
  | 'kept'
  | 'taken'
  | 'given_back'
  | 'owner_lapsed'
  /** Somebody acknowledged or resolved the incident at PagerDuty. */
  | 'acknowledged_elsewhere'
  | 'resolved_elsewhere'
  | 'expected_marked'
  | 'expected_ended'
  | 'not_as_expected'
  | 'run_lost'
  | 'attempt_skipped'
  /**
   * A repair failed or did not last, so its tool needs approval in this incident type from now on.
   */
  | 'trust_lost'
  /** A person graded the cause as wrong. Writes of the tool already required approval. */
  | 'called_wrong'
  | 'model_route'
  /** The page of a new incident was delayed, sent, or not needed. */
  | 'page_held'
  | 'page_released'
  | 'page_spared'
  /** A question at night woke nobody, because the budget of wakes is used up. */
  | 'wake_held'
  /** No destination accepted the morning card, so a page woke people when the night ended. */
  | 'wake_late'
  /** A task that remained when the incident ended as mitigated. */
  | 'follow_up_opened'
  | 'follow_up_changed'
  | 'follow_up_closed'

export type Verdict = 'run' | 'ask' | 'refuse'

/** One proposed call. `arguments` is null if they cannot be parsed, for the reason `problem`. */
export type ProposedCall = {
  id: string
  tool: string
  arguments: Record<string, unknown> | null
  problem: string | null
  /**
   * True if a secret was removed from the arguments before they were stored. A call with a secret
   * is refused.
   */
  secret?: boolean
  /** The tool's name as the model wrote it (`fs.read`), if code corrected the name. */
  spelled?: string
  /**
   * The form in which the model wrote the call, if not as a tool call: a text form, or
   * `loose_json`.
   */
  written?: string
  /** Arguments that code converted, for example null to an absent field, or digits to a number. */
  read?: { field: string; from: unknown; to: unknown }[]
}

/** A text that is too large for its row. The whole text is in `result_body` under its digest. */
export type BodyRef = { digest: string; bytes: number; head: string; tail: string }

export type ConfigInForce = Record<string, { value: unknown; source: string }>

/**
 * Facts outside the log on which a policy decision was based. The types are those of the kernel
 * (`Policy`, `Call`), stored as plain data.
 */
export type JudgedBasis = {
  at: string
  policy: Record<string, unknown>
  prepared: ({ ok: true } & Omit<Preparation, 'dryRun'>) | { ok: false; reason: string } | null
}

export type EventMetadata = {
  alert_received: {
    fingerprint: string
    source: string
    status: 'firing' | 'resolved'
    count: number
    labels: Record<string, string>
    severityWord: string | null
    severitySource: string
    truncatedAlerts: number
    cappedFields: string[]
    outcome: string
    /** The sender's word for an end of the alert that proves nothing. */
    endReason?: string
    /**
     * The incident that the alert opened. Absent in rows up to 0.2, and if no incident was opened.
     */
    opened?: OpenedIncident
    /**
     * How the resource of the opened incident was searched for. Absent in older rows, and if the
     * alert opened no incident.
     */
    about?: Omit<AlertResource, 'resource'>
  }
  /**
   * A read that code makes outside a run: after a repair, for an expected state, or after many
   * alerts ended.
   */
  looked: {
    purpose: 'watch' | 'expected' | 'crowd'
    verification: 'held' | 'not_held' | 'open' | 'unproven' | null
    resource: 'nominal' | 'degraded' | 'unknown' | null
    about: ResourceRef[]
    observed: string
    /** The part of the resource's state that is compared with an expected state. */
    state: Record<string, unknown> | null
  }
  noted: {
    code: NotedCode
    text: string
    /** For `model_route`: the declared names of the previous and the new model. */
    route?: { from: string; to: string }
    /** The approval that was extended, and the new end of its time. Absent before 0.3. */
    approvalId?: string
    expiresAt?: string
    /**
     * For `follow_up_…`: the state of the task after this row. `ownerId`: a person. `dueOn`: a
     * date.
     */
    followUp?: { ownerId: string | null; group: string | null; dueOn: string; isClosed: boolean }
    /** For an undo: the step key of the write, and the incident that undoes the write. */
    write?: string
    by?: string
  }
  claimed: {
    role: IncidentRole
    groupId: string
    workflowId: string
    /**
     * The first Temporal run of the workflow that claimed the incident; later Temporal runs
     * continue the workflow. Absent in rows of 0.1.0.
     */
    runId?: string
    config: ConfigInForce
  }
  context_assembled: {
    prompt: BodyRef
    tools: BodyRef
    /** Tools that the tool `more_tools` adds. Absent if all tools are offered at once. */
    more?: BodyRef
    context: BodyRef
    /** Runbooks that the model received: one in full, more by name. Absent if no runbook fits. */
    runbooks?: BodyRef
    /** The runbook given in full: its name, digest and origin; null if no runbook fits. */
    runbook?: RunbookGiven | null
    protocol: 'native' | 'json'
    model: string
    /** The model's name in the settings, if the settings name one. */
    route?: string
    parts: Record<string, 'ok' | 'empty' | 'failed'>
    hintFrom: string | null
    /**
     * Reads on which the ending of the leader was based, with the names of this incident. Absent if
     * no read can be repeated in this incident.
     */
    looks?: LeaderLooks
    maxTurns: number
    deadline: string
    tokenBudget: number
  }
  model_answered: {
    content: string
    body: BodyRef | null
    calls: ProposedCall[]
    final: {
      text: string
      confidence: 'high' | 'medium' | 'low' | null
      claims?: StoredClaim[]
    } | null
    problem: { code: string; text: string } | null
    usage: TokenUsage
    model: string
    /**
     * The address of the model server without credentials, and the model's name in the settings.
     * Absent in old rows.
     */
    server?: string
    route?: string
    finishReason: string
    durationMs: number
    cost?: AnswerCost
    /** Milliseconds of waiting for a slot of the model. Absent below one second. */
    waitedMs?: number
    /** Row numbers of people's messages that were new in this request to the model. */
    read?: number[]
  }
  model_failed: {
    code: string
    status: number | null
    activityAttempt: number
    retryAfterMs: number | null
    /** The address of the model server, as in `model_answered`. */
    server?: string
    route?: string
  }
  correction_sent: { code: string; text: string }
  call_judged: {
    callId: string
    tool: string
    arguments: Record<string, unknown> | null
    verdict: Verdict
    code: string
    reason: string
    hint: string | null
    /** Data in a fixed set of fields, with which a program can correct the call. */
    details?: Record<string, unknown>
    phase?: string
    /**
     * Corrections that code made before the policy decision, such as a guest instead of its host,
     * or a limited command instead of an endless one.
     */
    corrected?: { code: string; field: string; from: unknown; to: unknown }[]
    effect: EffectKind
    risk: Risk
    targets: ResourceRef[]
    actionDigest: string
    policyVersion: string
    foldedSeq: number
    /**
     * All other inputs of the policy decision. Together with the rows up to `foldedSeq`, the inputs
     * let `policy replay` repeat the decision.
     */
    basis?: JudgedBasis
    approvalId: string | null
    /**
     * The incident that has already asked people about this action. This call waits for its answer,
     * which serves both incidents.
     */
    joins?: string
    /** The dry run of a write in shadow, which is stored only here. */
    shadow?: string
  }
  tool_started: {
    callId: string
    tool: string
    arguments: Record<string, unknown>
    effect: EffectKind
    risk: Risk
    targets: ResourceRef[]
    actionDigest: string
    approvalId: string | null
  }
  /** Output of a long operation while the operation runs. `left`: the number of omitted lines. */
  tool_output: { callId: string; tool: string; lines: string[]; left: number }
  tool_finished: {
    callId: string
    tool: string
    arguments: Record<string, unknown>
    effect: EffectKind
    targets: ResourceRef[]
    outcome: 'done' | 'failed' | 'indeterminate'
    /**
     * The result of the call, without `data` if `data` is too large. `body` then shows where `data`
     * is stored.
     */
    result: Envelope
    body: BodyRef | null
    discovered: DiscoveredThing[]
    /**
     * Names that the read listed, each with kind and namespace. Absent in older rows, and if the
     * read listed no names.
     */
    listed?: ListedNames
    durationMs: number
    /**
     * The result in one line for people. Absent in older rows, and if the result has no such line.
     */
    said?: string
    /** Changes that a write made. Absent for reads and in rows of earlier versions. */
    changed?: Changed
    /**
     * How to undo this write from the state that it left. Absent if its tool declares no undo, and
     * in older rows.
     */
    undo?: RecordedUndo
  }
  step_started: { callId: string; step: number; action: string; vm: string; to: string }
  /** SKIPPED: the step of the plan never began. */
  step_finished: { callId: string; step: number; status: 'OK' | 'FAILED' | 'SKIPPED'; detail: string }
  verification: {
    callId: string
    tool: string
    targets: ResourceRef[]
    writeSeq: number
    outcome: VerificationOutcome
    /** The condition that was verified; empty if the write has no condition. */
    postcondition: string
    observed: string
    /**
     * The result of each step of a plan. Absent for writes without a plan, and in rows of earlier
     * versions.
     */
    steps?: StepVerification[]
  }
  approval_requested: {
    approvalId: string
    callId: string
    tool: string
    actionDigest: string
    risk: Risk
    required: number
    targets: ResourceRef[]
    summary: string
    expiresAt: string
    replaces: string | null
    /** Attachments of the dry run that people saw, by the digest of their bytes. */
    attachments?: { name: string; digest: string }[]
    /**
     * The digest of everything that the card showed (`shownDigest`). Absent in rows of 0.2 and
     * before.
     */
    shown?: string
  }
  approval_decided: {
    approvalId: string
    callId: string
    decision: 'approve' | 'deny'
    reason: string | null
    /** Hosts that the person states to be off. The statement is valid only for this approval. */
    hostIsOff?: string[]
    category?: string | null
    /** For a denial "not now": when the action may be requested again. */
    askAgainAt?: string
    via: string
    status: string
    actionDigest: string
    /** The person, and the times that the decision set. Absent in rows up to 0.2. */
    operatorId?: string
    at?: string
    decidedAt?: string | null
    useBy?: string | null
    /**
     * The incident that asked people and has the decision, if this row's incident only waited for
     * it.
     */
    joined?: string
  }
  approval_expired: { approvalId: string; callId: string; decidedAt?: string | null; joined?: string }
  approval_withdrawn: {
    approvalId: string
    callId: string
    reason: string
    edited?: Record<string, unknown>
    /** The person who changed the arguments, which withdrew this approval. */
    operatorId?: string
    decidedAt?: string | null
  }
  grant_used: { approvalId: string; grantId: string; usesLeft: number }
  hint_confirmed: { leader: string }
  hint_diverged: { leader: string; why: string }
  budget_ended: {
    budget: 'turns' | 'tokens' | 'time' | 'bytes' | 'loops' | 'corrections' | 'model'
    limit: number
    used: number
  }
  /**
   * `by`: the signed-in person who made the forbidden attempt. Absent if nobody was signed in, or
   * if this person is the subject.
   */
  security_event: { code: string; door: string; subject: string; detail: string; by?: string }
  resolved: {
    resolution: string
    outcome: ResolveOutcome
    claims: StoredClaim[]
    /** Sentences of the resolution that no log row shows. */
    unshown?: UnshownSentence[]
    confidence: string | null
    certainty?: Certainty
    /** The certainty that the agent stated, if code lowered the certainty. */
    claimed?: Certainty
  }
  escalated: {
    reason: string
    code: string
    severity: Severity
    category?: EscalationCategory
    /** The report for the person who takes over. */
    report?: EscalationReport
    unshown?: UnshownSentence[]
    certainty?: Certainty
    claimed?: Certainty
  }
  cancelled: { reason: string; until?: string }
  capability_gap: { category: 'investigation' | 'remediation' | 'notification'; description: string }
  commented: {
    text: string
    confidence: string | null
    action: string | null
    /** The incident as it was opened, if the action is `opened`. */
    opened?: OpenedIncident
    until?: string
    /** The resources that a message to the agent names. */
    named?: DiscoveredThing[]
    /** The cause that the agent or a person assumes, and its state. */
    hypothesis?: StoredHypothesis
  }
  notified: { destination: string; trigger: string; status: string; attempts: number }
  /**
   * A write that a person requested, and the state of its targets at the time of the request.
   * `alone`: an admin acted without a second person.
   */
  change_requested: {
    tool: string
    arguments: Record<string, unknown>
    targets: ResourceRef[]
    stateFingerprint: string
    risk: Risk
    reason: string
    operatorId: string
    name: string
    /** Type, severity, title and resource of the incident. Absent in rows of earlier versions. */
    opened?: OpenedIncident
    alone: boolean
    /** Hosts that the requesting person states to be off. */
    hostIsOff?: string[]
    /**
     * Whether the credential of the request may also decide. If not, the request does not count as
     * a vote.
     */
    mayVote: boolean
    /** The earlier write that this write undoes. */
    undoes?: Undoes
  }
  /** A second person's review of a write that an admin did alone. */
  change_reviewed: { verdict: ReviewVerdict; text: string; operatorId: string; name: string }
  /**
   * A person's grade of a cause or, with a call, of a write in shadow. Only the newest grade
   * counts.
   */
  graded: {
    callId?: string
    tool?: string
    attempt: number
    verdict: Grade
    text: string | null
    operatorId: string
    name: string
  }
}
