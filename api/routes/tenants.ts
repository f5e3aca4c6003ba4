import { tenantById } from '../../db/inventory/platform-rows.ts'
import { tenantState } from '../../domain/platform.ts'
import { withHealth } from '../../effects/platform-state.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound } from '../http/problem.ts'
import { resourceParams, staleFlag } from './resources.ts'

export const tenantRoutes = endpoint({
  method: 'get',
  path: '/tenants/{id}',
  permission: 'read',
  tag: 'platform',
  summary: 'A tenant and its shard',
  params: resourceParams,
  answer: tenantState.extend(staleFlag),
  example: { id: 'tenant-1', name: 'Fjord Bank', shard: 'db-osl-1', status: 'degraded' },
  problems: [404],
  async run({ scope, params: { id } }, deps) {
    const fresh = await deps.state.refresh()
    const tenant = await tenantById(scope, id)
    if (!tenant) throw notFound(`tenant ${id}`)
    return withHealth(tenant, fresh)
  },
})
