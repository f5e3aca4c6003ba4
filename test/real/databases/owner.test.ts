import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { openSession } from '../../../clients/databases/sessions.ts'
import { sayOwner } from '../../../effects/databases/owner.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { whyNot } from '../kinds.ts'
import { giveRights, type SiteServer, startSiteServer } from './site-server.ts'

/**
 * What only looks like a program that manages the server; Patroni itself is in `patroni.test.ts`.
 */

const lacking = whyNot('databases')
const place = temporaryDirectory()
const servers: SiteServer[] = []

async function start(settings: readonly string[]) {
  const server = await startSiteServer(place.path, { settings })
  servers.push(server)
  const { write } = await giveRights(server, place.path)
  const [user = '', password = ''] = readFileSync(write.replace('file:', ''), 'utf8').trim().split(':')
  const at = { host: '127.0.0.1', port: server.port, database: 'postgres', login: { user, password } }
  const say = async (slot: string) => {
    const session = await openSession({
      dialect: 'postgres',
      tls: 'off',
      ca: null,
      client: null,
      timeoutMs: 9_000,
      ...at,
    })
    try {
      return await sayOwner(session, { write: 'drop_replication_slot', slot })
    } catch (error) {
      return (error as Error).message
    } finally {
      session.end()
    }
  }
  return { server, say }
}

const when = lacking ? describe.skip : describe

when(`a server that nobody manages${lacking ? ` (${lacking})` : ''}`, () => {
  let plain: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    plain = await start([
      'wal_level=logical',
      'cluster_name=shop',
      'hot_standby=on',
      'wal_log_hints=on',
      'max_wal_senders=5',
    ])
  })
  afterAll(async () => {
    for (const each of servers) await each.stop()
    place.remove()
  })

  test('reserves its slots for nobody, whatever its sessions, tables, slots, logins and settings are called', async () => {
    for (const name of ['Patroni', 'Patroni heartbeat', 'Patroni restapi', 'patroni']) await plain.server.open(name)
    await plain.server.run(`create role patroni; create table patroni (n int); create table cnpg (n int); create role streaming_replica;
      alter database postgres set cnpg.config_sha256 = 'x'; alter role nightshift_write set cnpg.config_sha256 = 'x'`)
    await plain.server.run(`select pg_create_physical_replication_slot('_cnpg_shop_2')`)
    expect(await plain.say('_cnpg_shop_2')).toBeNull()
    expect(await plain.say('patroni')).toBeNull()
  })

  test('is distinguished from one that CloudNativePG or Patroni configured', async () => {
    const cloud = await start(['ssl_cert_file=/controller/certificates/server.crt', 'cluster_name=shop'])
    expect(await cloud.say('_cnpg_shop_2')).toContain('CloudNativePG manages this server (cluster shop)')
    expect(await cloud.say('archive')).toContain('may reverse this')
    await plain.server.open('Patroni heartbeat', { user: 'site' })
    expect(await plain.say('archive')).toContain('would create the slot archive again')
  })
})
