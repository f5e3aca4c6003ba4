import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { activeAlerts } from '../../db/alerts/active-alerts.ts'
import { declareResources } from '../../db/inventory/registry.ts'
import { systemScope } from '../../db/scope.ts'
import { acceptEffect, finishEffect, noteJobOfEffect } from '../../db/writes/effects.ts'
import { importSource } from '../../domain/registry.ts'
import { parseJobs } from '../../effects/jobs/jobs.ts'
import { openedIncident } from '../support/database.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { startLocalServer } from '../support/local-server.ts'
import { harmfulIn, runCli, useServedApi } from '../support/run-cli.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

describe('config', () => {
  describe('alerts', () => {
    const api = useServedApi()
    const run = (...args: string[]) => runCli(args, api.as('viewer'))

    const vm = { kind: 'vm' as const, id: 'vm-31' }
    const node = { kind: 'node' as const, id: 'app-31', aliases: ['10.9.0.31'] }
    const targets = { name: 'prometheus:main', hasAuthority: false }

    test('alerts are listed by what they are about, under any name that a source with authority gives it', async () => {
      await api.db.transaction().execute(async (trx) => {
        await declareResources(trx, importSource, {
          resources: [vm, node, { kind: 'node', id: 'app-32' }],
          relations: [{ from: node, kind: 'same_as', to: vm }],
        })
        const target = { kind: 'target' as const, id: 'app-32:9100' }
        const relations = [{ from: target, kind: 'same_as' as const, to: vm }]
        await declareResources(trx, targets, { resources: [target], relations })
      })
      await openedIncident(api.db, { name: 'ByVm', labels: { vm: 'vm-31' } })
      await openedIncident(api.db, { name: 'ByAddress', labels: { instance: '10.9.0.31:9100' } })
      await openedIncident(api.db, { name: 'Other', labels: { instance: 'app-32:9100' } })
      const named = async (resource: string) =>
        (await activeAlerts(systemScope(api.db), resource)).map(({ name }) => name).sort()
      for (const resource of ['vm:vm-31', 'node:app-31', 'vm-31', 'app-31'])
        expect([resource, await named(resource)]).toEqual([resource, ['ByAddress', 'ByVm']])
      expect(await named('node:app-32')).toEqual(['Other'])
      expect(await named('nobody-knows-it')).toEqual([])

      const listed = await run('alerts', 'list', '--resource', 'node:app-31', '--status', 'firing')
      expect([listed.code, listed.stdout]).toEqual([0, expect.stringMatching(/firing .*alertmanager +inc_\w+ +By/)])
      expect(listed.stdout).not.toContain('Other')
      expect((await run('alerts', 'list', '--resource', 'app-31')).code).toBe(2)
    })

    test('an incident shows the group of its alert and its http links, and no other link', async () => {
      const id = await openedIncident(api.db, {
        groupKey: '{}:{alertname="\u001b[31mDisk"}',
        links: {
          ...{ generator: 'https://prometheus.example.com/graph', external: 'javascript:alert(1)', runbook: null },
          panel: 'https://grafana.example.com/d/abc?viewPanel=2',
        },
      })
      const { stdout } = await run('incidents', 'show', id)
      expect(stdout).toMatch(/group \{\}:\{alertname="/)
      expect(stdout).toContain('rule https://prometheus.example.com/graph')
      expect(stdout).toContain('panel https://grafana.example.com/d/abc?viewPanel=2')
      expect(stdout).not.toContain('javascript:')
      expect(stdout).not.toContain('\u001b[31m')
    })
  })

  describe('changes', () => {
    const api = useServedApi()
    const run = (args: string[], role: 'ingest' | 'viewer' = 'viewer') => runCli(args, api.as(role))

    test('a change is reported from a file and listed, also from what runs on the changed thing', async () => {
      const resources = [
        { kind: 'node' as const, id: 'web-1' },
        { kind: 'service_unit' as const, id: 'nginx:web-1' },
      ]
      const relations = [
        {
          from: { kind: 'service_unit' as const, id: 'nginx:web-1' },
          kind: 'runs_on' as const,
          to: { kind: 'node' as const, id: 'web-1' },
        },
      ]
      await api.db.transaction().execute((trx) => declareResources(trx, importSource, { resources, relations }))
      const file = join(mkdtempSync(join(tmpdir(), 'nightshift-')), 'change.json')
      const at = new Date(Date.now() - 60_000).toISOString()
      const body = [
        { title: 'kernel \u001b[31m6.12', at, resources: 'node:web-1', author: 'anna' },
        { title: 'who knows', at, resources: ['web-9'] },
      ]
      writeFileSync(file, JSON.stringify(body))
      const reported = await run(['ingest', 'change', file], 'ingest')
      expect(reported.code).toBe(0)
      expect(reported.stdout).toMatch(/chg_\w+ +stored +node:web-1\n.*stored +\(none: web-9 is not known\)/)
      expect((await run(['ingest', 'change', file], 'ingest')).stdout).toContain('repeated')

      const near = await run(['changes', 'list', '--resource', 'service_unit:nginx:web-1'])
      expect([near.code, near.stdout]).toEqual([0, expect.stringMatching(/node:web-1 +kernel .*by anna/)])
      expect(near.stdout).not.toContain('\u001b[31m')
      expect(near.stdout).not.toContain('who knows')
      const unmatched = JSON.parse((await run(['changes', 'list', '--unmatched', '--json'])).stdout)
      expect(unmatched).toMatchObject([{ title: 'who knows', resource: null }])
      expect((await run(['changes', 'list', '--resource', 'web-1'])).code).toBe(2)
      expect((await run(['changes', 'list', '--window', '1h'])).code).toBe(2)
    })
  })

  describe('config', () => {
    const api = useServedApi()
    const run = (args: string[], input?: string) => runCli(['config', ...args], api.as('admin'), input)

    test('what was set is in force, for all types or for one, and the list says so', async () => {
      expect((await run(['get', 'agent.max_turns'])).stdout).toBe('10\n')
      expect((await run(['set', 'agent.max_turns', '12', '--reason', 'disks need more'])).code).toBe(0)
      await Promise.all([
        run(['set', 'agent.max_turns.disk_pressure', '15']),
        run(['set', 'approval.expiry.execute_migration', '900']),
      ])
      const [all, disks, other, list] = await Promise.all([
        run(['get', 'agent.max_turns']),
        run(['get', 'agent.max_turns.disk_pressure']),
        run(['get', 'agent.max_turns.replication_lag']),
        run(['list']),
      ])
      expect([all.stdout, disks.stdout, other.stdout]).toEqual(['12\n', '15\n', '12\n'])
      expect(list.stdout).toMatch(/^agent\.max_turns +global +12 turns$/m)
      expect(list.stdout).toMatch(/^agent\.max_turns\.disk_pressure +set +15 turns$/m)
      expect(list.stdout).toMatch(/^approval\.expiry\.execute_migration +set +900 s \(15 min\)$/m)
      expect((await run(['list', '--type', 'disk_pressure'])).stdout).toMatch(/^agent\.max_turns +type +15 turns$/m)
      const { body } = await api.get('/config/agent.max_turns/revisions')
      expect(body.items).toMatchObject([{ newValue: '12', actor: 'user:admin', reason: 'disks need more' }])
    })

    test('a value that others changed in between is not overwritten unseen', async () => {
      await run(['set', 'agent.paused', 'true'])
      const puts = await Promise.all([1, 2, 3, 4].map((n) => run(['set', 'agent.leader_wait', String(n)])))
      const codes = puts.map(({ code }) => code)
      expect(codes).toContain(0)
      expect(codes.every((code) => code === 0 || code === 5)).toBe(true)
      const { body } = await api.get('/config/agent.leader_wait')
      expect(body.version).toBe(codes.filter((code) => code === 0).length)
    })

    test('a secret is read from stdin and never shown again', async () => {
      const secret = `whsec_${'A'.repeat(32)}`
      expect((await run(['set', 'webhook.critical.secret', '-'], `${secret}\n`)).code).toBe(0)
      const shown = await Promise.all([run(['get', 'webhook.critical.secret']), run(['list']), run(['list', '--json'])])
      for (const { stdout, stderr } of shown) expect(stdout + stderr).not.toContain(secret)
      expect(
        await api.db
          .selectFrom('platformConfig')
          .select('value')
          .where('key', '=', 'webhook.critical.secret')
          .execute(),
      ).toEqual([{ value: secret }])
    })

    test('a test message is sent to a webhook that has an address, and the exit says whether it arrived', async () => {
      const unknown = await run(['test', 'webhook.other'])
      expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('webhook.critical, webhook.approval')])
      expect((await run(['test', 'webhook.resolved'])).stderr).toContain('webhook.resolved.url is not set')
      const receiver = await startLocalServer()
      try {
        await run(['set', 'webhook.resolved.url', `${receiver.url}/hook`])
        receiver.play((response) => response.writeHead(200).end('\u001b[31mthanks'))
        const sent = await run(['test', 'webhook.resolved'])
        expect([sent.code, sent.stdout]).toEqual([0, expect.stringContaining('the receiver answered 200')])
        expect(harmfulIn(sent.stdout + sent.stderr)).toBeNull()
        receiver.play((response) => response.writeHead(404).end())
        const refused = await run(['test', 'webhook.resolved'])
        expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining('the receiver answered 404')])
      } finally {
        await receiver.close()
      }
    })

    test('a change can be looked up and taken back, which is a change of its own', async () => {
      await run(['set', 'agent.token_budget', '5000', '--reason', 'too many'])
      await run(['set', 'agent.token_budget', '7000'])
      const { stdout } = await run(['history', 'agent.token_budget'])
      expect(stdout).toMatch(/2 .*user:admin +5000 → 7000/)
      expect(stdout).toContain('(too many)')
      expect((await run(['rollback', 'agent.token_budget', '1'])).code).toBe(0)
      expect((await run(['get', 'agent.token_budget'])).stdout).toBe('5000\n')
      const revisions = (await api.get('/config/agent.token_budget/revisions')).body.items as unknown as {
        reason: string
      }[]
      expect(revisions).toHaveLength(3)
      expect(revisions[0]?.reason).toBe('back to version 1')
      expect((await run(['rollback', 'agent.token_budget', '99'])).code).toBe(3)
    })

    test('what was exported shows as a difference elsewhere and can be imported; a wrong entry changes nothing', async () => {
      await run(['set', 'agent.time_budget', '900'])
      const file = (await run(['export'])).stdout
      expect(JSON.parse(file)).toMatchObject({ 'agent.time_budget': '900' })
      expect(file).not.toContain('whsec_')
      expect(await run(['diff', '-'], file)).toMatchObject({ code: 0, stdout: '' })
      const changed = JSON.stringify({ ...JSON.parse(file), 'agent.time_budget': '1200' })
      expect(await run(['diff', '-'], changed)).toMatchObject({
        code: 1,
        stdout: expect.stringContaining('900 → 1200'),
      })
      const bad = JSON.stringify({ 'agent.time_budget': '60', 'agent.no_such': '1' })
      expect(await run(['import', '-'], bad)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('agent.no_such'),
      })
      expect((await run(['get', 'agent.time_budget'])).stdout).toBe('900\n')
      expect((await run(['import', '-'], changed)).code).toBe(0)
      expect((await run(['get', 'agent.time_budget'])).stdout).toBe('1200\n')
    })

    const runInventory = (args: string[], input?: string) => runCli(['inventory', ...args], api.as('admin'), input)

    const file = `
nodes:
  - { id: web-1, group: web, hostname: web-1.example.com, ip: 192.0.2.11 }
  - { id: web-2, group: web }
hosts:
  - { id: hv-1, ramMib: 65536, cpuMc: 16000 }
`

    test('a file of a site is shown, imported and given back', async () => {
      const dry = await runInventory(['import', '-', '--dry-run'], file)
      expect(dry).toMatchObject({ code: 0, stdout: 'added    web, web-1, web-2, hv-1\n' })
      expect(dry.stderr).toContain('Nothing was stored: this was a dry run.')
      expect((await runInventory(['export'])).stdout).not.toContain('web-1')
      expect((await runInventory(['import', '-'], file)).stdout).toBe('added    web, web-1, web-2, hv-1\n')
      const { stdout } = await runInventory(['export'])
      expect(JSON.parse(stdout).nodes).toContainEqual({ id: 'web-2', group: 'web', hostname: 'web-2', ip: '' })
      const again = await runInventory(['import', '-', '--json'], stdout)
      expect(JSON.parse(again.stdout)).toMatchObject({ added: [], changed: [], removed: [], applied: true })
    })

    test('a wrong file is refused with every place, and nothing of it is sent', async () => {
      const wrong = await runInventory(
        ['import', '-'],
        'nodes: [{ id: "a b" }, { id: c, rack: r }]\nhosts: [{ id: h, ramMib: many }]',
      )
      expect(wrong.code).not.toBe(0)
      for (const place of ['nodes.0.id', 'nodes.1', 'hosts.0.ramMib']) expect(wrong.stderr).toContain(place)
      expect((await runInventory(['import', '-'], '{ nodes: [')).stderr).toContain('is not YAML or JSON')
      expect((await runInventory(['import', '/nowhere/site.yaml'])).stderr).toContain('cannot be read')
    })

    const dryRun = (file: string, ...more: string[]) =>
      runCli(['ingest', 'test', `test/data/alertmanager/${file}`, '--dry-run', ...more])

    test('a posted alert says what became of it', async () => {
      const file = 'test/data/alertmanager/replication-lag.json'
      const posted = await runCli(['ingest', 'test', file], api.as('ingest'))
      expect(posted.stdout).toMatch(/\w+ +opened +inc_\w{26}/)
      expect(posted.stderr).toContain('1 alert accepted')
      expect((await runCli(['ingest', 'test', file], api.as('ingest'))).stdout).toContain('repeated')
    })

    test('a dry run shows the alerts of a body and posts nothing', async () => {
      const files: [string, number, string][] = [
        ['replication-lag.json', 1, '1 alert.'],
        ['disk-pressure-group-of-3.json', 3, '3 alerts.'],
        ['mixed-one-resolved-two-firing.json', 3, '3 alerts.'],
        ['hostile-labels.json', 1, '1 alert.'],
        ['no-severity-no-instance.json', 1, '1 alert.'],
      ]
      await Promise.all(
        files.map(async ([file, alerts, said]) => {
          const [person, program] = await Promise.all([dryRun(file), dryRun(file, '--json')])
          expect([file, person.code]).toEqual([file, 0])
          expect(person.stderr).toContain(`${said} Nothing was posted.`)
          expect(harmfulIn(person.stdout)).toBeNull()
          expect(JSON.parse(program.stdout)).toHaveLength(alerts)
        }),
      )
    })

    test('bytes that are no alert are refused with the reason', async () => {
      const { code, stderr } = await runCli(['ingest', 'test', '-', '--dry-run'], {}, '{"alerts": 1')
      expect(code).toBe(1)
      expect(stderr).toContain('not a body of alertmanager alerts')
    })
  })
})

