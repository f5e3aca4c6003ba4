import type { Approval } from '../../domain/approval.ts'
import type { ServedBrief } from '../../domain/brief.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Home, ListedIncident, Surroundings } from '../../domain/incident-detail.ts'
import type { ChartMark, ChartSeries, Reading } from '../../domain/plot.ts'
import type { Status } from '../../domain/status.ts'

/** The worst content that the schemas allow: long names, empty lists, very many items. */

export const now = Date.parse('2026-11-25T05:48:00Z')
const ago = (minutes: number) => new Date(now - minutes * 60_000).toISOString()

export const longTitle = 'The replica of the orders database is behind its primary and the writes of tenants wait '
  .repeat(4)
  .slice(0, 300)
const longName = `host-${'a'.repeat(43)}`

const plain: ListedIncident = {
  id: 'inc_1',
  type: 'host_down',
  severity: 'critical',
  severitySource: 'alert',
  status: 'awaiting_approval',
  title: 'host-osl-2 is off: both power inputs lost',
  alertName: 'HostDown',
  resource: { kind: 'host', id: 'host-osl-2' },
  assignedTo: null,
  attempt: 1,
  role: 'leader',
  groupId: 'grp_1',
  resolution: null,
  outcome: null,
  category: null,
  closedBy: null,
  alerts: { firing: 1, unknown: 0 },
  reopened: 0,
  watchUntil: null,
  cancelledUntil: null,
  reviewWantedAt: null,
  owner: null,
  keptReason: null,
  previousId: null,
  createdAt: ago(20),
  queuedAt: null,
  closedAt: null,
  updatedAt: ago(1),
  events: 58,
  lastEvent: { seq: 58, kind: 'approval_requested', detail: 'Asked for approval: start 3 VMs', at: ago(15) },
}

/** One incident in each state, then those with the longest words. */
export const incidents: ListedIncident[] = [
  plain,
  {
    ...plain,
    id: 'inc_2',
    status: 'investigating',
    severity: 'warning',
    resource: { kind: 'node', id: 'pg-orders-1' },
  },
  { ...plain, id: 'inc_3', status: 'open', severity: 'info', resource: null, lastEvent: null },
  { ...plain, id: 'inc_4', status: 'escalated', category: 'no_tool', closedAt: ago(3), closedBy: 'agent' },
  {
    ...plain,
    id: 'inc_5',
    status: 'resolved',
    outcome: 'repaired',
    closedAt: ago(2),
    alerts: { firing: 0, unknown: 0 },
    resolution: 'The replica was continued.',
  },
  {
    ...plain,
    id: 'inc_6',
    status: 'resolved',
    outcome: 'unproven',
    closedAt: ago(2),
    alerts: { firing: 0, unknown: 1 },
  },
  { ...plain, id: 'inc_7', status: 'investigating', reopened: 3 },
  { ...plain, id: 'inc_8', status: 'cancelled', closedAt: ago(2), cancelledUntil: ago(-60) },
  {
    ...plain,
    id: 'inc_9',
    title: longTitle,
    resource: { kind: 'host', id: longName },
    owner: { id: 'usr_1', name: 'somebody-with-a-very-long-name-indeed', since: ago(4) },
    createdAt: ago(60 * 24 * 400),
  },
]

export const many: ListedIncident[] = Array.from({ length: 10_000 }, (_, at) => ({
  ...(incidents[at % incidents.length] as ListedIncident),
  id: `inc_many_${at}`,
}))

export const approval: Approval = {
  id: 'apr_1',
  incidentId: 'inc_1',
  attempt: 1,
  callId: 'c1',
  tool: 'execute_migration',
  arguments: {},
  targets: [{ kind: 'vm', id: 'vm-104' }],
  reason: 'the host lost its power',
  risk: 'high',
  reversible: true,
  required: 2,
  approvals: 1,
  dryRun: {
    possible: true,
    summary: `start 3 VMs and migrate 12 VMs, to ${Array.from({ length: 8 }, (_, at) => `host-osl-${at}`).join(', ')}; 2 VMs stay down`,
    details: { standing: { before: { hosts: [], racks: [] }, after: { hosts: ['host-osl-2'], racks: [] } } },
  },
  actionDigest: 'd',
  stateFingerprint: 'f',
  status: 'pending',
  requestedAt: ago(15),
  expiresAt: ago(-41),
  useBy: null,
  askedWith: null,
  edited: null,
  decisions: [],
}

