import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import type { ResourceRef } from '../../../domain/registry.ts'
import { type ClusterFault, clusterFaultRows } from '../../../lab/kubernetes/faults.ts'
import { readContext } from '../../../sources/kinds.ts'
import type { ClusterKind } from '../../../sources/kubernetes/kinds.ts'
import { type ClusterQuestion, clusterQuestions } from '../../real/kubernetes/questions.ts'
import type { Recorded } from '../../real/kubernetes/record.ts'
import type { ClusterObject } from '../../support/cluster-server.ts'
import { useCluster } from './site.ts'

/**
 * The sixty questions about the faults of the lab's cluster, over what its real API answered: how
 * many the first turn answers, and how many two calls do.
 */

const { stage, read, probe } = useCluster()

const recordedOf = (fault: ClusterFault): Recorded =>
  JSON.parse(readFileSync(join(import.meta.dirname, `../../data/kubernetes/${fault}.json`), 'utf8'))

/**
 * The namespace of the fault, the resource that its alert is about, and the calls that somebody
 * would make next.
 */
function aboutOf(fault: ClusterFault, { facts, objects }: Recorded) {
  const [namespace = 'shop', named] = clusterFaultRows[fault].on.split('/')
  const name = facts.object ?? named ?? ''
  const kindOf = (kind: string) => objects[kind]?.some(({ metadata }) => metadata.name === name)
  const kind = named === undefined ? 'node' : fault === 'k8s_wrong_selector' ? 'cluster_service' : 'workload'
  const workload = kindOf('Deployment') ? 'deployment' : 'job'
  const ref: ResourceRef & { name: string } =
    kind === 'node'
      ? { kind, id: `prod:${facts.node ?? name}`, name: facts.node ?? name }
      : { kind, id: kind === 'workload' ? `prod:${namespace}:${workload}:${name}` : `prod:${namespace}:${name}`, name }
  return { namespace: named === undefined ? 'shop' : namespace, name, ref }
}

type Call = [string, Record<string, unknown>]

function callsOf({ asks, fault }: ClusterQuestion, { namespace, name, ref }: ReturnType<typeof aboutOf>): Call[] {
  const at = { namespace, name }
  const one: Call = [
    'get_kubernetes',
    ref.kind === 'node'
      ? { kind: 'Node', name: ref.name }
      : { ...at, kind: ref.kind === 'cluster_service' ? 'Service' : ref.id.includes(':job:') ? 'Job' : 'Deployment' },
  ]
  if (fault === 'k8s_node_not_ready') return [one, ['kubernetes_events', { kind: 'Node', name: ref.name }]]
  if (asks === 'change' || asks === 'more') return [['rollout_history', at], one]
  return [['pod_diagnosis', at], asks === 'why' ? ['kubernetes_logs', { ...at, window: '24h' }] : one]
}

const holdsAll = (texts: string[], facts: Record<string, string>, holds: string[]) =>
  holds.every((each) => facts[each] !== undefined && texts.join('\n').includes(facts[each]))

test('ninety-five of a hundred are answered in two calls of 2 kB, most by the first turn alone', async () => {
  const missed: string[] = []
  let byContext = 0
  let faults = new Map<ClusterFault, ClusterQuestion[]>()
  for (const each of clusterQuestions) faults = faults.set(each.fault, [...(faults.get(each.fault) ?? []), each])
  for (const [fault, questions] of faults) {
    const recorded = recordedOf(fault)
    stage.cluster.clear()
    for (const [kind, objects] of Object.entries(recorded.objects))
      for (const object of objects) stage.cluster.put(kind as ClusterKind, object as ClusterObject)
    for (const [key, text] of Object.entries(recorded.logs)) stage.cluster.logs.set(key, text)
    stage.forget()
    await probe()
    const about = aboutOf(fault, recorded)
    const context = await readContext(
      'cluster',
      [stage.source],
      { ...about.ref, pod: recorded.facts.pod ?? null },
      stage.states,
    )
    const first = JSON.stringify(context)
    expect(
      Buffer.byteLength(JSON.stringify(context.flatMap((each) => ('facts' in each ? each.facts : [])))),
    ).toBeLessThanOrEqual(1_500)
    for (const question of questions) {
      const texts = [plain(first)]
      if (holdsAll(texts, recorded.facts, question.holds)) {
        byContext += 1
        continue
      }
      let isAnswered = false
      for (const [tool, args] of callsOf(question, about)) {
        const { summary } = await read(tool, args).catch((error: Error) => ({ summary: { failed: error.message } }))
        expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(2_000)
        texts.push(plain(JSON.stringify(summary)))
        isAnswered = holdsAll(texts, recorded.facts, question.holds)
        if (isAnswered) break
      }
      const lacks = question.holds.filter((each) => !texts.join('\n').includes(recorded.facts[each] ?? '\u0000'))
      if (!isAnswered)
        missed.push(`${fault} ${question.asks}: ${lacks.map((each) => `${each} (${recorded.facts[each]})`).join(', ')}`)
    }
  }
  if (process.env.SHOW) console.log(byContext, missed)
  expect(missed.length).toBeLessThanOrEqual(clusterQuestions.length * 0.05)
  expect(byContext).toBeGreaterThan(clusterQuestions.length / 2)
})

/** Quotes as the oracle wrote them, not as JSON does. */
const plain = (text: string): string => text.replaceAll('\\\\', '\\').replaceAll('\\"', '"')
