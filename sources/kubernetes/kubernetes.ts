import { z } from 'zod'
import { ClusterError } from '../../clients/kubernetes/server.ts'
import { formatCount, formatSpan } from '../../domain/format.ts'
import { idPattern } from '../../domain/kinds.ts'
import { defineSourceKind, type SourceKind } from '../kind.ts'
import { readAccess } from './access.ts'
import { type AskCluster, connectCluster, missingRule, type SeenCluster } from './connect.ts'
import { readClusterContext } from './context.ts'
import { podDiagnosis } from './diagnosis.ts'
import { kubernetesEvents } from './event-tool.ts'
import { fieldsOf, wordOf } from './fields.ts'
import { getKubernetes } from './get.ts'
import { rolloutHistory } from './history.ts'
import { listCluster } from './inventory.ts'
import { kubernetesLogs } from './logs.ts'
import { nodeLoss } from './read-node-loss.ts'
import { stateOf } from './state.ts'
import { namespaceField } from './subject.ts'
import { objectsOf } from './view.ts'

/** A Kubernetes cluster as a source: looked at, listed and watched, and never written to. */

/** Each has a watch for each kind. */
const maxNamespaces = 10

const namespaces = z
  .string()
  .max(700)
  .refine((text) => {
    const names = text.split(',').map((each) => each.trim())
    return names.length <= maxNamespaces && names.every((each) => namespaceField.safeParse(each).success)
  }, `is up to ${maxNamespaces} names of namespaces by commas`)

const names = z
  .string()
  .max(700)
  .refine((text) => text.split(',').every((each) => idPattern.test(each.trim())), 'is names of a cluster by commas')

export const kubernetes: SourceKind = defineSourceKind<AskCluster>({
  kind: 'kubernetes',
  title: 'Kubernetes',
  options: z.strictObject({
    context: z.string().min(1).max(200).optional(),
    account: z.literal('in-cluster').optional(),
    namespaces: namespaces.optional(),
    /** What alerts call the cluster, where that is not the name of the source. */
    names: names.optional(),
  }),
  connect: connectCluster,
  check: (source, directory) => void readAccess(source, directory),
  async probe(ask) {
    const version = wordOf(fieldsOf(await ask({ version: true })).gitVersion) || 'of an unknown version'
    const { view, namespaces } = await ask({ view: true })
    const counts = [
      ...(namespaces === null ? [formatCount(objectsOf(view, 'Node').length, 'node')] : []),
      formatCount(objectsOf(view, 'Pod').length, 'pod'),
    ]
    return `it answers: Kubernetes ${version}, ${counts.join(', ')}; last heard of ${sayHeard(view.states, Date.now())} ago`
  },
  warn: async (ask) => findLacks(await ask({ view: true }), Date.now()),
  contextOf: { cluster: readClusterContext },
  listResources: listCluster,
  stateOf: async (ask, resource) => stateOf(await ask({ view: true }), resource),
  isFollowed: true,
  is: 'cluster',
  tools: [podDiagnosis, getKubernetes, kubernetesEvents, kubernetesLogs, rolloutHistory, nodeLoss],
})

const sayHeard = (states: readonly { heardMs: number | null }[], nowMs: number): string =>
  formatSpan(nowMs - Math.max(...states.map(({ heardMs }) => heardMs ?? 0)))

/** A watch tells about once a minute that it lives. */
const quietMs = 300_000

/** What is not seen of the cluster, with the rule or the trouble that is in the way; null: all is followed. */
function findLacks({ view: { states } }: SeenCluster, nowMs: number): string | null {
  const isForbidden = (error: unknown) => error instanceof ClusterError && error.code === 'forbidden'
  const forbidden = states.filter(({ trouble }) => trouble && isForbidden(trouble.error))
  const quiet = states.filter(
    ({ trouble, heardMs }) => trouble && !isForbidden(trouble.error) && nowMs - (heardMs ?? 0) > quietMs,
  )
  const unread = states.reduce((sum, each) => sum + each.unread, 0)
  const kindsOf = (of: typeof states) => [...new Set(of.map(({ kind }) => kind))]
  const lacks = [
    ...(forbidden.length > 0
      ? [
          `it may not list ${kindsOf(forbidden).join(', ')}: its role lacks ${kindsOf(forbidden)
            .map((read) => missingRule({ read }))
            .join(' and ')}`,
        ]
      : []),
    ...(quiet.length > 0
      ? [`it does not follow ${kindsOf(quiet).join(', ')}: last heard of ${sayHeard(quiet, nowMs)} ago`]
      : []),
    ...(unread > 0 ? [`${formatCount(unread, 'object')} could not be read`] : []),
  ]
  return lacks.length === 0 ? null : lacks.join('; ')
}
