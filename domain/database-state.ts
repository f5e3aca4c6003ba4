import { z } from 'zod'

/** A database server on its page, read now by its own source. Statements have no values. */

const session = z.object({
  pid: z.number(),
  began: z.string().nullable(),
  user: z.string().nullable(),
  application: z.string().optional(),
  from: z.string().optional(),
  database: z.string().optional(),
  state: z.string(),
  stateSince: z.string().optional(),
  statement: z.string(),
})
export type StateSession = z.infer<typeof session>

/** Samples for a chart: one a minute since the API process began, two hours at most. */
export const databaseSample = z.object({
  at: z.string(),
  connections: z.number(),
  waiting: z.number(),
  /** How far a replica is behind; on a primary, its furthest replica. Null: none replicates. */
  lagBytes: z.number().nullable(),
})
export type DatabaseSample = z.infer<typeof databaseSample>

export const databaseState = z.object({
  product: z.string(),
  version: z.string(),
  role: z.enum(['primary', 'replica']),
  connections: z.object({ used: z.number(), max: z.number(), reserved: z.number() }),
  waiting: z.number(),
  blocking: z.array(
    z.object({
      root: session.nullable(),
      blocks: z.number(),
      tree: z.array(z.object({ depth: z.number(), text: z.string() })),
    }),
  ),
  transactions: z.array(session.extend({ openSeconds: z.number() })),
  /** Each replica, slot or receiver in a sentence; `isIll`: it does not do what it is for. */
  replication: z.array(z.object({ text: z.string(), isIll: z.boolean() })),
  lagBytes: z.number().nullable(),
})
export type DatabaseState = z.infer<typeof databaseState>
