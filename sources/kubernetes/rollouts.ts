import { SourceError } from '../kind.ts'
import type { AskCluster } from './connect.ts'
import { type Fields, fieldsOf, listOf, numberOf, sentenceOf, timeOf, wordOf } from './fields.ts'
import type { KeptWorkload } from './objects.ts'
import { readPages } from './pages.ts'
import { referencesOf } from './pod.ts'
import { changesBetween, fieldsOfTemplate } from './template.ts'
import type { ClusterView } from './view.ts'

/**
 * Changes of a workload by revision, the newest first, and changes of its ConfigMaps, which make no
 * revision.
 */

export type Rollout = {
  revision: number
  madeMs: number
  /** Changes since the revision before. Null if the cluster no longer keeps the revision before. */
  changed: string[] | null
  /**
   * True if an older revision is in use again. The revision's time is then the time of its first
   * use.
   */
  isTakenUpAgain: boolean
  pods: { ready: number; wanted: number } | null
  /** The name of the revision's ReplicaSet. */
  set: string | null
}

export type Rollouts = {
  rollouts: Rollout[]
  /** The last change of the workload's own fields, as the server recorded it. */
  changedBy: { manager: string; atMs: number } | null
  configMaps: { name: string; changedMs: number | null; manager: string; keys: number }[]
  /** The limits of a job on time and retries, also those that are not set. */
  bounds: string[]
}

/** Explains why the changes of a revision are unknown. */
export const sayFirst = (revision: number): string =>
  revision <= 1 ? 'it is the first revision' : 'the revision before is not kept'

const maxRevisions = 6
const maxConfigMaps = 5
/** Limits of a read of revisions. A workload keeps ten revisions by default. */
const revisionBounds = { pageSize: 200, maxPages: 25 }

type Revision = Pick<Rollout, 'revision' | 'madeMs' | 'pods' | 'set'> & { template: unknown }

/** Reads a workload's newest changes, comparing so many `revisions`. Throws SourceError. */
export async function readRollouts(
  ask: AskCluster,
  view: ClusterView,
  workload: KeptWorkload,
  revisions = maxRevisions,
): Promise<Rollouts> {
  const { kind, namespace, name } = workload
  const object = fieldsOf(await ask({ read: kind, namespace, name }))
  const known = await listRevisions(ask, view, workload, revisions + 1)
  const rollouts = known.slice(0, revisions).map((each, at): Rollout => {
    const before = known[at + 1]
    return {
      revision: each.revision,
      madeMs: each.madeMs,
      changed: before ? changesBetween(fieldsOfTemplate(before.template), fieldsOfTemplate(each.template)) : null,
      isTakenUpAgain: known.some((other) => other.revision < each.revision && other.madeMs > each.madeMs),
      pods: each.pods,
      set: each.set,
    }
  })
  return {
    rollouts,
    changedBy: changeOf(object),
    configMaps: await readConfigMaps(ask, namespace, templateOf(object)),
    bounds: kind === 'Job' ? boundsOf(fieldsOf(object.spec)) : [],
  }
}

const boundsOf = (spec: Fields): string[] =>
  ['activeDeadlineSeconds', 'backoffLimit'].map((name) =>
    spec[name] === undefined ? `${name} is not set` : `${name} is ${numberOf(spec[name])}`,
  )

function templateOf(object: Fields): unknown {
  const spec = fieldsOf(object.spec)
  return spec.template ?? fieldsOf(fieldsOf(spec.jobTemplate).spec).template
}

/** Lists the revisions, the newest first. */
async function listRevisions(
  ask: AskCluster,
  view: ClusterView,
  { kind, namespace, uid }: KeptWorkload,
  most: number,
): Promise<Revision[]> {
  if (kind === 'Deployment') {
    const sets = [...(view.owned.get(uid) ?? [])]
      .flatMap((each) => view.objects.get(each) ?? [])
      .filter((each): each is KeptWorkload => each.kind === 'ReplicaSet')
      .sort((a, b) => b.revision - a.revision)
      .slice(0, most)
    const found: Revision[] = []
    for (const { name, revision, createdMs, ready, wanted } of sets) {
      const set = await ask({ read: 'ReplicaSet', namespace, name }).catch(whereGone)
      if (set === null) continue
      found.push({
        revision,
        madeMs: createdMs,
        template: fieldsOf(fieldsOf(set).spec).template,
        pods: { ready, wanted },
        set: name,
      })
    }
    return found
  }
  if (kind !== 'StatefulSet' && kind !== 'DaemonSet') return []
  const question = { read: 'ControllerRevision' as const, namespace }
  const { items, isCut } = await readPages(ask, question, revisionBounds, (each): Revision | null => {
    const { metadata, revision, data } = each
    if (!listOf(fieldsOf(metadata).ownerReferences).some((owner) => owner.uid === uid)) return null
    const madeMs = timeOf(fieldsOf(metadata).creationTimestamp) ?? 0
    return {
      revision: numberOf(revision),
      madeMs,
      template: fieldsOf(fieldsOf(data).spec).template,
      pods: null,
      set: null,
    }
  })
  // Refuses a partial list, because the newest revision may be missing.
  if (isCut) throw new SourceError('TOO_LARGE', `there are more revisions in ${namespace} than are read`)
  return items.sort((a, b) => b.revision - a.revision).slice(0, most)
}

/** Returns null for an object that was not found, because it was deleted after it was listed. */
function whereGone(error: unknown): null {
  if (error instanceof SourceError && error.code === 'REJECTED') return null
  throw error
}

/** Returns the newest change of an object's fields outside of its status, and who made it. */
export function changeOf(object: Fields): { manager: string; atMs: number } | null {
  const changes = listOf(fieldsOf(object.metadata).managedFields)
    .filter(({ subresource }) => !subresource)
    .map(({ manager, time }) => ({ manager: sentenceOf(manager, 60), atMs: timeOf(time) ?? 0 }))
    .filter(({ manager, atMs }) => atMs > 0 && manager !== 'kube-controller-manager')
    .sort((a, b) => b.atMs - a.atMs)
  return changes[0] ?? null
}

async function readConfigMaps(
  ask: AskCluster,
  namespace: string | null,
  template: unknown,
): Promise<Rollouts['configMaps']> {
  const { configMaps } = referencesOf(fieldsOf(template).spec)
  const found: Rollouts['configMaps'] = []
  for (const name of configMaps.slice(0, maxConfigMaps)) {
    const map = await ask({ read: 'ConfigMap', namespace, name }).catch((error: unknown) => {
      // Leaves out a ConfigMap that is missing or forbidden.
      if (error instanceof SourceError && (error.code === 'REJECTED' || error.code === 'FORBIDDEN')) return null
      throw error
    })
    const change = map === null ? null : changeOf(fieldsOf(map))
    found.push({
      name: wordOf(name),
      changedMs: change?.atMs ?? null,
      manager: map === null ? 'it does not exist, or may not be read' : (change?.manager ?? ''),
      keys: map === null ? 0 : Object.keys(fieldsOf(fieldsOf(map).data)).length,
    })
  }
  return found.sort((a, b) => (b.changedMs ?? 0) - (a.changedMs ?? 0))
}
