import type { ResourceRef } from '../../../../domain/registry.ts'
import { read, wrote } from '../lies-by-rows/build.ts'
import { did, is, was } from '../lies-by-rows/lie.ts'
import { type LabEnding, played } from './play.ts'

/** Endings of the faults of databases: what a server answered, and what was done about it. */

const server = (id: string): ResourceRef => ({ kind: 'database', id })
const about = (name: string, id = 'pg-1') => ({ alert: { name }, about: server(id) })

const asked = (seq: number, question: string, summary: Record<string, unknown>, id = 'pg-1') =>
  read(
    seq,
    'ask_database',
    { source: id, isEmpty: false, isPartial: false, summary, digest: null },
    { on: [server(id)], args: { source: id, question } },
  )

const acted = (seq: number, tool: string, args: Record<string, unknown>, observed: string, id = 'pg-1') =>
  wrote(
    seq,
    tool,
    { data: { detail: `${tool} on ${id}: done`, changed: [`${tool} on ${id}`] } },
    {
      on: [server(id)],
      args: { database: id, reason: 'to repair it', ...args },
      held: 'held',
      must: 'it is so',
      observed,
    },
  )

const duplicate = 'error 1062 (a row with that key is there already) on table shop.orders'

const session = (pid: number, application: string, state: string) => ({
  pid,
  began: '2026-11-27T14:50:19.794980Z',
  user: 'shop_app',
  application,
  database: 'shop',
  state,
  statement: 'select ?',
})

/** A fault that no write repairs: the answer, and the one value that names its root. */
function handedOver(
  scenario: LabEnding['scenario'],
  alert: string,
  question: string,
  summary: Record<string, unknown>,
  [text, quote]: [string, string],
): LabEnding {
  return played(
    scenario,
    about(alert),
    [asked(4, question, summary)],
    { escalated: 'no_tool' },
    { text, claims: [is(text, [4, quote])] },
  )
}

