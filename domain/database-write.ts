import { z } from 'zod'

/** The four writes that repair a database. Each write has exactly one subject. */

export const databaseWrites = ['cancel_query', 'terminate_session', 'drop_replication_slot', 'start_replica'] as const
export type DatabaseWrite = (typeof databaseWrites)[number]

const session = {
  pid: z
    .number()
    .int()
    .min(1)
    .max(4_294_967_295)
    .describe('of the session')
    .meta({ examples: [4711] }),
  began: z
    .string()
    .min(8)
    .max(60)
    .describe('when the session began, as ask_database says')
    .meta({ examples: ['2026-11-21T01:46:02.000000Z'] }),
}

/** The name of a replication slot (https://www.postgresql.org/docs/current/warm-standby.html). */
const slot = z
  .string()
  .regex(/^[a-z0-9_]{1,63}$/, 'is not the name of a slot')
  .meta({ description: 'its name', examples: ['replica_1'] })

export const isDatabaseWrite = (tool: string): tool is DatabaseWrite =>
  (databaseWrites as readonly string[]).includes(tool)

/** The arguments of each write, except the server and the reason. */
export const databaseWriteArguments = {
  cancel_query: z.strictObject(session),
  terminate_session: z.strictObject(session),
  drop_replication_slot: z.strictObject({ slot }),
  start_replica: z.strictObject({}),
} as const satisfies Record<DatabaseWrite, z.ZodObject>

/** A write on a database, with its arguments. */
export type DatabaseAct = SessionAct | SlotAct | { write: 'start_replica' }
export type SessionAct = { write: 'cancel_query' | 'terminate_session'; pid: number; began: string }
export type SlotAct = { write: 'drop_replication_slot'; slot: string }
