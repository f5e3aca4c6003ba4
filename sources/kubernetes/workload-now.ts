import type { ClusterFact, ClusterNow, PodContainer, PodGroup, ShownCondition } from '../../domain/cluster-now.ts'
import { toList, toText, toWords } from '../../domain/say.ts'
import type { AskCluster, SeenCluster } from './connect.ts'
import { diagnose, type PodDiagnosis } from './diagnosis.ts'
import { fieldsOf, toIso } from './fields.ts'
import { emptyNow, fact, sayPodState, showConditionsOf, showEvents } from './now-parts.ts'
import { conditionsIn, type KeptPod, type KeptWorkload, sayRolling } from './objects.ts'
import type { ShownContainer } from './pod.ts'
import { type Rollouts, sayFirst } from './rollouts.ts'
import { nameOfWorkload, ofWorkload } from './subject.ts'

/** Reads a workload for its page: a diagnosis with more revisions, and the pods by state. */

const maxRevisions = 6
const maxChanges = 20
const maxGroups = 20
const maxInGroup = 20
const maxContainers = 10

/** Reads the present state of a workload. Throws SourceError. */
export async function readWorkloadNow(
  ask: AskCluster,
  cluster: SeenCluster,
  workload: KeptWorkload,
  nowMs: number,
): Promise<ClusterNow> {
  const { kind, namespace, name } = workload
  const object = fieldsOf(await ask({ read: kind, namespace, name }))
  const subject = ofWorkload(cluster.view, workload, null)
  const found = await diagnose(ask, cluster, subject, nowMs, maxRevisions)
  const { shown, lastLines, rollouts, events, partial } = found
  return {
    ...emptyNow(cluster, 'workload', nowMs),
    facts: factsOf(workload, found),
    conditions: [
      ...showConditionsOf(nameOfWorkload(workload), conditionsIn(fieldsOf(object.status)), workload.ill),
      ...conditionsBelow(found, subject.pod),
    ],
    pods: groupPods(subject.pods),
    worst:
      subject.pod && shown
        ? {
            name: subject.pod.name,
            state: shown.state,
            containers: shown.containers.slice(0, maxContainers).map(showContainer),
            lastLines,
          }
        : null,
    rollouts: rollouts ? showRollouts(rollouts) : [],
    changes: rollouts ? sayChanges(rollouts) : [],
    ...showEvents(events),
    partial,
  }
}

function factsOf(workload: KeptWorkload, { head }: PodDiagnosis): ClusterFact[] {
  const { kind, wanted, ready, isPaused, isDone } = workload
  const isOfRuns = kind === 'Job' || kind === 'CronJob'
  return [
    fact('Workload', nameOfWorkload(workload)),
    ...(kind === 'CronJob'
      ? []
      : [fact(isOfRuns ? 'Completed' : 'Ready', `${ready} of ${wanted}`, !isOfRuns && !isDone && ready < wanted)]),
    ...sayRolling(workload).map((text) => fact('Rollout', text, true)),
    ...(isPaused
      ? [fact('Paused', 'the workload is not rolled out, or not run, until a person resumes it', true)]
      : []),
    ...toWords(head.services).map((text) => fact('Service', text, / selects no pod| sends to 0 ready/.test(text))),
    ...toList(head.claims).map((each) =>
      fact('Claim', `${toText(each.name)} is ${toText(each.state)}, class ${toText(each.class)}`, true),
    ),
    ...(head.nodeCordoned ? [fact('Node', 'the node of its worst pod is cordoned', true)] : []),
  ]
}

/** Lists unhealthy conditions of the worst pod and its node. */
function conditionsBelow({ head, shown }: PodDiagnosis, pod: KeptPod | null): ShownCondition[] {
  const show = (of: string, given: Record<string, unknown>): ShownCondition => ({
    of,
    type: toText(given.type),
    is: given.is === 'True' || given.is === 'False' ? given.is : 'Unknown',
    isIll: true,
    since: given.since === undefined ? null : toText(given.since),
    reason: toText(given.reason ?? ''),
    message: toText(given.message ?? ''),
  })
  return [
    ...(shown?.conditions ?? []).map((each) => show(`Pod ${pod?.name}`, each)),
    ...toList(head.nodeConditions).map((each) => show(`Node ${pod?.node}`, each)),
  ]
}

/** Groups pods by state: unhealthy groups first, then the largest groups. */
function groupPods(pods: readonly KeptPod[]): PodGroup[] {
  return [...Map.groupBy(pods, sayPodState)]
    .map(([state, members]) => ({
      state,
      isWell: members.every(({ isReady, isDone, isFailed }) => isReady || (isDone && !isFailed)),
      count: members.length,
      pods: members.slice(0, maxInGroup).map(({ name, node, restarts }) => ({ name, node, restarts })),
    }))
    .sort((a, b) => Number(a.isWell) - Number(b.isWell) || b.count - a.count)
    .slice(0, maxGroups)
}

function showContainer(given: ShownContainer): PodContainer {
  const { name, image, is, ready, message = '', restarts, ended, before, requests, limits, probes } = given
  const ends = [
    { isBefore: false, end: ended },
    { isBefore: true, end: before },
  ].flatMap(({ isBefore, end }) =>
    end
      ? [
          {
            isBefore,
            reason: end.reason,
            exitCode: end.exitCode,
            at: end.finished ?? null,
            ranFor: end.ranFor ?? '',
            message: end.message ?? '',
          },
        ]
      : [],
  )
  const amounts = (what: string, of: Record<string, string> | undefined) =>
    of
      ? [
          `${what} ${Object.entries(of)
            .map((pair) => pair.join(' '))
            .join(', ')}`,
        ]
      : []
  const isWell = (is === 'running' && ready !== false) || (is === 'ended' && ended?.exitCode === 0)
  return {
    name,
    image,
    is: is === 'running' && ready === false ? 'running, not ready' : is,
    isWell,
    message,
    restarts,
    ends,
    rest: [
      ...amounts('requests', requests),
      ...amounts('limits', limits),
      ...Object.entries(probes ?? {}).map(([probe, said]) => `${probe}: ${said}`),
    ],
  }
}

const showRollouts = ({ rollouts }: Rollouts): ClusterNow['rollouts'] =>
  rollouts.map(({ revision, madeMs, isTakenUpAgain, set, pods, changed }) => ({
    revision,
    at: toIso(madeMs),
    isTakenUpAgain,
    set,
    ready: pods && pods.wanted > 0 ? `${pods.ready} of ${pods.wanted} ready` : null,
    changed: changed?.slice(0, maxChanges) ?? null,
    first: sayFirst(revision),
  }))

/**
 * Lists changes outside of the pod template: of the workload's other fields, of its ConfigMaps, and
 * the limits of a job.
 */
const sayChanges = ({ changedBy, configMaps, bounds }: Rollouts): ClusterNow['changes'] => [
  ...(changedBy
    ? [{ text: `Fields of the workload were last changed by ${changedBy.manager}`, at: toIso(changedBy.atMs) }]
    : []),
  ...configMaps.map(({ name, changedMs, manager }) =>
    changedMs === null
      ? { text: `ConfigMap ${name}: ${manager || 'time of change not known'}`, at: null }
      : { text: `ConfigMap ${name} was changed by ${manager}`, at: toIso(changedMs) },
  ),
  ...bounds.map((text) => ({ text, at: null })),
]