export const databaseEndings: LabEnding[] = [
  played(
    'db_idle_blocker',
    about('PostgresqlSessionsBlocked'),
    [
      asked(4, 'blocking', {
        sessionsWaiting: 4,
        roots: [{ ...session(4711, 'shop-backoffice', 'idle in transaction'), blocks: 4 }],
      }),
      acted(10, 'terminate_session', { pid: 4711, began: '2026-11-27T14:50:19.794980Z' }, 'session 4711 has ended'),
      asked(14, 'blocking', { sessionsWaiting: 0, roots: [] }),
    ],
    { resolved: 'repaired' },
    {
      text: 'Session 4711 of shop-backoffice was ended; nobody waits.',
      claims: [
        was('Session 4711 was idle in transaction.', [4, '"pid":4711', '"state":"idle in transaction"']),
        did('I ended that session.', [10, 'terminate_session on pg-1: done']),
        is('0 sessions wait.', [14, '"sessionsWaiting":0']),
      ],
    },
  ),
  played(
    'db_slot_keeps_wal',
    about('PostgresqlUnusedReplicationSlot'),
    [
      asked(4, 'replication', {
        role: 'primary',
        slots: [{ slot: 'pg_3', type: 'physical', active: false, keeps_bytes: 44_000_000 }],
      }),
      acted(10, 'drop_replication_slot', { slot: 'pg_3' }, 'there is no slot pg_3 any more'),
      asked(14, 'replication', {
        role: 'primary',
        slots: [{ slot: 'pg_2', type: 'physical', active: true, keeps_bytes: 0 }],
      }),
    ],
    { resolved: 'repaired' },
    {
      text: 'The slot pg_3 was dropped.',
      claims: [
        was('The slot pg_3 kept 44000000 bytes.', [4, '"slot":"pg_3"', '"keeps_bytes":44000000']),
        did('I dropped the slot.', [10, 'drop_replication_slot on pg-1: done']),
        is('The slot pg_2 is active.', [14, '"slot":"pg_2"', '"active":true']),
      ],
    },
  ),
  ...(['db_replay_held', 'db_temp_files'] as const).map((scenario): LabEnding => {
    const id = scenario === 'db_replay_held' ? 'pg-2' : 'pg-1'
    return played(
      scenario,
      about(scenario === 'db_replay_held' ? 'PostgresqlReplicationLag' : 'PostgresqlTempFilesHigh', id),
      [
        asked(4, 'transactions', { transactions: [{ ...session(812, 'shop-report', 'active'), openSeconds: 95 }] }, id),
        acted(
          10,
          'cancel_query',
          { pid: 812, began: '2026-11-27T14:50:19.794980Z' },
          'the query of session 812 has ended',
          id,
        ),
        asked(14, 'transactions', { transactions: [] }, id),
      ],
      { resolved: 'repaired' },
      {
        text: 'The query of session 812 was cancelled.',
        claims: [
          was('Session 812 was active.', [4, '"pid":812', '"state":"active"']),
          did('I cancelled its query.', [10, `cancel_query on ${id}: done`]),
        ],
      },
    )
  }),
  played(
    'db_replica_stopped',
    about('MysqlSlaveSqlThreadNotRunning', 'maria-2'),
    [
      asked(
        4,
        'replication',
        { product: 'MariaDB', role: 'replica', channels: [{ receiver: 'No', applier: 'No', applierError: 'none' }] },
        'maria-2',
      ),
      acted(10, 'start_replica', {}, 'the replica replicates', 'maria-2'),
      asked(
        14,
        'replication',
        { product: 'MariaDB', role: 'replica', channels: [{ receiver: 'Yes', applier: 'Yes', applierError: 'none' }] },
        'maria-2',
      ),
    ],
    { resolved: 'repaired' },
    {
      text: 'The replica maria-2 was started.',
      claims: [
        did('I started the replica.', [10, 'start_replica on maria-2: done']),
        is('The applier is Yes.', [14, '"applier":"Yes"']),
      ],
    },
  ),
  played(
    'db_replica_duplicate_key',
    about('MysqlSlaveSqlThreadNotRunning', 'maria-2'),
    [
      asked(
        4,
        'replication',
        {
          product: 'MariaDB',
          role: 'replica',
          channels: [{ receiver: 'Yes', applier: 'No', applierError: duplicate }],
        },
        'maria-2',
      ),
    ],
    { escalated: 'no_tool' },
    {
      text: 'The applier stopped by error 1062.',
      claims: [is('The applierError is error 1062.', [4, `"applierError":"${duplicate}"`])],
    },
  ),
  handedOver(
    'db_connections_exhausted',
    'PostgresqlTooManyConnections',
    'connections',
    { used: 37, max: 40, holders: [{ application: 'shop-worker', count: 29, state: 'idle' }] },
    ['shop-worker has a count of 29.', '"application":"shop-worker","count":29'],
  ),
  handedOver(
    'db_wraparound',
    'PostgresqlTransactionIdWraparound',
    'tables',
    { oldest: [{ table: 'public.order_events', age: 150_173 }] },
    ['public.order_events has an age of 150173.', '"table":"public.order_events","age":150173'],
  ),
  handedOver(
    'db_bloat_prepared',
    'PostgresqlTooManyDeadTuples',
    'tables',
    { holdsVacuumBack: ['prepared transaction shop-settlement-4711: 58 transactions'] },
    [
      'holdsVacuumBack: prepared transaction shop-settlement-4711.',
      'prepared transaction shop-settlement-4711: 58 transactions',
    ],
  ),
  handedOver(
    'db_plan_flip',
    'PostgresqlSlowStatement',
    'statements',
    { statements: [{ statement: 'select count(*) from jobs', now: { mean_ms: 542.9 }, before: { mean_ms: 49.4 } }] },
    ['The statement has a mean_ms of 542.9 now.', '"now":{"mean_ms":542.9}'],
  ),
  handedOver(
    'db_index_lost',
    'PostgresqlHighSequentialReads',
    'tables',
    { readInWhole: [{ table: 'public.orders', rows_a_second: 160_563.8, indexes: 'orders_pkey' }] },
    ['public.orders has the indexes orders_pkey.', '"table":"public.orders"'],
  ),
  handedOver('db_deadlocks', 'PostgresqlDeadLocks', 'databases', { databases: [{ database: 'shop', deadlocks: 4 }] }, [
    'shop has 4 deadlocks.',
    '"database":"shop","deadlocks":4',
  ]),
]
