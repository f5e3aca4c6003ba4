import { createHash } from 'node:crypto'
import { afterAll, describe, expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { contextActivities } from '../../../activities/context.ts'
import { bodyText } from '../../../db/log/bodies.ts'
import { eventsOf } from '../../../db/log/events.ts'
import type { EventMetadata } from '../../../domain/event.ts'
import { readPrompts } from '../../../prompts/render.ts'
import { corePort, useApi } from '../../support/api.ts'
import { openedIncident } from '../../support/database.ts'
import { type Answer, json, useSourceServer } from '../../support/source-server.ts'

const api = useApi()

const { stage, add } = useSourceServer(api)

describe('the last log lines of an incident', () => {
  const beganMs = Date.now()
  const streams = (lines: [number, string][]): Answer =>
    json({
      data: {
        resultType: 'streams',
        result: [{ stream: {}, values: lines.map(([atMs, text]) => [`${atMs}000000`, text]) }],
      },
    })
  const noisy: [number, string][] = Array.from({ length: 900 }, (_, at) => [
    beganMs - at * 1_000,
    at === 700 ? 'ERROR pool exhausted, password=hunter2secret' : `INFO served request ${at} in ${at % 30}ms`,
  ])
  /** Holds lines of the machine as its shipper writes it, and of nothing else. */
  const loki: Answer = (request, response, body) => {
    const url = new URL(request.url ?? '', 'http://x')
    if (url.pathname.endsWith('/labels')) return json({ data: ['hostname', 'unit'] })(request, response, body)
    const isOurs = url.searchParams.get('query') === '{hostname="web-1"}'
    return streams(isOurs ? noisy : [])(request, response, body)
  }
  const incidentAbout = async (instance: string) => {
    await api.put('/inventory', { body: { nodes: [{ id: 'web-1', ip: '10.0.0.1' }] } })
    const labels = { incident_type: 'disk_full', instance }
    return await openedIncident(api.db, { labels, fingerprint: createHash('sha256').update(instance).digest('hex') })
  }
  const contextOf = async (incidentId: string) => {
    const core = corePort(api)
    const prompts = readPrompts()
    const deps = {
      db: api.db,
      prompts,
      protocol: 'native' as const,
      model: 'm',
      environment: {},
      core,
    }
    const { claim, assembleContext } = contextActivities(deps)
    const workflowExecution = { workflowId: `investigate:${incidentId}:1`, runId: 'r' }
    await new MockActivityEnvironment({ workflowExecution }).run(async () => {
      await claim({ incidentId, attempt: 1, role: 'leader', groupId: 'grp_test' })
      await assembleContext(incidentId, 1)
    })
    const row = (await eventsOf(api.db, incidentId)).find((event) => event.kind === 'context_assembled')
    const metadata = row?.metadata as EventMetadata['context_assembled']
    return { parts: metadata.parts, context: JSON.parse(await bodyText(api.db, metadata.context.digest)) }
  }
  afterAll(async () => {
    for (const name of ['logs', 'logs-away']) await api.post(`/sources/${name}/remove`, {})
  })

  test('are the beginning of its context: the newest of each kind of line, without a secret, in 1 kB', async () => {
    await add('logs', { kind: 'loki' })
    stage.answer = loki
    const { parts, context } = await contextOf(await incidentAbout('web-1:9100'))
    expect([parts.logs, context.logs]).toEqual([
      'ok',
      [
        {
          source: 'logs',
          labels: { hostname: 'web-1' },
          lines: [
            expect.stringMatching(/^\d\d:\d\d:\d\d ERROR pool exhausted, password=/),
            expect.stringMatching(/^\d\d:\d\d:\d\d INFO served request 0 in 0ms \(899 such lines\)$/),
          ],
        },
      ],
    ])
    expect(JSON.stringify(context)).not.toContain('hunter2secret')
    expect(Buffer.byteLength(JSON.stringify(context.logs))).toBeLessThan(1_000)
  })

  test('are left out if a source has none, or the incident has no known resource', async () => {
    stage.answer = (request, response, body) =>
      json(request.url?.includes('/labels') ? { data: ['job'] } : { data: { resultType: 'streams', result: [] } })(
        request,
        response,
        body,
      )
    const { parts, context } = await contextOf(await incidentAbout('10.0.0.1:9100'))
    expect([parts.logs, 'logs' in context]).toEqual(['empty', false])
    const nowhere = await contextOf(await incidentAbout('elsewhere:9100'))
    expect('logs' in nowhere.context).toBe(false)
  })

  test('cost at most four seconds and report in one line that their source gave no answer', async () => {
    stage.answer = () => {}
    await add('logs-away', { kind: 'victorialogs', url: 'http://127.0.0.1:1' })
    const { context } = await contextOf(await incidentAbout('web-1.example.com:9100'))
    expect(context.logs).toEqual([
      { source: 'logs', notRead: expect.stringContaining('within 4 s') },
      { source: 'logs-away', notRead: expect.stringContaining('cannot be reached') },
    ])
  })
})
