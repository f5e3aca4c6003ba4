import { z } from 'zod'

export const role = z.enum(['viewer', 'operator', 'approver', 'admin', 'agent', 'ingest'])
export type Role = z.infer<typeof role>

/** What a role may do, as data: the route table names a permission, never a role. */
export const permission = z.enum([
  'read',
  'ingest',
  'record',
  'act_on_platform',
  'manage_incident',
  'decide',
  'read_config',
  'write_config',
  'manage_tokens',
])
export type Permission = z.infer<typeof permission>

/**
 * `agent` and `ingest` can neither decide nor configure, and no setting changes that: the table is code.
 */
export const permissions: Record<Role, readonly Permission[]> = {
  viewer: ['read', 'read_config'],
  operator: ['read', 'record', 'manage_incident', 'act_on_platform', 'read_config'],
  approver: ['read', 'record', 'manage_incident', 'act_on_platform', 'decide', 'read_config'],
  admin: [
    'read',
    'ingest',
    'record',
    'manage_incident',
    'act_on_platform',
    'decide',
    'read_config',
    'write_config',
    'manage_tokens',
  ],
  agent: ['read', 'record', 'act_on_platform'],
  ingest: ['ingest'],
}

/** Who is asking: an operator behind a token, or a machine role. */
export type Principal = { tokenId: string; role: Role; operatorId: string | null; name: string }
