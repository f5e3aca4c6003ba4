import { z } from 'zod'
import { type DatabaseWrite, databaseWriteArguments } from '../domain/database-write.ts'
import { resourceRef } from '../domain/registry.ts'
import { sourceName } from '../domain/source.ts'
import { type CorePort, risks, type Tool, type ToolContext } from '../domain/tool.ts'
import { defineTool, reason, sayWrite, state } from './define.ts'
import { ProposalError } from './placement.ts'

/**
 * Defines the four writes to a database server. Each write always needs an approval, which is valid
 * only for the state on the card.
 */

/** The write is impossible. The model gets the reason. */
class DatabaseWriteError extends ProposalError {}

const preparation = z.object({
  targets: z.array(resourceRef),
  identity: z.record(z.string(), z.unknown()),
  stateFingerprint: z.string(),
  asks: z.object({ risk: z.enum(risks), why: z.string() }),
  dryRun: z.object({ possible: z.boolean(), summary: z.string(), details: z.record(z.string(), z.unknown()) }),
})
const observation = z.object({ holds: z.boolean().nullable(), observed: z.string() })

const database = sourceName.meta({ description: 'id of the server', examples: ['pg-1'] })

type Input = { database: string; reason: string } & Record<string, unknown>

const pathOf = (write: DatabaseWrite, name: string): string => `/api/v1/databases/${name}/${write}`

/**
 * Adds the subject of the write to a path. `start_replica` has no subject besides the server, so
 * its path stays unchanged.
 */
function askedAt(path: string, about: Record<string, unknown>): string {
  const pairs = Object.entries(about).map(([name, value]): [string, string] => [name, String(value)])
  return pairs.length === 0 ? path : `${path}?${new URLSearchParams(pairs)}`
}

async function prepare(
  write: DatabaseWrite,
  { database: name, reason: _, ...about }: Input,
  { core, signal }: ToolContext,
) {
  const answer = await core.get(askedAt(`${pathOf(write, name)}/preparation`, about), { ...(signal && { signal }) })
  if (!answer.ok) throw new DatabaseWriteError(answer.problem.detail || answer.problem.title)
  return preparation.parse(answer.data)
}

async function observe(
  write: DatabaseWrite,
  { database: name, reason: _, ...about }: Input,
  core: CorePort,
  stepKey: string,
) {
  const answer = await core.get(askedAt(`${pathOf(write, name)}/observation`, { ...about, key: stepKey }))
  return answer.ok ? observation.parse(answer.data) : null
}

function defineWrite(
  write: DatabaseWrite,
  facts: Pick<Tool, 'description' | 'risk' | 'proof'> & {
    withinSeconds: number
    isFirst?: boolean
    say(args: Input): string
  },
): Tool {
  const { withinSeconds, isFirst = false, say, ...rest } = facts
  return defineTool<Input, Record<string, unknown>>({
    name: write,
    ...rest,
    input: z.strictObject({ database, ...databaseWriteArguments[write].shape, reason }) as unknown as z.ZodType<Input>,
    output: z.looseObject({}),
    effect: 'write',
    reversible: false,
    names: { database: 'database' },
    needs: 'databases',
    firstFor: isFirst ? ['database'] : [],
    say: (output, args) => sayWrite(output, say(args)),
    discovers: () => [],
    prepare: (args, context) => prepare(write, args, context),
    // Limits the age of a dry run, because sessions change fast and the state on the approval card
    // is soon outdated.
    dryRunAgesAfterSeconds: 1_800,
    postcondition: { withinSeconds, check: (args, _output, { core, stepKey }) => observe(write, args, core, stepKey) },
    run: ({ database: name, ...args }, { core, stepKey, ifMatch, signal }) =>
      core.post(pathOf(write, name), args, {
        idempotencyKey: stepKey,
        ...(ifMatch ? { ifMatch } : {}),
        ...(signal && { signal }),
      }),
  })
}

export const databaseTools: Tool[] = [
  defineWrite('cancel_query', {
    description: 'Cancel the query that a session of a database runs now; the session stays.',
    risk: 'medium',
    proof: state('that query no longer runs'),
    withinSeconds: 15,
    say: ({ database: name, pid }) => `query of session ${pid} on ${name}`,
  }),
  defineWrite('terminate_session', {
    description:
      'End a session of a database, such as one idle in a transaction that others wait for; it is rolled back.',
    risk: 'medium',
    proof: state('that session has ended'),
    isFirst: true,
    withinSeconds: 30,
    say: ({ database: name, pid }) => `session ${pid} on ${name}`,
  }),
  defineWrite('drop_replication_slot', {
    description: 'Drop a replication slot that nobody uses and that keeps WAL. Its replica must be rebuilt.',
    risk: 'critical',
    proof: state('there is no such slot'),
    withinSeconds: 15,
    say: ({ database: name, slot }) => `slot ${slot} on ${name}`,
  }),
  defineWrite('start_replica', {
    description: 'Start a replica that was stopped, or whose replay is paused. It repairs no applier error.',
    risk: 'medium',
    proof: state('the replica replicates'),
    withinSeconds: 30,
    say: ({ database: name }) => `replica ${name}`,
  }),
]
