import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { putSource } from '../../db/inventory/sources.ts'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { writeJobs } from '../../lab/jobs.ts'
import { findVictoriaLogs, missingServers } from '../../lab/monitoring.ts'
import type { MetricFault } from '../../lab/monitoring-rules.ts'
import { enrolLab } from '../../start/lab-devices.ts'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'

// Each on a node of its shard, all at once, so that the waits pass side by side: what alerts is
// what real rules of a real Prometheus say. A converge repairs all nodes of a shard, so of two
// faults in a shard it repairs one at most.
const faults = {
  slow_leak: { on: 'node-web-osl-1a', type: 'service_memory_high', ends: 'repaired' },
  error_rate: { on: 'node-web-osl-2a', type: 'high_error_rate', ends: 'repaired' },
  noisy_neighbour: { on: 'node-web-osl-1b', type: 'high_request_rate', ends: 'no_tool' },
  connection_pool: { on: 'node-web-ams-1a', type: 'too_many_connections', ends: 'repaired' },
  clock_skew: { on: 'node-web-osl-2b', type: 'node_clock_skew_detected', ends: 'repaired' },
  certificate_ending: { on: 'node-web-ams-2a', type: 'ssl_certificate_will_expire_soon', ends: 'repaired' },
  red_herring: { on: 'node-web-ams-2b', type: 'high_error_rate', ends: 'repaired' },
  missing_data: { on: 'node-web-ams-1b', type: 'target_down', ends: 'no_tool' },
  stale_lock: { on: 'node-web-osl-3a', type: 'high_error_rate', ends: 'repaired' },
} as const satisfies Record<MetricFault, { on: string; type: string; ends: string }>
const names = Object.keys(faults) as MetricFault[]

const missing = missingServers()
const suite = missing.length > 0 ? describe.skip : describe

suite(`faults that only metrics tell${missing.length > 0 ? ` (needs ${missing.join(', ')})` : ''}`, () => {
  const keys = temporaryDirectory()
  const place = temporaryDirectory()
  let spine: Spine
  let isOver = false
  let approving: Promise<void>

  beforeAll(async () => {
    spine = await startSpine({
      parts: ['lab', 'runbook', 'api', 'worker'],
      environment: {
        LAB_WEB_SHARDS: '5',
        WATCHDOG_INTERVAL_SECONDS: '0.5',
        LAB_DIR: place.path,
        JOBS_FILE: writeJobs(place.path),
        VICTORIA_LOGS: process.env.VICTORIA_LOGS ?? '',
        ...ensureMeshKeys(keys.path),
      },
    })
    await enrolLab(spine.url, spine.tokens.admin, spine.lab)
    const { prometheusUrl, logsUrl } = await spine.lab.monitor()
    const source = {
      kind: 'prometheus',
      url: prometheusUrl,
      credential: null,
      writeCredential: null,
      caFile: null,
      scheme: null,
      headers: {},
      certFile: null,
      keyFile: null,
      options: {},
      timeoutSeconds: 10,
    }
    await putSource(spine.db, 'lab', source, 'anna')
    if (logsUrl) await putSource(spine.db, 'logs', { ...source, kind: 'victorialogs', url: logsUrl }, 'anna')
    for (const name of names) await spine.lab.break(name, faults[name].on)
    approving = approveAll()
  })
  afterAll(async () => {
    isOver = true
    await approving
    await spine?.stop()
    keys.remove()
    place.remove()
  })

  /** A person who says yes to everything: what is asked here is what the runbooks propose. */
  async function approveAll(): Promise<void> {
    const as = { token: spine.tokens.approver }
    const approvePending = async () => {
      const { items } = await spine.get<{ items: Approval[] }>('/approvals?status=pending')
      for (const { id } of items) {
        const { body } = await spine.post(`/approvals/${id}/token`, { decision: 'approve' }, as)
        await spine.post(`/approvals/${id}/decision`, { decision: 'approve', token: body.token }, as)
      }
    }
    while (!isOver) {
      // A request that a busy machine drops is made in the next round: what is still asked is still
      // pending.
      await approvePending().catch((error) => console.warn(`approving: ${error}`))
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
  }

  const nodeOf = (name: MetricFault): string => (name === 'connection_pool' ? 'node-db-osl-1a' : faults[name].on)
  const ended = (name: MetricFault): Promise<Incident> =>
    spine.until(`the incident of ${name}`, async () =>
      (await spine.incidents(`?type=${faults[name].type}`)).find(
        ({ resource, status }) => resource?.id === nodeOf(name) && ['resolved', 'escalated'].includes(status),
      ),
    )
  const reads = (events: IncidentEvent[]) =>
    events.flatMap((event) =>
      event.kind === 'tool_finished' && event.metadata.tool === 'query_metrics' ? [event.metadata] : [],
    )

  test.each(names)('%s: its alert names the node, a metric shows the cause, and it ends as expected', async (name) => {
    const incident = await ended(name)
    const { category, outcome, attempt, resolution } = incident
    expect({ ends: category ?? outcome, attempt, resolution }).toEqual({
      ends: faults[name].ends,
      attempt: 1,
      resolution,
    })
    const answers = reads(await spine.events(incident.id))
    // Two questions at most before the cause is known, and one after a repair.
    expect(answers.length).toBeLessThanOrEqual(faults[name].ends === 'repaired' ? 3 : 2)
    for (const { result } of answers)
      expect(
        Buffer.byteLength(JSON.stringify((result as { data: { summary: unknown } }).data.summary)),
      ).toBeLessThanOrEqual(2_000)
    const { checks } = await spine.lab.oracle(name, faults[name].on)
    expect(checks.filter(({ ok }) => !ok)).toEqual([])
  })

  test('a lock that only a log shows is removed by the declared job, with its check mode as card and proof', async () => {
    const events = await spine.events((await ended('stale_lock')).id)
    const finished = events.flatMap((event) => (event.kind === 'tool_finished' ? [event.metadata] : []))
    const log = finished.find(({ tool }) => tool === 'search_logs')
    expect(JSON.stringify(log?.result)).toContain('the index is locked: var/search.lock was left by reindex 4711')
    // Where logs are collected they are read there; else on the node that writes them.
    const source = findVictoriaLogs() ? 'logs' : faults.stale_lock.on
    expect(log?.result).toMatchObject({ data: { source } })
    const asked = events.find((event) => event.kind === 'approval_requested')
    expect(asked?.metadata).toMatchObject({ tool: 'run_job', risk: 'medium' })
    const { dryRun } = await spine.get<Approval>(`/approvals/${asked?.metadata.approvalId}`)
    expect(JSON.stringify(dryRun.details)).toMatch(/would-remove:.*search\.lock/)
    expect(events.find((event) => event.kind === 'verification')?.metadata).toMatchObject({ outcome: 'held' })
  })

  test('a loud symptom beside the cause is another incident, and is left alone', async () => {
    // On a busy machine the report gets its share of a core late.
    const loud = await spine.until('the incident about the CPU', async () =>
      (await spine.incidents('?type=process_cpu_high')).find(({ resource }) => resource?.id === faults.red_herring.on),
    )
    const cause = await ended('red_herring')
    expect([loud.severity, loud.id === cause.id]).toEqual(['critical', false])
  })
})
