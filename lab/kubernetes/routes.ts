import type { Hono } from 'hono'
import { z } from 'zod'
import { bodyOf, problem } from '../answers.ts'
import { describeMissing, missingServers, type Receiver, startMonitoring } from '../monitoring.ts'
import type { Lab } from '../state.ts'
import { giveRights } from './account.ts'
import { describeCluster, openCluster } from './drawer.ts'
import { describeLack, whatClusterLacks } from './programs.ts'
import { watchCluster } from './watch.ts'

const rightsBody = z.strictObject({
  manifest: z
    .string()
    .min(1)
    .max(32 * 1024),
})

/**
 * Adds the route that starts the cluster and returns its address. The code that breaks the cluster
 * and judges the end uses it.
 */
export function addClusterRoutes(app: Hono, lab: Lab, receiver: Receiver): void {
  app.post('/control/kubernetes', async (c) => {
    const servers = missingServers()
    const lacks = [...(servers.length > 0 ? [describeMissing(servers)] : []), ...describeLack(whatClusterLacks())]
    if (lacks.length > 0) return problem(c, 422, lacks.join('; '))
    const [monitoring, cluster] = await Promise.all([startMonitoring(lab, receiver), openCluster(lab)])
    if (!lab.children.get('kube-state-metrics')) await watchCluster(lab, cluster)
    lab.monitoring = monitoring
    lab.cluster = cluster
    return c.json(describeCluster(cluster), 201)
  })
  app.post('/control/kubernetes/rights', async (c) => {
    const body = await bodyOf(c, rightsBody)
    if (body instanceof Response) return body
    if (!lab.cluster) return problem(c, 404, 'the cluster does not run')
    return c.json(await giveRights(lab, lab.cluster, body.manifest))
  })
  app.get('/control/kubernetes', (c) =>
    lab.cluster ? c.json(describeCluster(lab.cluster)) : problem(c, 404, 'the cluster does not run'),
  )
}
