import type { Approval } from '../../domain/approval.ts'
import type { ServedBrief } from '../../domain/brief.ts'
import type { Incident } from '../../domain/incident.ts'
import type { Proposal } from '../../domain/placement.ts'
import type { NodeState } from '../../domain/platform.ts'

/** Examples for the OpenAPI document: one night at one shard. */

export const incidentId = 'inc_01kam3x0q2v8d5t7w9y1b3c5e7'
export const approvalId = 'apr_01kam3z4h6j8k0m2n4p6q8r0s2'
export const proposalId = 'prp_01kam3y7c9d1e3f5g7h9j1k3m5'

export const incidentExample: Incident = {
  id: incidentId,
  type: 'replication_lag',
  severity: 'critical',
  severitySource: 'alert',
  status: 'investigating',
  alertName: 'ReplicationLag',
  title: 'Replica is 214 s behind its primary',
  resource: { kind: 'shard', id: 'db-osl-1' },
  assignedTo: `investigate:${incidentId}:1`,
  attempt: 1,
  role: 'leader',
  groupId: 'grp_01kam3x1v3w5x7y9z1a3b5c7d9',
  resolution: null,
  outcome: null,
  category: null,
  closedBy: null,
  alerts: { firing: 1, unknown: 0 },
  reopened: 0,
  watchUntil: null,
  reviewWantedAt: null,
  cancelledUntil: null,
  owner: null,
  keptReason: null,
  previousId: null,
  createdAt: '2026-11-21T01:45:40.120000Z',
  queuedAt: '2026-11-21T01:45:41.001000Z',
  closedAt: null,
  updatedAt: '2026-11-21T01:45:44.530000Z',
  events: 7,
}

export const eventExample = {
  id: '4711',
  incidentId,
  attempt: 1,
  seq: 7,
  stepKey: `${incidentId}.1:2:tool_finished:0`,
  turn: 2,
  kind: 'tool_finished',
  action: 'investigated',
  actor: 'agent:incident-investigator',
  detail: 'Called tool: get_shard',
  metadata: { tool: 'get_shard', outcome: 'done' },
  at: '2026-11-21T01:45:44.530000Z',
  prevHash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  hash: '60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752',
}

export const briefExample: ServedBrief = {
  since: { at: '2026-11-21T01:45:38.000000Z', by: 'alert' },
  alert: { state: 'firing', endedAt: null },
  resource: { text: 'db-osl-1 is critical: 214 s behind its primary', rows: [7], at: '2026-11-21T01:45:44.530000Z' },
  cause: { text: 'The replica has stopped', state: 'supported', certainty: null, rows: [7, 9] },
  impact: { text: 'critical: node db-osl-1-2', rows: [7] },
  done: [],
  page: { text: 'Page held until 03:12:40 UTC', rows: [2] },
  looks: 2,
  asked: null,
  alsoAsked: 0,
  next: { text: 'The agent investigates.', rows: [] },
  spent: { turns: 2, tokens: 4200, dollars: 0.01, modelMs: 3100 },
  attempts: [
    {
      attempt: 1,
      outcome: 'not over',
      cause: 'The replica has stopped',
      turns: 2,
      tokens: 4200,
      dollars: 0.01,
      startedAt: '2026-11-21T01:45:41.001000Z',
      endedAt: null,
      rows: [2],
    },
  ],
  similar: [],
}

export const approvalExample: Approval = {
  id: approvalId,
  incidentId,
  attempt: 1,
  callId: 'c3_0',
  tool: 'execute_migration',
  arguments: { proposal_id: proposalId, reason: 'host-osl-2 is down' },
  targets: [{ kind: 'proposal', id: proposalId }],
  reason: 'host-osl-2 is down',
  risk: 'high',
  reversible: true,
  required: 1,
  approvals: 0,
  dryRun: {
    possible: true,
    summary: 'Start 2 and migrate 0 VMs to host-osl-3',
    details: {},
    proof: { by: 'state', text: 'every VM of the plan runs on the host the plan gave it' },
  },
  actionDigest: '60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752',
  stateFingerprint: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  status: 'pending',
  requestedAt: '2026-11-21T01:46:02.000000Z',
  expiresAt: '2026-11-21T01:56:02.000000Z',
  useBy: null,
  askedWith: null,
  edited: null,
  decisions: [],
}

export const nodeExample: NodeState = {
  id: 'node-osl-2',
  shard: 'db-osl-1',
  region: 'osl',
  role: 'replica',
  hostname: 'node-osl-2',
  ip: '127.0.0.1',
  status: 'degraded',
  reason: 'replica is 214 s behind',
  replicationLagSeconds: 214,
  diskUsedBytes: 1_048_576,
  diskQuotaBytes: 8_388_608,
  diskByDirectory: { data: 1_000_000, logs: 48_576 },
}

export const proposalExample: Proposal = {
  id: proposalId,
  incidentId,
  intent: 'recover',
  hostIds: ['host-osl-2'],
  state: 'planned',
  migrations: 0,
  steps: [
    {
      step: 1,
      action: 'start',
      vm: 'vm-osl-3',
      from: 'host-osl-2',
      to: 'host-osl-3',
      needs: [],
      wave: 1,
      priority: 0,
      haGroup: null,
    },
  ],
  lowerBound: 0,
  proof: { kind: 'trivial' },
  unplaced: [],
  obstacle: null,
  standing: {
    domain: 'rack',
    before: [{ name: 'rack-2', outcome: 'restarted' }],
    after: [{ name: 'rack-2', outcome: 'restarted' }],
  },
  reason: null,
  planDigest: '60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752',
  stateFingerprint: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  fromInventory: true,
  createdAt: '2026-11-21T01:45:50.000000Z',
}
