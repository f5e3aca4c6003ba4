import { readFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Connection } from '@temporalio/client'
import pg from 'pg'
import { parse } from 'yaml'
import { version } from '../../../domain/version.ts'
import { type Postgres, startPostgres } from '../../../start/postgres.ts'
import { startTemporal, type Temporal } from '../../../start/temporal.ts'
import { findTemporalCli } from '../../../start/temporal-cli.ts'
import { registerNamespace } from '../../support/broker.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { type Line, type ScriptedModel, scriptedModel } from '../../support/scripted-model.ts'
import { imageArchive } from '../deploy/image.ts'
import { note } from '../facts.ts'
import { whyNot } from '../kinds.ts'
import { askBehind, openPassage, type Passage, socketTo } from '../passage.ts'
import { type ComposeEngine, startComposeEngine } from './engine.ts'
import { makeComposeImages } from './images.ts'
import { type ComposeSite, composeSite, oneLoginFile, outside, secondsToHealthy } from './site.ts'

const lacking = whyNot('compose')
const checkout = join(import.meta.dirname, '../../..')
const file = readFileSync(join(checkout, 'docker-compose.yml'), 'utf8')
const escalation: Line = [{ tool: 'escalate', arguments: { reason: 'a person has to look at it' } }]

;(lacking ? describe.skip : describe)(`docker-compose.yml by Compose itself${lacking ? ` (${lacking})` : ''}`, () => {
  const place = temporaryDirectory()
  const at = (name: string) => join(place.path, name)
  let engine: ComposeEngine
  let site: ComposeSite
  let model: ScriptedModel
  let postgres: Postgres
  let temporal: Temporal
  /** The model keeps a question until somebody lets it go. */
  let held: ((line: Line) => void)[] | null = null
  const open: (Server | Passage)[] = []
  const ask = (path: string, more: { token?: string; body?: unknown } = {}) => askBehind(at('api'), path, more)

  beforeAll(async () => {
    const image = await imageArchive(place.path)
    engine = await startComposeEngine(place.path)
    await engine.docker('load', '--input', image)
    const { postgresql, temporal: server, 'temporal-schema': tools } = parse(file, { merge: true }).services
    await makeComposeImages(at('images'), engine.docker, {
      postgres: postgresql.image,
      server: server.image,
      tools: tools.image,
    })
    site = composeSite(place.path, engine)
    site.write({})
    model = await scriptedModel(() => (held === null ? escalation : new Promise((resolve) => held?.push(resolve))))
    postgres = await startPostgres({ dir: at('outside'), durable: false })
    const cli = await findTemporalCli({ rootDir: checkout, env: process.env })
    const log = { logFile: at('temporal.log'), env: process.env }
    temporal = await startTemporal({ cli: cli.path, dir: null, searchAttributes: [], ...log })
    const ports = { 8000: new URL(model.url).port, 5432: postgres.port, 7233: temporal.address.split(':')[1] }
    for (const [name, port] of Object.entries(ports)) open.push(await socketTo(Number(port), at(`to-${name}`)))
    const out = Object.keys(ports).map((port) => ({ socket: at(`to-${port}`), host: '0.0.0.0', port: Number(port) }))
    const into = [{ socket: at('api'), host: '127.0.0.1', port: 8080 }]
    open.push(await openPassage(engine.pid, { into, out, names: { host: '0.0.0.0', table: {} } }))
  })
  afterAll(async () => {
    await engine?.stop()
    for (const each of open.reverse()) await ('stop' in each ? each.stop() : each.close())
    await model?.stop()
    await temporal?.stop(0)
    await postgres?.stop(0)
    place.remove()
  })

  /** Nothing of the scenario before is left. */
  const clear = () => site.compose('--profile', '*', 'down', '--volumes', '--timeout', '20')

  async function up(): Promise<void> {
    await site.compose('up', '--detach', '--pull', 'never', '--no-build').catch(async (error) => {
      throw new Error(`${(error as Error).message}\n${await site.compose('logs', '--tail', '20')}`)
    })
    for (const name of ['api', 'worker'])
      await eventually(
        `the ${name} to be healthy`,
        async () => (await site.inspect(name)).State.Health?.Status === 'healthy',
      )
  }

  async function post(title: string): Promise<void> {
    const answer = await ask('/api/v1/ingest/generic', {
      token: site.tokens.ingest,
      body: { title, severity: 'warning' },
    })
    expect(answer.status).toBe(202)
  }

  async function incidents(): Promise<{ title: string; status: string }[]> {
    const { body } = await ask('/api/v1/incidents', { token: site.tokens.admin })
    return JSON.parse(body).items
  }

  const handedOver = (title: string) =>
    eventually(`"${title}" to be handed to people`, async () =>
      (await incidents()).some((each) => each.title === title && each.status === 'escalated'),
    )

  test('with PostgreSQL and Temporal an alert becomes an incident, and a run that asked the model ends', async () => {
    site.write({ COMPOSE_PROFILES: 'postgres,temporal', ...site.passwords })
    await up()
    note('API healthy after its start', `${secondsToHealthy(await site.inspect('api'))} s`)
    await post('Backup failed')
    await handedOver('Backup failed')
  })

  test('API and worker run as user 1000 on a root file system that they cannot write to', async () => {
    for (const name of ['api', 'worker']) {
      expect((await site.inspect(name)).HostConfig.ReadonlyRootfs).toBe(true)
      const look = 'id -u; grep ^CapEff /proc/1/status; touch /opt/nightshift/x 2>&1; touch /tmp/x && echo may'
      const said = await site.compose('exec', '-T', name, 'sh', '-c', look)
      expect(said).toMatch(/^1000\nCapEff:\t0+\ntouch: .*Read-only file system\nmay\n/)
    }
  })

  test('each login owns no more than it needs', async () => {
    const owners =
      'select distinct pg_get_userbyid(relowner) from pg_class where relnamespace = $$public$$::regnamespace'
    expect(await site.psql('nightshift', owners)).toBe('nightshift')
    for (const name of ['temporal', 'temporal_visibility']) expect(await site.psql(name, owners)).toBe('temporal')
    const sessions = `select distinct datname || ' ' || usename from pg_stat_activity where datname is not null and usename <> 'nightshift' order by 1`
    expect((await site.psql('postgres', sessions)).split('\n')).toEqual([
      ...['nightshift nightshift_services', 'temporal temporal', 'temporal_visibility temporal'],
    ])
  })

  test('the command of the page answers in the container', async () => {
    const said = await site.compose(
      'exec',
      '-T',
      'api',
      'nightshift',
      'doctor',
      '--token-file',
      '/run/nightshift/admin',
    )
    for (const part of ['PostgreSQL', 'Temporal', 'API']) expect(said).toMatch(new RegExp(`✔ ${part}\\b`))
    expect(said).not.toContain('✖')
  })

  test('a stop ends each process within its grace time, and a run that was at work continues after the next start', async () => {
    held = []
    await post('Stopped meanwhile')
    await eventually('the model to be asked', () => held!.length > 0)
    await site.compose('stop')
    // 137: it was killed when its grace was over.
    for (const name of ['api', 'worker', 'temporal', 'postgresql'])
      expect([name, (await site.inspect(name)).State.ExitCode === 137]).toEqual([name, false])
    for (const name of ['api', 'worker']) expect([name, (await site.inspect(name)).State.ExitCode]).toEqual([name, 0])
    for (const letGo of held) letGo(escalation)
    held = null
    await up()
    await handedOver('Stopped meanwhile')
    expect(await incidents()).toHaveLength(2)
  })

  test('another tag of the image replaces migration, API and worker, and nothing is lost', async () => {
    await engine.docker('tag', `nightshift:${version}`, 'nightshift:9.9.9')
    const before = await incidents()
    const server = await site.inspect('temporal')
    site.write(
      { COMPOSE_PROFILES: 'postgres,temporal', ...site.passwords },
      file.replace(`nightshift:${version}`, 'nightshift:9.9.9'),
    )
    await up()
    for (const name of ['migrate', 'api', 'worker'])
      expect((await site.inspect(name)).Config.Image).toBe('nightshift:9.9.9')
    expect((await site.inspect('temporal')).State.StartedAt).toBe(server.State.StartedAt)
    expect(await incidents()).toEqual(before)
    await post('After the upgrade')
    await handedOver('After the upgrade')
  })

  test('a volume that an older file made with one login gets three, and keeps its incidents', async () => {
    await clear()
    const { POSTGRES_PASSWORD } = site.passwords
    site.write({ COMPOSE_PROFILES: 'postgres,temporal', POSTGRES_PASSWORD, AGENT_ENABLED: 'false' }, oneLoginFile())
    await site.compose('up', '--detach', '--no-build', 'postgresql', 'temporal-schema', 'migrate')
    await eventually(
      'the migrations to be applied',
      async () => (await site.inspect('migrate')).State.Status === 'exited',
    )
    await site.compose('up', '--detach', '--no-build', '--no-deps', 'api')
    await eventually('the API to be ready', async () => (await ask('/readyz')).status === 200)
    await post('Of one login')
    await site.compose('down')

    site.write({
      COMPOSE_PROFILES: 'postgres,temporal',
      POSTGRES_PASSWORD,
      NIGHTSHIFT_DB_PASSWORD: '',
      TEMPORAL_DB_PASSWORD: '',
    })
    await expect(site.compose('up', '--detach', '--no-build')).rejects.toThrow(/logins.*didn't complete successfully/)
    expect(await site.compose('logs', 'logins')).toContain('Set NIGHTSHIFT_DB_PASSWORD in .env: openssl rand -hex 24')

    site.write({ COMPOSE_PROFILES: 'postgres,temporal', ...site.passwords })
    await up()
    await handedOver('Of one login')
    const others = `select count(*) from pg_class where relnamespace = 'public'::regnamespace and relowner <> 'temporal'::regrole and relkind in ('r','p','v','S')`
    for (const name of ['temporal', 'temporal_visibility']) expect(await site.psql(name, others)).toBe('0')
  })

  test('with the profile postgres Temporal is an external one', async () => {
    await clear()
    const { POSTGRES_PASSWORD, NIGHTSHIFT_DB_PASSWORD } = site.passwords
    const address = { TEMPORAL_ADDRESS: `${outside}:7233` }
    site.write({ COMPOSE_PROFILES: 'postgres', POSTGRES_PASSWORD, NIGHTSHIFT_DB_PASSWORD, ...address })
    await up()
    expect((await site.compose('ps', '--all', '--services')).trim().split('\n').toSorted()).toEqual([
      ...['api', 'logins', 'migrate', 'postgresql', 'worker'],
    ])
    await post('With a Temporal outside')
    await handedOver('With a Temporal outside')
  })

  test('without a profile both are external', async () => {
    await clear()
    const owner = new pg.Client({ connectionString: postgres.url })
    await owner.connect()
    await owner.query('create role nightshift_app nologin')
    await owner.query("create role site login password 'of-the-owner'")
    await owner.query('grant nightshift_app to site')
    await owner.query('create database site owner site')
    await owner.query("create role nightshift_services login password 'of-the-services' in role nightshift_app")
    await owner.end()
    // A namespace belongs to one site, and `default` belongs to the site of the test before.
    const connection = await Connection.connect({ address: temporal.address })
    await registerNamespace(connection, 'second-site')
    await connection.close()
    const server = `${outside}:5432/site`
    site.write({
      COMPOSE_PROFILES: '',
      DATABASE_URL: `postgresql://nightshift_services:of-the-services@${server}`,
      MIGRATE_DATABASE_URL: `postgresql://site:of-the-owner@${server}`,
      TEMPORAL_ADDRESS: `${outside}:7233`,
      TEMPORAL_NAMESPACE: 'second-site',
    })
    await up()
    expect((await site.compose('ps', '--all', '--services')).trim().split('\n').toSorted()).toEqual([
      'api',
      'migrate',
      'worker',
    ])
    await post('With both outside')
    await handedOver('With both outside')
    note('profiles that an incident went through to its end', 'postgres and temporal, postgres, none')
  })
})
