import type { Hono } from 'hono'
import { ping } from '../../db/connect.ts'
import type { QueueState } from '../../effects/runs.ts'
import { newerSchema, olderSchema } from '../../migrations/migrate.ts'
import type { ApiDeps, Env } from '../deps.ts'

type Check = { status: 'ok' | 'failed'; detail?: string; required: boolean }

/**
 * Routes for health. Live: the process runs. Ready: no other replica would do better, because this
 * replica is not stopping, and its database had the schema of this build. A database that cannot be
 * reached affects all replicas; this replica then responds with 503 and `Retry-After`, and the page
 * Health shows the failure.
 */
export function healthRoutes(app: Hono<Env>, deps: ApiDeps): void {
  /** Whether the database had the schema of this build when it last responded. */
  let hadSchema = false
  app.get('/livez', (c) => c.json({ status: 'ok' }))

  app.get('/readyz', async (c) => {
    if (deps.closing.aborted) return c.json({ status: 'stopping', checks: {} }, 503)
    const [database, migrations, temporal, queue] = await Promise.all([
      checked(
        () => !hadSchema,
        () => ping(deps.db),
      ),
      checked(
        () => !hadSchema,
        async () => {
          const misfit = (await newerSchema(deps.db)) ?? (await olderSchema(deps.db))
          hadSchema = misfit === null
          if (misfit) throw new Error(misfit)
        },
      ),
      checked(
        () => false,
        async () => {
          if (!(await deps.runs.isReachable(1_000))) throw new Error('not reached: alerts are accepted and wait')
        },
      ),
      checked(
        () => false,
        async () => {
          const lacks = lacksOf(await deps.runs.queue?.(1_000))
          if (lacks.length > 0) throw new Error(`missing in Temporal: ${lacks.join(', ')}; a worker creates them again`)
        },
      ),
    ])
    const checks = { database, migrations, temporal, queue }
    const ready = Object.values(checks).every((check) => !check.required || check.status === 'ok')
    return c.json({ status: ready ? 'ok' : 'failed', checks }, ready ? 200 : 503)
  })

  app.get('/metrics', async (c) => {
    const { register } = deps.metrics
    return c.body(await register.metrics(), 200, { 'content-type': register.contentType })
  })
}

/** Lists what Temporal lacks for the queue. Whether Temporal responds is a separate check. */
function lacksOf(queue: QueueState | null | undefined): string[] {
  if (!queue) return []
  return [
    ...(queue.schedule ? [] : ["the queue's Schedule"]),
    ...queue.missingAttributes.map((name) => `search attribute ${name}`),
  ]
}

/** Runs one check and reports its result. `isRequired` is called only after the check. */
async function checked(isRequired: () => boolean, check: () => Promise<void>): Promise<Check> {
  try {
    await check()
    return { status: 'ok', required: isRequired() }
  } catch (error) {
    // Shows only the code of a database error, because its text may contain hosts and users.
    const code = (error as { code?: unknown }).code
    const detail = typeof code === 'string' ? code : error instanceof Error ? error.message.slice(0, 500) : 'failed'
    return { status: 'failed', detail, required: isRequired() }
  }
}
