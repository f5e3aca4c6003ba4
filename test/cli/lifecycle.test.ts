import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Client, Connection } from '@temporalio/client'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { agentActor } from '../../domain/event.ts'
import { queueScheduleId } from '../../domain/step-key.ts'
import { searchAttributeFaults } from '../../worker/schedule.ts'
import { temporalAddress } from '../support/broker.ts'
import { claimedIncident, openedIncident } from '../support/database.ts'
import { hostile, runAtTerminal, runCli, useServedApi } from '../support/run-cli.ts'
import { newAuthority, startTemporalProxy, type TemporalProxy } from '../support/temporal-proxy.ts'

describe('lifecycle', () => {
  const api = useServedApi()
  const run = (args: string[], role: 'operator' | 'viewer' | 'admin' = 'operator') => runCli(args, api.as(role))
  const incidents = (...args: string[]) => run(['incidents', ...args])
  const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length))

  test('who resolves says what it was, and hears that its alert still fires', async () => {
    const id = await openedIncident(api.db)
    const unsaid = await incidents('resolve', id, '--resolution', 'restarted it')
    expect([unsaid.code, unsaid.stderr]).toEqual([2, expect.stringContaining('--outcome')])
    const wrong = await incidents('resolve', id, '--resolution', 'restarted it', '--outcome', 'expected')
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining('repaired, self_resolved, no_fault, answered'),
    ])
    const { code, stderr } = await incidents('resolve', id, '--outcome', 'repaired', '--resolution', 'restarted it')
    expect([code, stderr.trim()]).toEqual([0, `${id} is resolved, its alert still fires.`])
    expect((await incidents('show', id)).stdout).toMatch(/outcome +repaired, by a person/)
  })

  test('an incident is taken and given back, and what nobody has cannot be given back', async () => {
    const [open, running] = [await openedIncident(api.db), await claimedIncident(api.db)]
    const taken = await incidents('take', open)
    expect([taken.code, taken.stderr]).toEqual([0, expect.stringContaining('operator has it')])
    expect((await incidents('show', open)).stdout).toMatch(/owner +operator, since/)
    expect((await incidents('take', running)).stderr).toContain('it is yours when its run has ended')
    const given = await incidents('give-back', open, '--json')
    expect(JSON.parse(given.stdout)).toMatchObject({ id: open, status: 'escalated', owner: null })
    const again = await incidents('give-back', open)
    expect([again.code, again.stderr]).toEqual([5, expect.stringContaining('Nobody has')])
    expect((await run(['incidents', 'take', open], 'viewer')).code).toBe(4)
  })

  test('a cancellation counts until a time, which may be a span', async () => {
    const id = await openedIncident(api.db)
    for (const until of ['yesterday', '2020-01-01', '8', '12/24/2026', '2031-02-30', '2031-02-29T06:00Z']) {
      expect((await incidents('cancel', id, '--reason', 'a drill', '--until', until)).code).toBe(2)
    }
    const { stdout } = await incidents('cancel', id, '--reason', 'a drill', '--until', '4h', '--json')
    const { status, cancelledUntil } = JSON.parse(stdout)
    expect(status).toBe('cancelled')
    expect(Math.abs(Date.parse(cancelledUntil) - Date.now() - 4 * 3_600_000)).toBeLessThan(300_000)
    expect((await incidents('show', id)).stdout).toMatch(/status +cancelled, until \d{4}-\d\d-\d\d \d\d:\d\d UTC/)
  })

  test('what is expected is marked, listed and taken back', async () => {
    const id = await openedIncident(api.db, { name: 'nightly_backup', labels: { alertname: 'nightly_backup' } })
    const marked = await incidents('expect', id, '--until', '3d', '--reason', 'the backup window', '--subject', 'type')
    const mark = /exp_\w+/.exec(marked.stderr)?.[0] ?? ''
    expect(marked.stderr).toContain('nightly_backup is expected until')
    expect((await incidents('show', id)).stdout).toMatch(/status +resolved, expected/)
    const list = await run(['expectations', 'list'], 'viewer')
    expect(list.stdout).toContain('nightly_backup, by operator: the backup window')
    expect((await run(['expectations', 'end', mark], 'viewer')).code).toBe(4)
    expect((await run(['expectations', 'end', mark])).stderr).toContain(`${mark} has ended`)
    expect((await run(['expectations', 'end', mark])).code).toBe(3)
    expect(JSON.parse((await run(['expectations', 'list', '--json'])).stdout)).toEqual([])
    const all = JSON.parse((await run(['expectations', 'list', '--all', '--json'])).stdout)
    expect(all).toMatchObject([{ id: mark, inForce: false }])
  })

  test('what is escalated is shown as sentences in eighty columns', async () => {
    const id = await openedIncident(api.db, { title: `Disk full ${hostile}` })
    const escalating = ['--reason', `The snapshots ${'grow and '.repeat(30)}grow`, '--category', 'no_tool']
    await incidents('escalate', id, ...escalating, '--next-step', 'Delete the old snapshots')
    const { stdout } = await incidents('show', id)
    expect(stdout).toContain('Escalation report')
    expect(stdout).toContain('  Next step: Delete the old snapshots')
    expect(stdout).toMatch(/outcome +no tool for it, by a person/)
    expect(stdout.replace(/\s+/g, ' ')).toContain('Found: The snapshots grow and grow')
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    const { incident, events } = JSON.parse((await incidents('show', id, '--json')).stdout)
    expect(incident.category).toBe('no_tool')
    expect(events.at(-1).metadata.report).toMatchObject({ nextStep: 'Delete the old snapshots' })
  })

  test('a list says what is to be known besides the status, however long the title is', async () => {
    const title = `Replica lags ${'x'.repeat(250)}`
    const id = await claimedIncident(api.db, { name: 'listed', labels: { alertname: 'listed' }, title })
    const mitigated = {
      status: 'escalated',
      code: 'AGENT',
      category: 'mitigated',
      reason: 'it runs elsewhere',
    } as const
    await api.db
      .transaction()
      .execute((trx) => closeIncident(trx, id, null, mitigated, { actor: agentActor, stepKey: null }))
    const { shown } = await runAtTerminal(['incidents', 'list', '--type', 'listed'], api.as('operator'))
    expect(shown).toContain('(mitigated: the impact is gone, the cause is left')
    expect(shown).toContain('Replica lags')
    expect(widest(shown)).toBeLessThanOrEqual(80)
  })

  test('an incident that is not investigated unasked says why, and is when a person asks', async () => {
    await api.put('/config/agent.investigate', { body: { value: 'severity>=critical' } })
    const id = await openedIncident(api.db)
    const { stdout } = await incidents('show', id)
    expect(stdout).toMatch(/status +open, not investigated/)
    expect(stdout.replace(/\s+/g, ' ')).toContain('not investigated: agent.investigate asks for severity critical')
    expect((await incidents('investigate', id)).code).toBe(0)
    expect((await incidents('investigate', id)).code).toBe(5)
  })
})

