import { z } from 'zod'
import { formatCount } from '../../domain/format.ts'
import { idPattern } from '../../domain/kinds.ts'
import { defineSourceKind, type SourceKind } from '../kind.ts'
import { readAccess } from './access.ts'
import { type AskCluster, connectCluster } from './connect.ts'
import { readClusterContext } from './context.ts'
import { podDiagnosis } from './diagnosis.ts'
import { kubernetesEvents } from './event-tool.ts'
import { fieldsOf, wordOf } from './fields.ts'
import { getKubernetes } from './get.ts'
import { rolloutHistory } from './history.ts'
import { listCluster } from './inventory.ts'
import { findLacks, sayHeard } from './lacks.ts'
import { kubernetesLogs, readPodLog } from './logs.ts'
import { readClusterNow } from './now.ts'
import { nodeLoss } from './read-node-loss.ts'
import { stateOf } from './state.ts'
import { namespaceField } from './subject.ts'
import { objectsOf } from './view.ts'

/** A Kubernetes cluster as a source, which is read, listed and watched, but never changed. */

/** The most namespaces of a source. Each namespace needs a watch per kind. */
const maxNamespaces = 10

const namespaces = z
  .string()
  .max(700)
  .refine((text) => {
    const names = text.split(',').map((each) => each.trim())
    return names.length <= maxNamespaces && names.every((each) => namespaceField.safeParse(each).success)
  }, `must be up to ${maxNamespaces} names of namespaces, separated by commas`)

const names = z
  .string()
  .max(700)
  .refine(
    (text) => text.split(',').every((each) => idPattern.test(each.trim())),
    'must be names of a cluster, separated by commas',
  )

export const kubernetes: SourceKind = defineSourceKind<AskCluster>({
  kind: 'kubernetes',
  title: 'Kubernetes',
  options: z.strictObject({
    context: z.string().min(1).max(200).optional(),
    account: z.literal('in-cluster').optional(),
    namespaces: namespaces.optional(),
    /** Names that alerts use for the cluster, if they differ from the source's name. */
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
    return `the cluster answers: Kubernetes ${version}, ${counts.join(', ')}; ${sayHeard(view.states, Date.now())}`
  },
  warn: async (ask) => findLacks(await ask({ view: true }), Date.now()),
  contextOf: { cluster: readClusterContext },
  listResources: listCluster,
  stateOf: async (ask, resource) => stateOf(await ask({ view: true }), resource, Date.now()),
  clusterPage: { now: readClusterNow, log: readPodLog },
  isFollowed: true,
  is: 'cluster',
  tools: [podDiagnosis, getKubernetes, kubernetesEvents, kubernetesLogs, rolloutHistory, nodeLoss],
})
