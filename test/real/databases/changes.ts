import type pg from 'pg'
import type { DatabaseAct } from '../../../domain/database-write.ts'
import { eventually } from '../../support/directory.ts'
import type { SiteServer } from './site-server.ts'

/**
 * What becomes of a session or a slot between its card and the act. A session says in its name
 * whether it is still the one that was meant.
 */

export type World = { primary: SiteServer; replica: SiteServer; round: number; leadAway(): Promise<void> }

export type Begun = {
  act: DatabaseAct
  /** Null: nothing happens to it. */
  change: (() => Promise<unknown>) | null
  /** Slots and replay: what was not meant is as it was. Sessions say it in the log. */
  isUntouched?: () => Promise<boolean>
  end(): Promise<unknown>
}

export type Change = { what: string; begin(world: World): Promise<Begun> }

const meant = ({ round }: World) => `r${round}-meant`
/** The same session, which went on. */
const changed = ({ round }: World) => `r${round}-changed`
const other = ({ round }: World) => `r${round}-other`

const pidOf = (client: pg.Client): number => (client as unknown as { processID: number }).processID

async function identify(server: SiteServer, client: pg.Client): Promise<{ pid: number; began: string }> {
  const sql = `select to_char(backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as began from pg_stat_activity where pid = $1`
  const [row] = await server.run(sql, [pidOf(client)])
  return { pid: pidOf(client), began: String(row?.began) }
}

async function untilState(
  server: SiteServer,
  pid: number,
  state: string,
  query = '',
  isOver = () => false,
): Promise<void> {
  const sql = 'select state, query from pg_stat_activity where pid = $1'
  await eventually(`session ${pid} to be ${state || 'over'}`, async () => {
    const [row] = await server.run(sql, [pid])
    return isOver() || ((row?.state ?? '') === state && (state === '' || String(row?.query).includes(query)))
  })
}

/** Runs a query that does not end before `release`. */
async function runLong(server: SiteServer, client: pg.Client, lock: number): Promise<{ release(): Promise<unknown> }> {
  await server.run('select pg_advisory_lock($1)', [lock])
  let isOver = false
  const ended = client
    .query(`select pg_advisory_lock_shared(${lock})`)
    .catch(() => undefined)
    .finally(() => {
      isOver = true
    })
  await untilState(server, pidOf(client), 'active', `(${lock})`, () => isOver)
  return {
    async release() {
      await server.run('select pg_advisory_unlock($1)', [lock])
      await ended
    },
  }
}

/** Ends a session, and opens another one under its number. */
async function replace(world: World, client: pg.Client, server = world.primary): Promise<pg.Client> {
  const pid = pidOf(client)
  if (server === world.primary) {
    await client.end()
    await untilState(server, pid, '')
  }
  return await eventually('the number to be given again', async () => {
    server.giveNext(pid)
    const next = await server.open(other(world))
    if (pidOf(next) === pid) return next
    await next.end()
    return null
  })
}

type Write = 'cancel_query' | 'terminate_session'

const idle = 'begin; select 1'

function sessionChange(write: Write, what: string, happen: Happening | null): Change {
  return {
    what: `${write}: ${what}`,
    async begin(world) {
      const { primary, round } = world
      const client = await primary.open(meant(world))
      const long = write === 'cancel_query' ? await runLong(primary, client, round * 10) : null
      if (!long) await client.query(idle)
      const more: { release(): Promise<unknown> }[] = []
      const others: pg.Client[] = []
      const doLike = async (next: pg.Client, server = primary) => {
        if (next !== client) others.push(next)
        if (long) more.push(await runLong(server, next, round * 10 + 1))
        else await next.query(idle)
      }
      return {
        act: { write, ...(await identify(primary, client)) },
        change: happen && (() => happen({ world, client, release: () => long?.release(), more, doLike })),
        async end() {
          for (const each of [...(long ? [long] : []), ...more]) await each.release().catch(() => undefined)
          await Promise.all([client, ...others].map((each) => each.end().catch(() => undefined)))
        },
      }
    },
  }
}

type Happening = (at: {
  world: World
  client: pg.Client
  release(): Promise<unknown> | undefined
  more: { release(): Promise<unknown> }[]
  /** Does as the one that was meant did. */
  doLike(next: pg.Client, server?: SiteServer): Promise<void>
}) => Promise<unknown>

const ends: Happening = async ({ world, client, release }) => {
  await release()
  await client.end()
  await untilState(world.primary, pidOf(client), '')
}

const isReplaced: Happening = async ({ world, client, release, doLike }) => {
  await release()
  await doLike(await replace(world, client))
}

