import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import pg from 'pg'
import { type DatabaseFault, databaseFaultRows, databaseFaults } from '../../../lab/databases/faults.ts'
import { missingDatabasePackages } from '../../../lab/databases/programs.ts'
import { missingServers } from '../../../lab/monitoring.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { type RunningLab, runLab } from '../../support/running-lab.ts'

const lacking = [...missingServers(), ...missingDatabasePackages()]
const place = temporaryDirectory()
chmodSync(place.path, 0o755)
let lab: RunningLab
let drawer: Awaited<ReturnType<RunningLab['control']['openDatabases']>>
let prometheusUrl: string

type Verdict = Awaited<ReturnType<RunningLab['control']['oracle']>>
const wrongOf = ({ checks }: Verdict): string[] =>
  checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`)

/** A session as a role whose credential the drawer answers. */
async function as<T>(file: string, url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const [user, password] = readFileSync(file, 'utf8').split(':')
  const address = Object.assign(new URL(url), { username: user, password })
  const client = new pg.Client({ connectionString: address.href })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

const urlOf = (name: string): string => drawer.servers.find((each) => each.name === name)?.url ?? ''

const asWriter = (name: string, statement: string): Promise<unknown> =>
  as(drawer.credentials.write, urlOf(name), (client) => client.query(statement))

function startReplica(): void {
  const [user, password] = readFileSync(drawer.credentials.write, 'utf8').split(':')
  const words = [
    '--no-defaults',
    '-h127.0.0.1',
    `-P${new URL(urlOf('maria-2')).port}`,
    `-u${user}`,
    '-e',
    'start slave',
  ]
  execFileSync('mariadb', words, { env: { PATH: process.env.PATH, MYSQL_PWD: password } })
}

async function isFiring(alert: string, instance: string): Promise<boolean> {
  const { data } = (await (await fetch(`${prometheusUrl}/api/v1/alerts`)).json()) as {
    data: { alerts: { state: string; labels: Record<string, string> }[] }
  }
  return data.alerts.some(
    ({ state, labels }) => state === 'firing' && labels.alertname === alert && labels.instance === instance,
  )
}

const when = lacking.length > 0 ? describe.skip : describe

when(`the drawer of databases${lacking.length > 0 ? ` (${lacking.join(', ')} missing)` : ''}`, () => {
  beforeAll(async () => {
    lab = await runLab(join(place.path, 'lab'))
    drawer = await lab.control.openDatabases()
    prometheusUrl = (await lab.control.monitor()).prometheusUrl
  })
  afterAll(async () => {
    await lab?.stop()
    place.remove()
  })

  test('has two primaries with a replica each, is well, and its second opening answers the same', async () => {
    expect(drawer.servers.map(({ name, kind, replicatesFrom }) => [name, kind, replicatesFrom])).toEqual([
      ['pg-1', 'postgresql', null],
      ['pg-2', 'postgresql', 'pg-1'],
      ['maria-1', 'mysql', null],
      ['maria-2', 'mysql', 'maria-1'],
    ])
    expect(await lab.control.openDatabases()).toEqual(drawer)
    expect(wrongOf(await lab.control.oracle('nothing'))).toEqual([])
  })

  test('the two credentials are for the user of the lab alone, and have exactly the granted rights', async () => {
    const { read, write } = drawer.credentials
    expect([read, write].map((file) => statSync(file).mode & 0o777)).toEqual([0o600, 0o600])
    const ask = () => as(read, urlOf('pg-2'), (client) => client.query('select count(*) from stock'))
    await expect(ask()).rejects.toThrow(/permission denied/)
    await lab.control.applyGrants('pg-2', 'grant select on stock to nightshift_read')
    await eventually('the grant to reach the replica', () =>
      ask().then(
        () => true,
        () => false,
      ),
    )
    await lab.control.applyGrants('maria-1', `grant select on shop.stock to nightshift_read`)
    await expect(lab.control.applyGrants('maria-1', 'grant everything')).rejects.toThrow(/422/)
  })

  test.each(databaseFaults.map((name) => [name, databaseFaultRows[name]] as const))(
    '%s is seen on its server, raises its alert, and is healed',
    async (name, { on, alert, repairedBy }) => {
      const broken = await lab.control.break(name, on)
      expect(broken.database?.root).toBeTruthy()
      const verdict = await lab.control.oracle(name, on)
      // What a write repairs is not well yet; what is for a person has to stand as it was.
      expect([name, verdict.healthy, wrongOf(verdict).length]).toEqual([
        name,
        repairedBy.length === 0,
        repairedBy.length === 0 ? 0 : 1,
      ])
      const { instance } = drawer.servers.find((each) => each.name === on) ?? { instance: '' }
      await eventually(`${alert} of ${instance} to fire`, () => isFiring(alert, instance))
      await eventually(`${alert} to arrive`, () => lab.firing().some(({ labels }) => labels.alertname === alert))
      expect(await lab.control.heal(name, on)).toBe(1)
      expect(wrongOf(await lab.control.oracle('nothing'))).toEqual([])
    },
  )

  test('a repair is good if it ends the root session, and not if it ends another', async () => {
    await lab.control.applyGrants('pg-1', 'grant pg_signal_backend, pg_monitor to nightshift_write')
    const end = (pid: number) => asWriter('pg-1', `select pg_terminate_backend(${pid})`)
    const first = await lab.control.break('db_idle_blocker', 'pg-1')
    await end(first.database?.rootSession?.pid ?? 0)
    await eventually('the four to go on', async () => (await lab.control.oracle('db_idle_blocker')).healthy)
    await lab.control.heal('db_idle_blocker')

    const second = await lab.control.break('db_idle_blocker', 'pg-1')
    const bystander = second.database?.sessions.find(({ application }) => application === 'shop-mailer')
    await end(second.database?.rootSession?.pid ?? 0)
    await end(bystander?.pid ?? 0)
    await eventually('the session to be missed', async () =>
      wrongOf(await lab.control.oracle('db_idle_blocker')).some((each) => /shop-mailer .* is gone/.test(each)),
    )
    await lab.control.heal('db_idle_blocker')
  })

  const repairs: [DatabaseFault, (root: number) => Promise<unknown>][] = [
    ['db_slot_keeps_wal', () => asWriter('pg-1', `select pg_drop_replication_slot('pg_3')`)],
    ['db_replay_held', (root) => asWriter('pg-2', `select pg_cancel_backend(${root})`)],
    ['db_temp_files', (root) => asWriter('pg-1', `select pg_cancel_backend(${root})`)],
    ['db_replica_stopped', async () => startReplica()],
  ]
  test.each(repairs)('%s is well after its one write by the writing role', async (name, repair) => {
    await lab.control.applyGrants(
      'pg-1',
      'grant pg_signal_backend, pg_monitor to nightshift_write; alter role nightshift_write replication',
    )
    await lab.control.applyGrants('maria-1', 'grant replication slave admin on *.* to nightshift_write')
    const { on } = databaseFaultRows[name]
    const { database } = await lab.control.break(name, on)
    await repair(database?.rootSession?.pid ?? 0)
    await eventually(`${name} to be well`, async () => (await lab.control.oracle(name, on)).healthy)
    await lab.control.heal(name, on)
  })

  test('a fault for a person is not well once somebody changed it', async () => {
    await lab.control.break('db_plan_flip', 'pg-1')
    await lab.control.applyGrants('pg-1', 'analyze jobs')
    expect((await lab.control.oracle('db_plan_flip')).healthy).toBe(false)
    await lab.control.heal('db_plan_flip')
    expect(wrongOf(await lab.control.oracle('nothing'))).toEqual([])
  })

  test('a fault is refused on another server, and where it exists already', async () => {
    await expect(lab.control.break('db_index_lost', 'pg-2')).rejects.toThrow(/can be broken on pg-1 only/)
    await lab.control.break('db_index_lost', 'pg-1')
    await expect(lab.control.break('db_index_lost', 'pg-1')).rejects.toThrow(/the fault is there already/)
    await lab.control.break('db_idle_blocker', 'pg-1')
    // The index waits for what the blocker holds, and was broken first.
    expect(await lab.control.heal()).toBe(2)
    expect(wrongOf(await lab.control.oracle('nothing'))).toEqual([])
    await lab.control.break('db_idle_blocker', 'pg-1')
    await expect(lab.control.break('db_index_lost', 'pg-1')).rejects.toThrow(/422.*heal that fault first/)
    await lab.control.heal()
  })

  test('with the lab all of it ends, and a killed lab leaves no process', async () => {
    const pids = () =>
      (JSON.parse(readFileSync(join(lab.dir, 'children.json'), 'utf8')) as { id: string; pid: number }[])
        .filter(({ id }) => /^(pg|maria|exporter|clients|shop)-/.test(id))
        .map(({ pid }) => pid)
    const killed = pids()
    expect(killed.length).toBeGreaterThanOrEqual(10)
    lab.process.kill('SIGKILL')
    await eventually('what was killed to end', () => killed.every((pid) => !existsSync(`/proc/${pid}`)))
    await lab.stop()
    lab = await runLab(join(place.path, 'lab'))
    drawer = await lab.control.openDatabases()
    const stopped = pids()
    await lab.stop()
    expect(stopped.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([])
  })
})
