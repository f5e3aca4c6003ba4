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

/** The metadata of each kind of row in an incident's log. Stored: names and shapes stay. */

/** What an incident is about, said once, by the row that opened it. */
export type OpenedIncident = { type: string; severity: Severity; title: string; resource: ResourceRef | null }

/**
 * Words of code about an incident, outside its runs. Closed: pages and tests read the word, people
 * the text.
 */
export type NotedCode =
  /** This share of a model budget is spent. */
  | `budget_${'day' | 'month'}_${80 | 100}`
  | 'watch_started'
  | 'watch_over'
  | 'watch_unknown'
  | 'repair_confirmed'
  | 'reopened'
  | 'reminded'
  | 'quiet'
  | 'crowd'
  /** The ends of a crowd are believed, or an alert that never ends was not heard of for long. */
  | 'ends_believed'
  | 'stale'
  | 'quiet_unproven'
  | 'series_gone'
  | 'late_end'
  | 'foreign_end'
  | 'ending_kept'
  | 'approval_extended'
  | 'approval_passed'
  /** A person acts on the same thing directly. */
  | 'manual_change'
  /** A person asked for the undo of a write, it was undone, or that was refused. */
  | 'undo_asked'
  | 'undone'
  | 'undo_refused'
  /** A signal without a token took the run's questions back. */
  | 'withdrawn_at_temporal'
  | 'kept'
  | 'taken'
  | 'given_back'
  | 'owner_lapsed'
  /** At PagerDuty, to the page of this incident. */
  | 'acknowledged_elsewhere'
  | 'resolved_elsewhere'
  | 'expected_marked'
  | 'expected_ended'
  | 'not_as_expected'
  | 'run_lost'
  | 'attempt_skipped'
  /** A repair was wrong or did not last: its tool acts unasked no more in this type. */
  | 'trust_lost'
  /** A person called its cause wrong, and what was written for it asks people already. */
  | 'called_wrong'
  | 'model_route'
  /** The page of a new incident waits, left, or was not needed. */
  | 'page_held'
  | 'page_released'
  | 'page_spared'
  /** A question of the night wakes nobody: the budget of wakes is used up. */
  | 'wake_held'
  /** Nobody took its card: people were woken for it as the night ended. */
  | 'wake_late'
  /** A task that an incident left when it ended as mitigated. */
  | 'follow_up_opened'
  | 'follow_up_changed'
  | 'follow_up_closed'

export type Verdict = 'run' | 'ask' | 'refuse'

/** One call as proposed; `arguments` is null where unreadable, and `problem` says why. */
export type ProposedCall = {
  id: string
  tool: string
  arguments: Record<string, unknown> | null
  problem: string | null
  /** A secret was taken out of the arguments before they were stored: such a call is refused. */
  secret?: boolean
  /** The tool as the model spelled it, where code put its name right: `fs.read`. */
  spelled?: string
  /** The written form, where it was no tool call of the server: a text form, or `loose_json`. */
  written?: string
  /** Values read for what they plainly mean: null for an absent field, digits for a number. */
  read?: { field: string; from: unknown; to: unknown }[]
}

/** A body too large for its row: the whole is in `result_body` under its digest. */
export type BodyRef = { digest: string; bytes: number; head: string; tail: string }

export type ConfigInForce = Record<string, { value: unknown; source: string }>