const beginsAnother: Happening = async ({ world, client, release, doLike }) => {
  await release()
  await client.query(`commit; set application_name = '${changed(world)}'`)
  await doLike(client)
}

const isIdle: Happening = async ({ world, client, release }) => {
  await release()
  await client.query(`rollback; set application_name = '${changed(world)}'`)
}

const isIdleInTransaction: Happening = async ({ world, client, release }) => {
  await release()
  await client.query(`begin; set application_name = '${changed(world)}'`)
}

const isActive: Happening = async ({ world, client, more }) => {
  await client.query(`set application_name = '${changed(world)}'`)
  more.push(await runLong(world.primary, client, world.round * 10 + 1))
}

/** Another server under the same address has a session of the same number that does the same. */
const isElsewhere: Happening = async ({ world, client, doLike }) => {
  await doLike(await replace(world, client, world.replica), world.replica)
  await world.leadAway()
}

const sessions: Change[] = (['cancel_query', 'terminate_session'] as const).flatMap((write) => [
  sessionChange(write, 'it ends', ends),
  sessionChange(write, 'another one has its number', isReplaced),
  sessionChange(
    write,
    write === 'cancel_query' ? 'it runs another query' : 'it begins another transaction',
    beginsAnother,
  ),
  sessionChange(write, 'it is idle', isIdle),
  write === 'cancel_query'
    ? sessionChange(write, 'it is idle in a transaction', isIdleInTransaction)
    : sessionChange(write, 'it runs a query in its transaction', isActive),
  sessionChange(write, 'another server is there', isElsewhere),
  sessionChange(write, 'nothing happens', null),
])

const physical = (reserves: boolean) => (slot: string) =>
  `select pg_create_physical_replication_slot('${slot}', ${reserves})`
const logical = (slot: string) => `select pg_create_logical_replication_slot('${slot}', 'pgoutput')`
const advance = (slot: string) => `select pg_replication_slot_advance('${slot}', pg_current_wal_flush_lsn())`
const drop = (slot: string) => `select pg_drop_replication_slot('${slot}')`
const writeWal = `select pg_logical_emit_message(true, 'site', 'more')`

function slotChange(
  what: string,
  make: (slot: string) => string,
  happen: ((slot: string, world: World, clients: pg.Client[]) => Promise<unknown>) | null,
): Change {
  return {
    what: `drop_replication_slot: ${what}`,
    async begin(world) {
      const { primary, replica, round } = world
      const slot = `slot_${round}`
      const clients: pg.Client[] = []
      const places = what.includes('another server') ? [primary, replica] : [primary]
      for (const each of places) await each.run(make(slot))
      return {
        act: { write: 'drop_replication_slot', slot },
        change: happen && (() => happen(slot, world, clients)),
        async isUntouched() {
          const there = places
            .slice(-1)
            .map((each) => each.run('select 1 from pg_replication_slots where slot_name = $1', [slot]))
          return (await Promise.all(there)).every((rows) => rows.length === 1)
        },
        async end() {
          for (const each of clients)
            (each as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
          for (const each of places)
            await eventually('the slot to be dropped', () =>
              each
                .run(`select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1`, [
                  slot,
                ])
                .catch(() => null),
            )
        },
      }
    },
  }
}

async function use(slot: string, { primary }: World, clients: pg.Client[]): Promise<void> {
  const client = await primary.open('consumer', { user: 'site', replication: 'true' } as pg.ClientConfig)
  clients.push(client)
  const [row] = await primary.run('select pg_current_wal_flush_lsn()::text as at')
  client.query(`START_REPLICATION SLOT ${slot} PHYSICAL ${row?.at}`).catch(() => undefined)
  await eventually(
    'the slot to be in use',
    async () => (await primary.run('select active from pg_replication_slots where slot_name = $1', [slot]))[0]?.active,
  )
}

const slots: Change[] = [
  slotChange('it is in use', physical(true), use),
  slotChange('a physical one advances', physical(true), async (slot, { primary }) => {
    await primary.run(writeWal)
    await primary.run(advance(slot))
  }),
  slotChange('a logical one advances', logical, async (slot, { primary }) => {
    await primary.run(writeWal)
    await primary.run(advance(slot))
  }),
  slotChange('it is made again', logical, async (slot, { primary }) => {
    await primary.run(drop(slot))
    await primary.run(writeWal)
    await primary.run(logical(slot))
  }),
  slotChange('it is made again as another kind', physical(false), async (slot, { primary }) => {
    await primary.run(drop(slot))
    await primary.run(logical(slot))
  }),
  slotChange('another server is there', physical(false), async (_, world) => await world.leadAway()),
  slotChange('nothing happens', physical(true), null),
]

export const changes: readonly Change[] = [...sessions, ...slots]
