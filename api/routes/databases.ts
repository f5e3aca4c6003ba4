import { z } from '@hono/zod-openapi'
import { listSources } from '../../db/inventory/sources.ts'
import { databaseSample, databaseState } from '../../domain/database-state.ts'
import {
  type DatabaseAct,
  type DatabaseWrite,
  databaseWriteArguments,
  databaseWrites,
} from '../../domain/database-write.ts'
import { actionDigest } from '../../domain/digest.ts'
import { resourceRef } from '../../domain/registry.ts'
import { nameFaults } from '../../domain/schema-faults.ts'
import { allowsStatements, sourceName } from '../../domain/source.ts'
import { risks } from '../../domain/tool.ts'
import {
  type FoundTarget,
  observeDatabaseWrite,
  performDatabaseWrite,
  prepareDatabaseWrite,
  requireSameTarget,
} from '../../effects/databases/write.ts'
import { runEffect } from '../../effects/run-effect.ts'
import { SourceError } from '../../sources/kind.ts'
import { readDatabaseState } from '../../sources/kinds.ts'
import { endpoint } from '../http/endpoint.ts'
import { keyShape } from '../http/idempotency.ts'
import { notFound, Problem } from '../http/problem.ts'
import { actDirectly, directAnswer, directBody } from '../manual-change.ts'
import { samplesOf } from '../sample-databases.ts'
import { answerEffect } from './effects.ts'
import { incidentId } from './examples.ts'

/**
 * Routes for a database server: its current state, and its four writes with dry run, write and
 * verification.
 */

const tag = 'databases'
const params = z.object({ name: sourceName })

/** The subject of a write, as a query and a body contain it. */
type About = { pid?: number | undefined; began?: string | undefined; slot?: string | undefined }

/** Returns the schema for the body of a write, with exactly its fields. */
const bodyOf = (write: DatabaseWrite) => z.strictObject({ ...databaseWriteArguments[write].shape, ...directBody })

/** Returns the schema for the query of a write, in which a number is text. */
const queryOf = (write: DatabaseWrite) => {
  const { shape } = databaseWriteArguments[write]
  return z.object({ ...shape, ...('pid' in shape && { pid: z.coerce.number().int().min(1).max(4_294_967_295) }) })
}

/** Converts fields to a write. Throws a Problem for fields that the write does not have. */
function toAct(write: DatabaseWrite, { pid, began, slot }: About): DatabaseAct {
  const given = {
    ...(pid !== undefined && { pid }),
    ...(began !== undefined && { began }),
    ...(slot !== undefined && { slot }),
  }
  const parsed = databaseWriteArguments[write].safeParse(given)
  if (!parsed.success) throw new Problem(422, 'INVALID', nameFaults(parsed.error, { whole: 'arguments' }))
  return { write, ...parsed.data } as DatabaseAct
}

const identityOf = (name: string, { write: _, ...rest }: DatabaseAct) => ({ database: name, ...rest })

const summaries: Record<DatabaseWrite, string> = {
  cancel_query: 'Cancels the query that a session runs',
  terminate_session: 'Ends a session; its transaction is rolled back',
  drop_replication_slot: 'Drops an inactive replication slot',
  start_replica: 'Starts a replica that was stopped',
}

const examples: Record<DatabaseWrite, About> = {
  cancel_query: { pid: 4711, began: '2026-11-21T01:46:02.000000Z' },
  terminate_session: { pid: 4711, began: '2026-11-21T01:46:02.000000Z' },
  drop_replication_slot: { slot: 'replica_2' },
  start_replica: {},
}

const stateEndpoint = endpoint({
  method: 'get',
  path: '/databases/{name}',
  permission: 'read',
  tag,
  summary: 'The current state of a database server, read from its source',
  description:
    'Role, connections, blocking sessions, long transactions, replication. `samples` has one sample a minute since this API process started, two hours at most. 424 with a code if the server did not answer.',
  params,
  answer: databaseState.extend({
    samples: z.array(databaseSample),
    /** True if an admin allowed SQL statements of a model, which may read rows of tables. */
    allowsStatements: z.boolean(),
  }),
  example: {
    product: 'PostgreSQL',
    version: '15.18',
    role: 'primary',
    connections: { used: 42, max: 100, reserved: 3 },
    waiting: 0,
    blocking: [],
    transactions: [],
    replication: [{ text: 'pg-2 at 10.0.0.6: streaming, async, 0 bytes behind', isIll: false }],
    lagBytes: 0,
    allowsStatements: false,
    samples: [{ at: '2026-11-21T01:46:02.000Z', connections: 42, waiting: 0, lagBytes: 0 }],
  },
  problems: [404, 424],
  async run({ params: { name } }, deps) {
    const source = (await listSources(deps.db)).find((each) => each.name === name)
    try {
      const state = source && (await readDatabaseState(source, deps.sources))
      if (!state) throw notFound(`database server ${name} among the sources`)
      return { ...state, samples: [...samplesOf(name)], allowsStatements: allowsStatements(source.options) }
    } catch (error) {
      if (!(error instanceof SourceError)) throw error
      throw new Problem(424, error.code, error.message)
    }
  },
})

