import type { Hono } from 'hono'
import { ping } from '../../db/connect.ts'
import type { QueueState } from '../../effects/runs.ts'
import { newerSchema, pendingMigrations } from '../../migrations/migrate.ts'
import type { ApiDeps, Env } from '../deps.ts'

const howToMigrate = 'apply the migrations with "nightshift start", or in a production with "node start/prepare.ts"'

type Check = { status: 'ok' | 'failed'; detail?: string; required: boolean }

/** Alive means the process; ready means the database with every migration. Temporal is reported and not required. */
export function healthRoutes(app: Hono<Env>, deps: ApiDeps): void {
  app.get('/livez', (c) => c.json({ status: 'ok' }))

  app.get('/readyz', async (c) => {
    if (deps.closing.aborted) return c.json({ status: 'stopping', checks: {} }, 503)
    const [database, migrations, temporal, queue] = await Promise.all([
      checked(true, () => ping(deps.db)),
      checked(true, async () => {
        const newer = await newerSchema(deps.db)
        if (newer) throw new Error(newer)
        const pending = await pendingMigrations(deps.db)
        if (pending.length > 0) throw new Error(`${howToMigrate}; not applied: ${pending.join(', ')}`)
      }),
      checked(false, async () => {
        if (!(await deps.runs.isReachable(1_000))) throw new Error('not reached: alerts are taken in and wait')
      }),
      checked(false, async () => {
        const lacks = lacksOf(await deps.runs.queue?.(1_000))
        if (lacks.length > 0) throw new Error(`missing in Temporal: ${lacks.join(', ')}; a worker makes them again`)
      }),
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

/** What Temporal lacks for the queue to run. Whether it can be reached is another check. */
function lacksOf(queue: QueueState | null | undefined): string[] {
  if (!queue) return []
  return [
    ...(queue.schedule ? [] : ["the queue's Schedule"]),
    ...queue.missingAttributes.map((name) => `search attribute ${name}`),
  ]
}

async function checked(required: boolean, check: () => Promise<void>): Promise<Check> {
  try {
    await check()
    return { status: 'ok', required }
  } catch (error) {
    // The text of a database error may name hosts and users: its code is enough here.
    const code = (error as { code?: unknown }).code
    const detail = typeof code === 'string' ? code : error instanceof Error ? error.message.slice(0, 500) : 'failed'
    return { status: 'failed', detail, required }
  }
}