/**
 * Facts that a ruling rested on besides the log. Shapes are the kernel's (`Policy`, `Call`), stored
 * as plain data.
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
    /** The sender's word for an end that proves nothing. */
    endReason?: string
    /** The incident that it opened; absent in rows up to 0.2, and where it opened none. */
    opened?: OpenedIncident
    /** The search for its resource, where it opened an incident. Absent in older rows. */
    about?: Omit<AlertResource, 'resource'>
  }
  /** A look by code without a run: after a repair, at an expected state, after a crowd of ends. */
  looked: {
    purpose: 'watch' | 'expected' | 'crowd'
    verification: 'held' | 'not_held' | 'open' | 'unproven' | null
    resource: 'nominal' | 'degraded' | 'unknown' | null
    about: ResourceRef[]
    observed: string
    /** State read from the resource, as far as a mark compares it. */
    state: Record<string, unknown> | null
  }
  noted: {
    code: NotedCode
    text: string
    /** For `model_route`: the models, by their declared names. */
    route?: { from: string; to: string }
    /** The approval that `approval_extended` is about, and its new end; absent before 0.3. */
    approvalId?: string
    expiresAt?: string
    /** For `follow_up_…`: its state after this row. `ownerId`: a person. `dueOn`: a day. */
    followUp?: { ownerId: string | null; group: string | null; dueOn: string; isClosed: boolean }
    /** For an undo: the step key of the write, and the incident that takes it back. */
    write?: string
    by?: string
  }
  claimed: {
    role: IncidentRole
    groupId: string
    workflowId: string
    /**
     * The first run of the workflow that claimed it, which later ones continue; absent in rows of
     * 0.1.0.
     */
    runId?: string
    config: ConfigInForce
  }
  context_assembled: {
    prompt: BodyRef
    tools: BodyRef
    /** What `more_tools` adds; absent where everything is offered. */
    more?: BodyRef
    context: BodyRef
    /** What of the runbooks the model had: one in full, others by name. Absent where none fits. */
    runbooks?: BodyRef
    /** The one in full: which, of what content, from where; null where none fits well enough. */
    runbook?: RunbookGiven | null
    protocol: 'native' | 'json'
    model: string
    /** The declared name of the model, where one is asked that the settings name. */
    route?: string
    parts: Record<string, 'ok' | 'empty' | 'failed'>
    hintFrom: string | null
    /**
     * The grounds of the leader's ending, in this incident's names; absent where none can be looked
     * at here.
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
    /** The server's address without credentials, and the model's declared name; not in old rows. */
    server?: string
    route?: string
    finishReason: string
    durationMs: number
    cost?: AnswerCost
    /** For a slot, before it was asked: others asked the model. Of a second or more. */
    waitedMs?: number
    /** Numbers of the messages of people that were in its request for the first time. */
    read?: number[]
  }
  model_failed: {
    code: string
    status: number | null
    activityAttempt: number
    retryAfterMs: number | null
    /** As in `model_answered`. */
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
    /** Closed data for programs that recover. */
    details?: Record<string, unknown>
    phase?: string
    /**
     * Corrections by code before it judged: a guest instead of its host, a bounded form for an
     * endless one.
     */
    corrected?: { code: string; field: string; from: unknown; to: unknown }[]
    effect: EffectKind
    risk: Risk
    targets: ResourceRef[]
    actionDigest: string
    policyVersion: string
    foldedSeq: number
    /**
     * All else the judge weighed: with the rows up to `foldedSeq` the ruling can be repeated
     * (`policy replay`).
     */
    basis?: JudgedBasis
    approvalId: string | null
    /** The incident whose question about this very action is waited for: one answer serves both. */
    joins?: string
    /** What the dry run of a write said that is in shadow: nothing else keeps it. */
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
  /** Lines of a long operation while they come; `left`: so many more were left out. */
  tool_output: { callId: string; tool: string; lines: string[]; left: number }
  tool_finished: {
    callId: string
    tool: string
    arguments: Record<string, unknown>
    effect: EffectKind
    targets: ResourceRef[]
    outcome: 'done' | 'failed' | 'indeterminate'
    /** The envelope without `data` where the data was too large; `body` then says where it is. */
    result: Envelope
    body: BodyRef | null
    discovered: DiscoveredThing[]
    /**
     * Names that it listed there, each with kind and namespace; absent in older rows, and where
     * there are none.
     */
    listed?: ListedNames
    durationMs: number
    /**
     * Its finding or deed, in one line for people; absent in older rows, and where nothing can be
     * said.
     */
    said?: string
    /** What a write changed. Absent for reads and in rows of earlier versions. */
    changed?: Changed
    /**
     * The way to take this write back, on the state it left. Absent where its tool declares none,
     * and in older rows.
     */
    undo?: RecordedUndo
  }
  step_started: { callId: string; step: number; action: string; vm: string; to: string }
  /** SKIPPED: it was never begun. */
  step_finished: { callId: string; step: number; status: 'OK' | 'FAILED' | 'SKIPPED'; detail: string }
  verification: {
    callId: string
    tool: string
    targets: ResourceRef[]
    writeSeq: number
    outcome: VerificationOutcome
    /** What had to be true; empty where nothing was promised. */
    postcondition: string
    observed: string
    /** Each step of a plan. Absent for other writes and in rows of earlier versions. */
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
    /** Attachments of the dry run, by the digest of their bytes: a part of what was shown. */
    attachments?: { name: string; digest: string }[]
    /** Digest of all that was shown (`shownDigest`); absent in rows of 0.2 and before. */
    shown?: string
  }
  approval_decided: {
    approvalId: string
    callId: string
    decision: 'approve' | 'deny'
    reason: string | null
    /** Hosts of which this person says that they are off: for this approval alone. */
    hostIsOff?: string[]
    category?: string | null
    /** For a denial "not now": when the action may be asked again. */
    askAgainAt?: string
    via: string
    status: string
    actionDigest: string
    /** The voter, the time, and what was set; absent in rows up to 0.2. */
    operatorId?: string
    at?: string
    decidedAt?: string | null
    useBy?: string | null
    /** The incident that asked, where this one only waited: that one's row holds the vote. */
    joined?: string
  }
  approval_expired: { approvalId: string; callId: string; decidedAt?: string | null; joined?: string }
  approval_withdrawn: {
    approvalId: string
    callId: string
    reason: string
    edited?: Record<string, unknown>
    /** Operator who wrote the arguments instead. */
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
  /** `by`: the person signed in who tried it; absent where there was none, or it is the subject. */
  security_event: { code: string; door: string; subject: string; detail: string; by?: string }
  resolved: {
    resolution: string
    outcome: ResolveOutcome
    claims: StoredClaim[]
    /** Sentences of the resolution that no row shows. */
    unshown?: UnshownSentence[]
    confidence: string | null
    certainty?: Certainty
    /** The words that were said, where code lowered them. */
    claimed?: Certainty
  }
  escalated: {
    reason: string
    code: string
    severity: Severity
    category?: EscalationCategory
    /** What a person needs before they open anything. */
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
    /** The incident as it was opened, where the action is `opened`. */
    opened?: OpenedIncident
    until?: string
    /** For a message to the agent: the resources that it names. */
    named?: DiscoveredThing[]
    /** What the agent, or a person, takes for the cause, and how it stands. */
    hypothesis?: StoredHypothesis
  }
  notified: { destination: string; trigger: string; status: string; attempts: number }
  /**
   * A write that a person asked for by hand, and the state; `alone`: an admin did it without a
   * second person.
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
    /** What the incident is; absent in rows of earlier versions. */
    opened?: OpenedIncident
    alone: boolean
    /** Hosts of which this person says that they are off. */
    hostIsOff?: string[]
    /** The asking credential may decide: without that, asking gives no vote. */
    mayVote: boolean
    /** The write that this takes back. */
    undoes?: Undoes
  }
  /** What a second person said of a write that was done alone. */
  change_reviewed: { verdict: ReviewVerdict; text: string; operatorId: string; name: string }
  /** A person's grade of a cause or, with a call, of a write left in shadow. The newest counts. */
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