describe('setup', () => {
  // A namespace that somebody else made and nobody has used, behind TLS and a key.
  const namespace = `setup-${randomBytes(4).toString('hex')}`
  let connection: Connection
  let proxies: TemporalProxy[]
  let behindTls: Record<string, string>
  let inCloud: Record<string, string>

  beforeAll(async () => {
    const address = await temporalAddress()
    connection = await Connection.connect({ address })
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
    })
    const authority = await newAuthority('Site')
    const pair = await authority.issue({ dns: ['localhost'] })
    const apiKey = 'key-of-the-site'
    proxies = [
      await startTemporalProxy(address, { pair, apiKey }),
      await startTemporalProxy(address, { pair, apiKey, closedService: 'OperatorService' }),
    ]
    const [first, second] = proxies.map(({ port }) => ({
      TEMPORAL_ADDRESS: `localhost:${port}`,
      TEMPORAL_NAMESPACE: namespace,
      TEMPORAL_API_KEY: apiKey,
      TEMPORAL_TLS_SERVER_CA_CERT_DATA: authority.certificate,
    }))
    behindTls = first as Record<string, string>
    inCloud = second as Record<string, string>
  })
  afterAll(async () => {
    await new Client({ connection, namespace }).schedule.getHandle(queueScheduleId).delete()
    await Promise.all(proxies.map((proxy) => proxy.stop()))
    await connection.close()
  })

  const states = (stdout: string) =>
    (JSON.parse(stdout) as { rows: { state: string }[] }).rows.map(({ state }) => state)

  test('a namespace is set up once, a dry run changes nothing, and a second time there is nothing to do', async () => {
    const before = await runCli(['setup', '--dry-run', '--json'], behindTls)
    expect([before.code, states(before.stdout)]).toEqual([0, ['there', 'would be made', 'would be made']])
    expect((await searchAttributeFaults(connection, namespace)).missing).toHaveLength(5)

    // Nobody may make them there, and the command says who can and how.
    const refused = await runCli(['setup', '--json'], inCloud)
    expect([refused.code, states(refused.stdout)]).toEqual([1, ['there', 'failed', 'made']])
    expect(refused.stdout).toContain('tcld namespace search-attributes add')

    const made = await runCli(['setup', '--json'], behindTls)
    expect([made.code, states(made.stdout)]).toEqual([0, ['there', 'made', 'there']])
    const again = await runCli(['setup'], behindTls)
    expect([again.code, again.stderr.trim()]).toEqual([0, 'Nothing to do.'])
    expect(again.stdout).toContain(`${namespace} at localhost:`)
    // What was made is seen there too, although nobody lets us ask.
    const seen = await runCli(['setup', '--json'], inCloud)
    expect([seen.code, states(seen.stdout)]).toEqual([0, ['there', 'there', 'there']])
  })

  test('a namespace that is not there is not made, and the command says how', async () => {
    const { code, stderr } = await runCli(['setup'], { ...behindTls, TEMPORAL_NAMESPACE: 'nobody-made' })
    expect(code).toBe(1)
    expect(stderr).toContain('temporal operator namespace create --namespace nobody-made')
  })

  test('a doctor says of a Temporal behind TLS whether it answers, and what is wrong where it does not', async () => {
    const temporalOf = async (env: Record<string, string>) => {
      const { stdout } = await runCli(['doctor', '--json'], env)
      return JSON.parse(stdout).find((each: { name: string }) => each.name === 'Temporal')
    }
    expect(await temporalOf(behindTls)).toMatchObject({ ok: true, detail: expect.stringContaining(namespace) })
    const other = (await newAuthority('Other')).certificate
    expect(await temporalOf({ ...behindTls, TEMPORAL_TLS_SERVER_CA_CERT_DATA: other })).toMatchObject({
      ...{ ok: false, remedy: expect.stringContaining('TEMPORAL_TLS_SERVER_CA_CERT_PATH') },
    })
  })
})
