import { type Fields, fieldsOf, listOf, numberOf, sentenceOf, timeOf, toIso, wordOf } from './fields.ts'
import { type Condition, conditionsIn, podState } from './objects.ts'

/**
 * The state that a pod reports, conditions first. Has only fields that may be shown, and never
 * environment variables or arguments.
 */

const maxMessage = 200

type Ended = { reason: string; exitCode: number; signal?: number; finished?: string; ranFor?: string; message?: string }

/** Reads how a container ended. Null for a running container. */
function endOf(given: unknown): Ended | null {
  const ended = fieldsOf(given)
  if (ended.exitCode === undefined) return null
  const [began, finished] = [timeOf(ended.startedAt), timeOf(ended.finishedAt)]
  const message = sentenceOf(ended.message, maxMessage)
  const signal = numberOf(ended.signal)
  return {
    reason: wordOf(ended.reason) || 'unknown',
    exitCode: numberOf(ended.exitCode),
    ...(signal !== 0 && { signal }),
    ...(finished !== null && { finished: toIso(finished) }),
    ...(began !== null &&
      finished !== null &&
      finished >= began && { ranFor: `${Math.round((finished - began) / 1_000)} s` }),
    ...(message !== '' && { message }),
  }
}

/** Returns the name of an image, without a password. */
export const imageOf = (value: unknown): string =>
  sentenceOf(value, 160).replace(/@(sha256:[0-9a-f]{12})[0-9a-f]+$/, '@$1')

function containerOf(spec: Fields, status: Fields, isInit: boolean) {
  const state = fieldsOf(status.state)
  const waiting = fieldsOf(state.waiting)
  const running = timeOf(fieldsOf(state.running).startedAt)
  const ended = endOf(state.terminated)
  const before = endOf(fieldsOf(status.lastState).terminated)
  const message = sentenceOf(waiting.message, maxMessage)
  const is = wordOf(waiting.reason) || (ended ? 'ended' : running !== null ? 'running' : 'not started')
  return {
    name: wordOf(spec.name),
    ...(isInit && { init: true }),
    image: imageOf(spec.image),
    is,
    ...(running !== null && { since: toIso(running) }),
    ...(message !== '' && { message }),
    ...(status.ready === false && !isInit && { ready: false }),
    restarts: numberOf(status.restartCount),
    ...(ended && { ended }),
    ...(before && { before }),
    ...shownResources(spec),
    ...probesOf(spec),
  }
}
export type ShownContainer = ReturnType<typeof containerOf>

function shownResources({ resources }: Fields) {
  const { requests, limits } = fieldsOf(resources)
  const of = (given: unknown) =>
    Object.fromEntries(
      ['cpu', 'memory'].flatMap((name) => {
        const value = wordOf(fieldsOf(given)[name]) || numberOf(fieldsOf(given)[name]) || ''
        return value === '' ? [] : [[name, String(value).slice(0, 20)]]
      }),
    )
  const [asked, most] = [of(requests), of(limits)]
  return {
    ...(Object.keys(asked).length > 0 && { requests: asked }),
    ...(Object.keys(most).length > 0 && { limits: most }),
  }
}

/**
 * Describes the request of each probe by path and port, without headers or the text of a command.
 */
export function sayProbe(given: unknown): string {
  const probe = fieldsOf(given)
  const http = fieldsOf(probe.httpGet)
  const port = (value: unknown) => wordOf(value) || String(numberOf(value) || '')
  const what =
    probe.httpGet !== undefined
      ? `GET ${sentenceOf(http.path, 80).replace(/\?.*$/, '?…') || '/'} port ${port(http.port)}`
      : probe.tcpSocket !== undefined
        ? `TCP port ${port(fieldsOf(probe.tcpSocket).port)}`
        : probe.grpc !== undefined
          ? `gRPC port ${port(fieldsOf(probe.grpc).port)}`
          : probe.exec !== undefined
            ? 'a command'
            : ''
  if (what === '') return ''
  const times = [
    `every ${numberOf(probe.periodSeconds) || 10} s`,
    `timeout ${numberOf(probe.timeoutSeconds) || 1} s`,
    `${numberOf(probe.failureThreshold) || 3} failures`,
    ...(numberOf(probe.initialDelaySeconds) > 0 ? [`after ${numberOf(probe.initialDelaySeconds)} s`] : []),
  ]
  return `${what}, ${times.join(', ')}`
}

