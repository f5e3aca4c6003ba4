/**
 * The rights that a source of a cluster needs: only get, list and watch. The rights are printed for
 * an administrator, shipped as files, and named in a message if one of them is missing.
 */

export const clusterVerbs = ['get', 'list', 'watch'] as const

type RightsRule = { group: string; resources: readonly string[]; verbs: readonly string[] }

/** Rules for resources within a namespace. Secrets and custom resources are never included. */
const namespaced: readonly RightsRule[] = [
  {
    group: '',
    resources: ['pods', 'services', 'persistentvolumeclaims', 'configmaps', 'resourcequotas', 'events'],
    verbs: clusterVerbs,
  },
  { group: '', resources: ['pods/log'], verbs: ['get'] },
  {
    group: 'apps',
    resources: ['deployments', 'replicasets', 'statefulsets', 'daemonsets', 'controllerrevisions'],
    verbs: clusterVerbs,
  },
  { group: 'batch', resources: ['jobs', 'cronjobs'], verbs: clusterVerbs },
  { group: 'networking.k8s.io', resources: ['ingresses'], verbs: clusterVerbs },
  { group: 'policy', resources: ['poddisruptionbudgets'], verbs: clusterVerbs },
]

const ofCluster: readonly RightsRule[] = [
  { group: '', resources: ['nodes', 'namespaces', 'persistentvolumes'], verbs: clusterVerbs },
]

const listOf = (words: readonly string[]): string => `[${words.map((word) => JSON.stringify(word)).join(', ')}]`

/** Formats one rule of a role. */
export const sayRule = ({ group, resources, verbs }: RightsRule): string =>
  `{ apiGroups: ${listOf([group])}, resources: ${listOf(resources)}, verbs: ${listOf(verbs)} }`

const rulesOf = (rules: readonly RightsRule[]): string => rules.map((rule) => `  - ${sayRule(rule)}`).join('\n')

const account = { name: 'nightshift-read', namespace: 'nightshift' }

const accountText = `apiVersion: v1
kind: Namespace
metadata: { name: ${account.namespace} }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: ${account.name}, namespace: ${account.namespace} }`

const subjects = `subjects:
  - { kind: ServiceAccount, name: ${account.name}, namespace: ${account.namespace} }`

/**
 * Builds the role that an administrator creates: one role for the whole cluster, or one role for
 * each named namespace.
 */
export function clusterRights(namespaces: readonly string[] = []): string {
  if (namespaces.length === 0)
    return `${accountText}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: ${account.name} }
rules:
${rulesOf([...ofCluster, ...namespaced])}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: ${account.name} }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${account.name} }
${subjects}
`
  const roles = namespaces.map(
    (namespace) => `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: ${account.name}, namespace: ${namespace} }
rules:
${rulesOf(namespaced)}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: ${account.name}, namespace: ${namespace} }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: ${account.name} }
${subjects}
`,
  )
  return `${accountText}\n${roles.join('')}`
}

/** The command that creates the token of the account `nightshift-read`. */
export const tokenCommand = `kubectl -n ${account.namespace} create token ${account.name} --duration=8760h`
