import { z } from 'zod'

/**
 * The state of a database server for its page, read from the server for this response. SQL
 * statements in it contain no values.
 */

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

/** A sample for a chart: one for each minute since the API process started, at most two hours. */
export const databaseSample = z.object({
  at: z.string(),
  connections: z.number(),
  waiting: z.number(),
  /**
   * The lag of this replica, or on a primary, the lag of the replica that is furthest behind. Null
   * if there is no replication.
   */
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
  /**
   * One sentence for each replica, slot or receiver. `isIll`: this replica, slot or receiver does
   * not work.
   */
  replication: z.array(z.object({ text: z.string(), isIll: z.boolean() })),
  lagBytes: z.number().nullable(),
})
export type DatabaseState = z.infer<typeof databaseState>