function preparationEndpoint(write: DatabaseWrite) {
  return endpoint({
    method: 'get',
    path: `/databases/{name}/${write}/preparation`,
    permission: 'act_on_platform',
    tag,
    summary: `${summaries[write]}: dry run against the current state of the server`,
    description:
      'Nothing is changed. `stateFingerprint` is the `If-Match` of the POST. 409 if the write is not possible; if a right is missing, the response has the GRANT statement.',
    params,
    query: queryOf(write),
    answer: z.object({
      targets: z.array(resourceRef),
      identity: z.record(z.string(), z.unknown()),
      stateFingerprint: z.string(),
      asks: z.object({ risk: z.enum(risks), why: z.string() }).optional(),
      dryRun: z.object({ possible: z.boolean(), summary: z.string(), details: z.record(z.string(), z.unknown()) }),
    }),
    example: {
      targets: [{ kind: 'database', id: 'pg-1' }],
      identity: { database: 'pg-1', ...examples[write] },
      stateFingerprint: '5d41402abc4b2a76b9719d911017c592',
      asks: { risk: 'medium', why: 'every write to a database requires approval' },
      dryRun: { possible: true, summary: `${summaries[write]} on pg-1`, details: {} },
    },
    problems: [404, 409],
    run: ({ params: { name }, query }, deps) => prepareDatabaseWrite(deps, { name, act: toAct(write, query as About) }),
  })
}

function observationEndpoint(write: DatabaseWrite) {
  return endpoint({
    method: 'get',
    path: `/databases/{name}/${write}/observation`,
    permission: 'act_on_platform',
    tag,
    summary: `${summaries[write]}: check of the result against the current state of the server`,
    description: '`key` is the key of the write: the check compares a query with the cancelled query.',
    params,
    query: queryOf(write).extend({ key: z.string().regex(keyShape).max(400).optional() }),
    answer: z.object({ holds: z.boolean().nullable(), observed: z.string() }),
    example: { holds: true, observed: 'session 4711 has ended' },
    problems: [404, 409],
    run: ({ params: { name }, query: { key, ...query } }, deps) =>
      observeDatabaseWrite(deps, { name, act: toAct(write, query as About) }, key ?? null),
  })
}

function writeEndpoint(write: DatabaseWrite) {
  return endpoint({
    method: 'post',
    path: `/databases/{name}/${write}`,
    permission: 'act_on_platform',
    tag,
    summary: `${summaries[write]}, once per \`Idempotency-Key\``,
    description:
      '`If-Match` is the `stateFingerprint` of the dry run that was approved: 412 if the session, query or slot has changed. An agent needs an approval that its run has used.',
    params,
    headers: z.object({ 'if-match': z.string().max(120).optional() }),
    body: bodyOf(write),
    bodyExample: { ...examples[write], reason: 'it blocks the checkout' },
    answer: z.looseObject({ detail: z.string(), key: z.string(), ...directAnswer }),
    example: { detail: 'End session 4711 of app@shop on pg-1: done', key: `${incidentId}.1:4:tool_started:0` },
    problems: [404, 409, 412, 428, 502, 504],
    agent: {
      tool: write,
      approved: true,
      identity: ({ name = '' }, body) => identityOf(name, toAct(write, body as About)),
    },
    async run({ params: { name }, body: { reason, alone, ...body }, principal, actor, key, judged, c }, deps) {
      const named = { name, act: toAct(write, body) }
      const ifMatch = c.req.header('if-match')
      if (!judged) {
        const args = { ...identityOf(name, named.act), reason }
        const prepare = async () => {
          await requireSameTarget(deps, named, ifMatch)
          const { dryRun, ...prepared } = await prepareDatabaseWrite(deps, named)
          return { ...prepared, summary: dryRun.summary }
        }
        const manual = await actDirectly(deps, { principal, actor, c, tool: write, args, alone, prepare })
        if (manual) return manual
      }
      let found: FoundTarget | null = null
      const effect = await runEffect(
        deps,
        { principal, key, judged, tool: write, actionDigest: actionDigest(write, identityOf(name, named.act)) },
        {
          async before() {
            found = await requireSameTarget(deps, named, ifMatch)
          },
          async perform(effectKey) {
            if (!found) throw new Error('a write begins after the state was compared')
            return await performDatabaseWrite(deps, named, found, effectKey)
          },
        },
      )
      return answerEffect(effect)
    },
  })
}

export const databaseRoutes = [
  stateEndpoint,
  ...databaseWrites.flatMap((write) => [preparationEndpoint(write), observationEndpoint(write), writeEndpoint(write)]),
]
