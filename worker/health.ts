import { Hono } from 'hono'
import { Registry } from 'prom-client'
import type { Env } from '../api/deps.ts'
import { sharedMetrics } from '../api/http/metrics.ts'
import { declaredMethods } from '../api/http/middleware.ts'
import { answerProblem, toProblem } from '../api/http/problem.ts'
import type { Db } from '../db/connect.ts'

/**
 * Serves the health of the worker process: whether it is alive and ready, and counters of its log.
 */
export function healthApp(db: Db, states: () => readonly string[]): Hono<Env> {
  const register = new Registry()
  sharedMetrics(db, [register])
  const app = new Hono<Env>()
  app.onError((error, c) => answerProblem(c, toProblem(error)))
  const { noRoute } = declaredMethods(app)
  app.notFound((c) => answerProblem(c, noRoute(c)))

  app.get('/livez', (c) => c.json({ status: 'ok' }))
  app.get('/readyz', (c) => {
    const workers = states()
    const ready = workers.every((state) => state === 'RUNNING')
    return c.json({ status: ready ? 'ok' : 'starting', workers }, ready ? 200 : 503)
  })
  app.get('/metrics', async (c) => c.body(await register.metrics(), 200, { 'content-type': register.contentType }))
  return app
}
