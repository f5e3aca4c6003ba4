import { z } from 'zod'
import { allowsStatements } from '../../domain/source.ts'
import { defineSourceKind, type SourceKind } from '../kind.ts'
import { askPostgres } from './ask-database.ts'
import { type AskDatabase, connectDatabase } from './connect.ts'
import { readFacts } from './facts.ts'
import { listPostgres } from './inventory.ts'
import { postgresReader } from './postgres-reader.ts'
import { queryDatabase, queryOption } from './query.ts'
import { findExcessRights, sayExcess } from './query-rights.ts'
import { readState } from './state.ts'
import { countStatements } from './statements.ts'

/** The oldest supported major version. Older versions lack views that Nightshift reads. */
const oldestMajor = 10

export const postgresql: SourceKind = defineSourceKind<AskDatabase>({
  kind: 'postgresql',
  title: 'PostgreSQL',
  protocol: 'postgresql',
  options: z.strictObject({ tls: z.enum(['off', 'unverified', 'verified']).optional(), ...queryOption }),
  connect: connectDatabase,
  async probe(ask) {
    const { rows, server } = await ask({
      sql: `select pg_is_in_recovery() as replica, current_database() as database, pg_has_role('pg_read_all_stats', 'usage') as sees_all`,
    })
    const [{ replica = false, database = '', sees_all = false } = {}] = rows
    const age =
      server.major < oldestMajor ? `; it is older than version ${oldestMajor}, so some queries are not possible` : ''
    const rights = sees_all ? '' : '; the login sees only its own sessions: GRANT pg_read_all_stats to it'
    return `the server answers: PostgreSQL ${server.version}, ${replica ? 'a replica' : 'a primary'}, database ${database}${age}${rights}`
  },
  contextOf: { database: (ask) => readFacts(ask, postgresReader) },
  listResources: listPostgres,
  is: 'database',
  readState: (ask) => readState(ask, postgresReader),
  countStatements,
  async warn(ask) {
    const excess = await findExcessRights(ask)
    return excess.length === 0 ? null : sayExcess(excess)
  },
  allows: (options) => (allowsStatements(options) ? { tool: queryDatabase.name } : null),
  tools: [askPostgres, queryDatabase],
})