function probesOf(spec: Fields) {
  const probes = ['readinessProbe', 'livenessProbe', 'startupProbe'].flatMap((name) => {
    const said = sayProbe(spec[name])
    return said === '' ? [] : [[name.replace('Probe', ''), said] as const]
  })
  return probes.length === 0 ? {} : { probes: Object.fromEntries(probes) }
}

export const showCondition = ({ type, isTrue, reason, message, sinceMs, heardMs }: Condition) => ({
  type,
  is: isTrue === null ? 'Unknown' : isTrue ? 'True' : 'False',
  ...(reason !== '' && { reason }),
  ...(message !== '' && { message }),
  ...(sinceMs !== null && { since: toIso(sinceMs) }),
  ...(isTrue === null && heardMs !== null && { lastHeard: toIso(heardMs) }),
})

/** Formats the unhealthy conditions of a pod. */
function showConditions(conditions: readonly Condition[]) {
  // Leaves out `Ready` beside `ContainersReady`: an unready container makes its pod unready.
  const ill = conditions.filter(({ type, isTrue }) =>
    type === 'DisruptionTarget' || type === 'PodResizePending' ? isTrue !== false : isTrue !== true,
  )
  const isTwice = ({ type }: Condition) => type === 'Ready' && ill.some((each) => each.type === 'ContainersReady')
  return ill.filter((each) => !isTwice(each)).map(showCondition)
}

/** Formats a pod without its events. Unhealthy containers come first. */
export function showPod(given: unknown) {
  const pod = fieldsOf(given)
  const [metadata, spec, status] = [fieldsOf(pod.metadata), fieldsOf(pod.spec), fieldsOf(pod.status)]
  const statuses = [...listOf(status.initContainerStatuses), ...listOf(status.containerStatuses)]
  const statusOf = (name: unknown) => statuses.find((each) => each.name === name) ?? {}
  const containers = [
    ...listOf(spec.initContainers).map((each) => containerOf(each, statusOf(each.name), true)),
    ...listOf(spec.containers).map((each) => containerOf(each, statusOf(each.name), false)),
  ]
  const isEnding = timeOf(metadata.deletionTimestamp)
  const created = timeOf(metadata.creationTimestamp)
  const message = sentenceOf(status.message, maxMessage)
  return {
    state: podState(isEnding !== null, status),
    ...(message !== '' && { message }),
    ...(created !== null && { created: toIso(created) }),
    ...(isEnding !== null && { endingSince: toIso(isEnding) }),
    node: wordOf(spec.nodeName) || null,
    conditions: showConditions(conditionsIn(status)),
    containers: containers.sort((a, b) => gravity(b) - gravity(a)),
  }
}

export type ShownPod = ReturnType<typeof showPod>

function gravity({ is, ready, restarts, ended, init, before }: ShownContainer): number {
  if (ended && ended.exitCode !== 0) return 4
  if (is !== 'running' && is !== 'ended' && !(init && is === 'not started')) return 3
  if (ready === false) return 2
  return restarts > 0 || before ? 1 : 0
}

/** Lists the names of ConfigMaps and claims to which a pod's template refers. */
export function referencesOf(given: unknown): { configMaps: string[]; claims: string[] } {
  const spec = fieldsOf(given)
  const volumes = listOf(spec.volumes)
  const containers = [...listOf(spec.initContainers), ...listOf(spec.containers)]
  const projected = volumes.flatMap((each) => listOf(fieldsOf(each.projected).sources))
  const configMaps = [
    ...[...volumes, ...projected].map(({ configMap }) => fieldsOf(configMap).name),
    ...containers.flatMap(({ envFrom }) => listOf(envFrom)).map(({ configMapRef }) => fieldsOf(configMapRef).name),
    ...containers
      .flatMap(({ env }) => listOf(env))
      .map(({ valueFrom }) => fieldsOf(fieldsOf(valueFrom).configMapKeyRef).name),
  ]
  const claims = volumes.map(({ persistentVolumeClaim }) => fieldsOf(persistentVolumeClaim).claimName)
  const names = (given: unknown[]) => [...new Set(given.map(wordOf).filter((name) => name !== ''))].slice(0, 20)
  return { configMaps: names(configMaps).filter((name) => name !== 'kube-root-ca.crt'), claims: names(claims) }
}
