import type { Hono } from 'hono'
import { z } from 'zod'
import { bodyOf, problem } from '../answers.ts'
import { describeMissing, missingServers, type Receiver, startMonitoring } from '../monitoring.ts'
import type { Lab } from '../state.ts'
import { applyGrants, describeDrawer, openDrawer } from './drawer.ts'
import { databaseNames } from './faults.ts'
import { missingDatabasePackages } from './programs.ts'

const grantsBody = z.strictObject({ server: z.enum(databaseNames), sql: z.string().min(1) })

/**
 * Adds routes that start the databases, describe them and grant rights. The code that breaks
 * databases and judges the end uses them.
 */
export function addDatabaseRoutes(app: Hono, lab: Lab, receiver: Receiver): void {
  app.post('/control/databases', async (c) => {
    const missing = [...missingServers(), ...missingDatabasePackages()]
    if (missing.length > 0) return problem(c, 422, describeMissing(missing))
    const [monitoring, drawer] = await Promise.all([startMonitoring(lab, receiver), openDrawer(lab)])
    lab.monitoring = monitoring
    lab.drawer = drawer
    return c.json(describeDrawer(lab, drawer), 201)
  })
  app.get('/control/databases', (c) =>
    lab.drawer ? c.json(describeDrawer(lab, lab.drawer)) : problem(c, 404, 'the databases of the lab do not run'),
  )
  app.post('/control/databases/grants', async (c) => {
    const body = await bodyOf(c, grantsBody)
    if (body instanceof Response) return body
    if (!lab.drawer) return problem(c, 404, 'the databases of the lab do not run')
    const refused = await applyGrants(lab.drawer, body.server, body.sql).then(() => null, String)
    return refused === null ? c.json({ applied: true }) : problem(c, 422, refused)
  })
}