describe('jobs', () => {
  const hosts = temporaryDirectory()
  afterAll(hosts.remove)
  const playbook = fileURLToPath(new URL('../effects/stand-ins/playbook.sh', import.meta.url))
  const jobs = parseJobs(`
jobs:
  - name: converge-node
    about: Re-applies the configuration of a node
    resources: { kind: node, pattern: "node-osl-[12]" }
    run: { command: [${playbook}, ${hosts.path}, --limit, "{id}"] }
    check:
      command: [${playbook}, ${hosts.path}, --limit, "{id}", --check, --diff]
      noChanges: { pattern: "changed=0 .*failed=0", unless: "changed=[1-9]|failed=[1-9]" }
  - name: no-check
    about: Does something to it
    resources: { kind: node, ids: [node-osl-2] }
    run: { command: [${playbook}, ${hosts.path}, --limit, node-osl-2] }
`)
  const api = useServedApi(() => ({ platform: scriptedPlatform(), jobs }))
  const run = (args: string[], role: 'viewer' | 'admin' = 'viewer') => runCli(args, api.as(role))
  const host = (text: string) => writeFileSync(join(hosts.path, 'node-osl-2'), text)
  beforeAll(() => {
    writeFileSync(join(hosts.path, 'calls'), '')
    host('drifted')
  })

  test('jobs are listed, also those of one resource, with what their check mode is worth', async () => {
    const all = await run(['jobs', 'list'])
    expect([all.code, all.stdout]).toEqual([0, expect.stringMatching(/converge-node +node +command +yes, proves it/)])
    const { stdout } = await run(['jobs', 'list', '--on', 'node:node-osl-1', '--json'])
    expect(JSON.parse(stdout)).toMatchObject([{ name: 'converge-node', hasCheck: true }])
    expect((await run(['jobs', 'list', '--on', 'node-osl-1'])).code).toBe(2)
    expect((await run(['jobs', 'list', '--on', 'shard:db-osl-1'])).stderr).toContain('No job may run on shard:db-osl-1')
  })

  test('one is shown with what it is given, where it may run, its check mode and its last runs', async () => {
    const key = 'api:tok_1:once'
    await acceptEffect(api.db, { key, incidentId: null, tool: 'run_job', actionDigest: 'd' })
    const resource = { kind: 'node' as const, id: 'node-osl-2' }
    await noteJobOfEffect(api.db, key, {
      name: 'converge-node',
      system: 'command',
      phase: 'begun',
      ref: null,
      resource,
    })
    await finishEffect(api.db, key, {
      status: 'done',
      detail: 'converge-node: ended with \u001b[31mcode 0',
      result: {},
    })
    const { code, stdout } = await run(['jobs', 'show', 'converge-node'])
    expect(code).toBe(0)
    expect(stdout).toContain('node with an id that matches node-osl-[12] as a whole')
    expect(stdout).toContain('playbook.sh')
    expect(stdout).toMatch(/is given +\{id\}/)
    expect(stdout).toMatch(/no change +output matches changed=0/)
    expect(stdout).toMatch(/done +.*node:node-osl-2 .*code 0/)
    expect(stdout).not.toContain('\u001b[31m')
    const shown = JSON.parse((await run(['jobs', 'show', 'no-check', '--json'])).stdout)
    expect(shown).toMatchObject({ check: null, on: { ids: ['node-osl-2'] }, parameters: [], lastRuns: [] })
  })

  test('its check mode is run by hand: what it would change, and that nothing would', async () => {
    const check = ['jobs', 'check', 'converge-node', '--on', 'node:node-osl-2']
    const drifted = await run(check, 'admin')
    expect([drifted.code, drifted.stdout]).toEqual([0, expect.stringMatching(/\+wanted[\s\S]*changed=1/)])
    expect(drifted.stderr).toContain('Nothing was changed')
    host('wanted')
    const nothing = await run(check, 'admin')
    expect([nothing.code, nothing.stdout]).toEqual([0, 'converge-node would change nothing on node:node-osl-2.\n'])
    expect(JSON.parse((await run([...check, '--json'], 'admin')).stdout)).toMatchObject({ wouldChange: false })
  })

  test('what is wrong names what helps', async () => {
    const unknown = await run(['jobs', 'show', 'convrge'])
    expect([unknown.code, unknown.stderr]).toEqual([3, expect.stringContaining('converge-node, no-check')])
    expect(unknown.stderr).toContain('nightshift jobs list')
    const elsewhere = await run(['jobs', 'check', 'no-check', '--on', 'node:node-osl-1'], 'admin')
    expect([elsewhere.code, elsewhere.stderr]).toEqual([1, expect.stringContaining('Declared for it: converge-node')])
    expect((await run(['jobs', 'check', 'no-check'], 'admin')).code).toBe(2)
    const viewer = await run(['jobs', 'check', 'converge-node', '--on', 'node:node-osl-2'])
    expect([viewer.code, viewer.stderr]).toEqual([4, expect.stringContaining('act_on_platform')])
  })
})