export const brief: ServedBrief = {
  since: { at: ago(20), by: 'alert' },
  alert: { state: 'firing', endedAt: null },
  resource: { text: 'host-osl-2 is down (critical): 0 of 3 VMs run', rows: [14], at: ago(2) },
  page: { text: 'Page released: no run took the incident within 60 s', rows: [2, 6] },
  cause: {
    text: `Both power inputs of ${longName} were lost. ${'The rack has no faults. '.repeat(14)}`,
    rows: [9, 11, 14, 16, 19, 22],
    state: 'survived',
    certainty: null,
  },
  impact: { text: 'down: vm-104, vm-105 and vm-106; 5 alerts depend on the host', rows: [7, 19] },
  done: [
    { text: 'start vm-104 on host-osl-1', rows: [30], outcome: 'verified' },
    { text: 'converge shard web-1', rows: [31], outcome: 'verification_failed' },
    { text: 'run a text on web-7', rows: [32], outcome: 'denied' },
  ],
  looks: 11,
  asked: approval,
  alsoAsked: 9,
  next: { text: 'A person decides.', rows: [58] },
  spent: { turns: 3, tokens: 11_036, dollars: 0.04, modelMs: 19_000 },
  attempts: [],
  similar: [
    {
      id: 'inc_0',
      title: longTitle,
      status: 'resolved',
      outcome: 'repaired',
      resolution: null,
      repairedBy: ['execute_migration'],
      closedAt: ago(60 * 24 * 44),
    },
  ],
}

export const unknownBrief: ServedBrief = {
  ...brief,
  alert: { state: 'unknown', endedAt: null },
  resource: null,
  cause: { text: 'Not known yet.', rows: [], state: 'unknown', certainty: null },
  impact: null,
  done: [],
  looks: 0,
  asked: null,
  alsoAsked: 0,
  next: { text: 'The agent investigates.', rows: [] },
  spent: { turns: 0, tokens: 0, dollars: 0, modelMs: 0 },
  similar: [],
}

const row = (seq: number, kind: string, metadata: object, minutes: number) =>
  ({
    id: String(seq),
    incidentId: 'inc_1',
    attempt: 1,
    seq,
    stepKey: null,
    turn: 1,
    kind,
    metadata,
    actor: 'agent:x',
    detail: '',
    at: ago(minutes),
    prevHash: '',
    hash: '',
  }) as unknown as IncidentEvent

/** A night with ten thousand rows: mostly turns, with a write and its verification. */
export const events: IncidentEvent[] = [
  ...Array.from({ length: 9_996 }, (_, at) =>
    at % 50 === 0
      ? row(at + 1, 'model_answered', { durationMs: 4_000, model: 'qwen3-32b' }, 20 - (4 * at) / 10_000)
      : row(at + 1, 'tool_output', {}, 20 - (4 * at) / 10_000),
  ),
  row(9_997, 'tool_started', { effect: 'write' }, 15.8),
  row(9_998, 'verification', { outcome: 'held' }, 15.5),
  row(
    9_998.5,
    'resolved',
    {
      outcome: 'repaired',
      resolution: 'The replica was continued.',
      claims: [
        {
          text: 'pg-orders-3 lags 0 s.',
          kind: 'is',
          quotes: [{ seq: 14, text: 'lagSeconds: 0' }],
          shown: true,
          grade: 'A',
        },
        {
          text: 'Replay stopped when the disk filled up.',
          kind: 'was',
          quotes: [{ seq: 9, text: 'No space left on device' }],
          shown: true,
          grade: 'B',
          beside: [{ seq: 22, text: 'pg-orders-3: nominal' }],
        },
        {
          text: 'Somebody worked in the rack.',
          kind: 'was',
          quotes: [{ seq: 16, text: 'PS1 Status 0x01' }],
          shown: false,
          grade: 'C',
          why: 'no row shows it',
        },
      ],
    },
    15.2,
  ),
  row(9_999, 'approval_requested', { approvalId: 'apr_1' }, 15),
  {
    ...row(10_000, 'resolved', { outcome: 'repaired', resolution: longTitle, claims: [], [longName]: longName }, 15),
    detail: `${longName.repeat(8)} ${longTitle.repeat(4)}`,
  },
]

/**
 * Half an hour of six series without a sample for six minutes. The first series has another gap
 * while the others continue.
 */
