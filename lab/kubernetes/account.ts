import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { writeWhole } from '../children.ts'
import type { Lab } from '../state.ts'
import type { ApiObject, ClusterApi } from './api.ts'
import type { LabCluster } from './drawer.ts'

/** Kinds of objects that a manifest of rights may contain, with the API path of each kind. */
const places: Record<string, (namespace: string) => string> = {
  Namespace: () => '/api/v1/namespaces',
  ServiceAccount: (namespace) => `/api/v1/namespaces/${namespace}/serviceaccounts`,
  ClusterRole: () => '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: () => '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  Role: (namespace) => `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles`,
  RoleBinding: (namespace) => `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`,
}

/**
 * Applies a manifest of an account and its rights as an administrator, and creates a token of the
 * account. Returns the paths of the token and of the CA certificate, for the settings of a source.
 */
export async function giveRights(
  lab: Lab,
  { api, authority }: LabCluster,
  manifest: string,
): Promise<{ token: string; authority: string }> {
  const objects = parseAllDocuments(manifest).map((document) => document.toJS() as ApiObject)
  for (const object of objects) await apply(api, object)
  const account = objects.find(({ kind }) => kind === 'ServiceAccount')
  if (!account) throw new Error('the manifest has no ServiceAccount')
  const { name, namespace } = account.metadata
  const asked = { spec: { expirationSeconds: 24 * 3_600 } }
  const { status } = await api.create(`${places.ServiceAccount?.(namespace)}/${name}/token`, asked)
  const directory = join(lab.dir, 'cluster-credentials')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const files = { token: join(directory, name), authority: join(directory, 'ca.crt') }
  writeWhole(files.token, status.token)
  writeWhole(files.authority, authority.certificate)
  return files
}

/** Creates an object of the cluster, or replaces it. */
async function apply(api: ClusterApi, object: ApiObject): Promise<void> {
  const path = places[object.kind]?.(object.metadata.namespace ?? '')
  if (!path) throw new Error(`a manifest of rights must not contain a ${object.kind}`)
  const there = await api.find(`${path}/${object.metadata.name}`)
  if (!there) return void (await api.create(path, object))
  if (object.kind.endsWith('Role'))
    await api.change(`${path}/${object.metadata.name}`, (role) => Object.assign(role, { rules: object.rules }))
}