const began = now / 1_000 - 1_800
export const series: ChartSeries[] = Array.from({ length: 6 }, (_, line) => ({
  labels: { __name__: 'pg_stat_activity_count', instance: `${longName}-${line}`, job: longName },
  points: Array.from({ length: 61 }, (_, at): [number, number] => [
    began + at * 30,
    30 + line * 9 + (at > 20 ? 40 : at % 7),
  ])
    .filter(([at]) => at < began + 900 || at > began + 1_260)
    .filter(([at]) => line > 0 || at < began + 300 || at > began + 420),
}))
export const reading: Reading = {
  promql: 'pg_stat_activity_count',
  unit: 'seconds',
  range: [began, now / 1_000],
  stepSeconds: 30,
  figures: [],
}
export const marks: ChartMark[] = [
  { at: began + 600, word: 'change', detail: longTitle },
  { at: began + 640, word: 'alert', detail: 'the alert began', isAlert: true },
  { at: began + 650, word: 'write', detail: longName },
  { at: began + 660, word: 'write', detail: longTitle },
  { at: began + 1_790, word: 'write', detail: 'execute_migration' },
]

export const surroundings: Surroundings = {
  alerts: Array.from({ length: 12 }, (_, at) => ({
    id: `alt_${at}`,
    source: 'prometheus',
    status: at % 3 === 1 ? 'resolved' : 'firing',
    name: at === 0 ? `A${'larm'.repeat(12)}` : `HostDown${at}`,
    title: longTitle,
    count: 3,
    startsAt: ago(20 + at),
    endsAt: null,
    links: { runbook: null, generator: null, dashboard: null, panel: null, silence: null },
    groupKey: null,
    endedBy: null,
    endReason: at === 4 ? 'stale' : null,
    stateWord: null,
  })) as unknown as Surroundings['alerts'],
  group: incidents.slice(0, 8).map(({ id, title, status, role }) => ({ id, title, status, role })),
  workflow: null,
  actions: [],
}

const shown = (at: number) => incidents[at] as ListedIncident
const line = (at: number) => ({
  type: 'host_down',
  severity: shown(at).severity,
  count: at === 8 ? 300 : 1,
  since: shown(at).createdAt,
  incident: shown(at),
})

export const night: Home = {
  since: ago(720),
  isFresh: false,
  tonight: {
    incidents: 300,
    closed: 17,
    resolved: 14,
    resolvedAlone: 14,
    unproven: 1,
    escalated: 3,
    medianSeconds: 372,
    failedRepairs: 0,
    tokens: 110_360,
    dollars: 0.4,
  },
  needsYou: {
    incidents: 12,
    lines: [
      ...Array.from({ length: 10 }, (_, at) => ({
        ...line(0),
        incident: { ...shown(0), id: `inc_q${at}`, title: at === 1 ? longTitle : `${shown(0).title} ${at}` },
        need: 'approval' as const,
        category: null,
        approval: {
          id: `apr_${at}`,
          summary: at === 1 ? approval.dryRun.summary : 'start 3 VMs on other hosts',
          cost: 'If host-osl-1, host-osl-3 or host-osl-4 fails, no room for all its VMs was found. Today one host may fail.',
          risk: 'high' as const,
          expiresAt: ago(-41 - at),
          alsoAsked: at,
        },
      })),
      { ...line(3), need: 'escalated', category: 'no_tool', approval: null },
      { ...line(8), count: 1, need: 'kept', category: null, approval: null },
    ],
  },
  inProgress: {
    incidents: 302,
    lines: [
      { ...line(1), investigating: 1, queued: 0, owned: 0 },
      { ...line(8), investigating: 2, queued: 298, owned: 0 },
    ],
  },
  done: {
    incidents: 2,
    lines: [
      { ...line(4), since: ago(2), outcome: 'repaired', seconds: 420 },
      { ...line(5), since: ago(300), outcome: 'unproven', seconds: 38_000 },
    ],
  },
}

export const emptyNight: Home = {
  since: ago(720),
  isFresh: false,
  tonight: {
    incidents: 0,
    closed: 0,
    resolved: 0,
    resolvedAlone: 0,
    unproven: 0,
    escalated: 0,
    medianSeconds: null,
    failedRepairs: 0,
    tokens: 0,
    dollars: 0,
  },
  needsYou: { incidents: 0, lines: [] },
  inProgress: { incidents: 0, lines: [] },
  done: { incidents: 0, lines: [] },
}

/** A new site that runs, but has no measured model and no sources. */
export const firstSight: Pick<Status, 'parts' | 'sources' | 'model'> = {
  parts: (['database', 'Temporal', 'worker'] as const).map((name) => ({
    name,
    status: 'ok',
    detail: 'The part responds.',
    remedy: null,
  })),
  sources: [],
  model: {
    model: null,
    lastAnswerAt: null,
    lastDurationMs: null,
    answersLastHour: 0,
    failuresLastHour: 0,
    asking: 0,
    waiting: 0,
    windowTokens: null,
    statedWindow: null,
    windowSource: null,
    learned: [],
    abilities: null,
    grade: null,
  },
}
