import type { SeenCluster } from './connect.ts'
import { type Fields, fieldsOf, listOf, numberOf, sentenceOf, timeOf, toIso, wordOf } from './fields.ts'
import type { ClusterKind } from './kinds.ts'
import { conditionsIn } from './objects.ts'
import { imageOf, sayProbe, showCondition, showPod } from './pod.ts'
import { changeOf } from './rollouts.ts'
import { servicesOf } from './subject.ts'
import { objectsOf } from './view.ts'

/** Formats objects with a list of allowed fields for each kind. No other field is ever shown. */

const quantity = (value: unknown): string => (wordOf(value) || String(numberOf(value))).slice(0, 24)

/** Formats names of resources with amounts, such as `cpu: 500m`. */
const quantities = (given: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fieldsOf(given))
      .slice(0, 20)
      .map(([name, value]) => [sentenceOf(name, 60), quantity(value)]),
  )

const pairs = (given: unknown): string[] =>
  Object.entries(fieldsOf(given))
    .slice(0, 10)
    .map(([name, value]) => `${sentenceOf(name, 80)}=${sentenceOf(value, 63)}`)

/** Shows one object, without its name and kind. */
export function showObject(kind: ClusterKind, given: unknown, { view }: SeenCluster): Record<string, unknown> {
  const object = fieldsOf(given)
  const [metadata, spec, status] = [fieldsOf(object.metadata), fieldsOf(object.spec), fieldsOf(object.status)]
  const [created, ending, change] = [
    timeOf(metadata.creationTimestamp),
    timeOf(metadata.deletionTimestamp),
    changeOf(object),
  ]
  const owner = listOf(metadata.ownerReferences).find(({ controller }) => controller === true)
  const common = {
    ...(created !== null && { created: toIso(created) }),
    ...(ending !== null && { endingSince: toIso(ending) }),
    ...(change && { changed: `${toIso(change.atMs)} by ${change.manager}` }),
    ...(owner && { owner: `${wordOf(owner.kind)} ${wordOf(owner.name)}` }),
  }
  switch (kind) {
    case 'Pod':
      return { ...showPod(given), ...(owner && { owner: common.owner }) }
    case 'Node':
      return { ...common, ...showNode(spec, status) }
    case 'PersistentVolumeClaim':
      return { ...common, ...showClaim(spec, status) }
    case 'Service':
      return {
        ...common,
        ...showService(spec),
        pods: whoIsBehind(wordOf(metadata.namespace), wordOf(metadata.name), view),
      }
    case 'Ingress':
      return { ...common, ...showIngress(spec) }
    case 'ConfigMap':
      return { ...common, keys: showKeys(object), values: 'not shown' }
    case 'ResourceQuota':
      return { ...common, hard: quantities(fieldsOf(status.hard)), used: quantities(fieldsOf(status.used)) }
    case 'PodDisruptionBudget':
      return { ...common, mayGoNow: numberOf(status.disruptionsAllowed), healthy: numberOf(status.currentHealthy) }
    case 'PersistentVolume': {
      const { namespace, name } = fieldsOf(spec.claimRef)
      const claim = wordOf(name) && `${wordOf(namespace)}/${wordOf(name)}`
      return { ...common, state: wordOf(status.phase), class: wordOf(spec.storageClassName), ...(claim && { claim }) }
    }
    case 'Namespace':
      return { ...common, state: wordOf(status.phase) }
    case 'Event':
    case 'ControllerRevision':
      return common
    default:
      return { ...common, ...showWorkload(spec, status) }
  }
}

function showNode(spec: Fields, status: Fields) {
  const info = fieldsOf(status.nodeInfo)
  return {
    ...(spec.unschedulable === true && { cordoned: true }),
    conditions: conditionsIn(status).map(showCondition),
    taints: listOf(spec.taints)
      .slice(0, 10)
      .map(({ key, effect }) => `${sentenceOf(key, 80)}:${wordOf(effect)}`),
    allocatable: quantities(status.allocatable),
    kubelet: wordOf(info.kubeletVersion),
    runtime: wordOf(info.containerRuntimeVersion),
    addresses: listOf(status.addresses)
      .slice(0, 6)
      .map(({ address }) => wordOf(address)),
  }
}

const showClaim = (spec: Fields, status: Fields) => ({
  state: wordOf(status.phase),
  class: wordOf(spec.storageClassName) || 'none',
  asks: quantities(fieldsOf(spec.resources).requests),
  has: quantities(status.capacity),
  access: Array.isArray(spec.accessModes) ? spec.accessModes.slice(0, 4).map(wordOf) : [],
  volume: wordOf(spec.volumeName) || null,
  conditions: conditionsIn(status).map(showCondition),
})

const showService = (spec: Fields) => ({
  type: wordOf(spec.type) || 'ClusterIP',
  selector: pairs(spec.selector),
  ports: listOf(spec.ports)
    .slice(0, 10)
    .map(
      ({ port, targetPort, protocol }) =>
        `${numberOf(port)} → ${wordOf(targetPort) || numberOf(targetPort)} ${wordOf(protocol)}`,
    ),
})

function whoIsBehind(namespace: string, name: string, view: SeenCluster['view']): string {
  const pods = objectsOf(view, 'Pod').filter((pod) => pod.namespace === namespace)
  return servicesOf(view, namespace, pods).find((each) => each.startsWith(`${name} `)) ?? 'the service has no selector'
}

function showIngress(spec: Fields) {
  const backend = (given: unknown) => {
    const service = fieldsOf(fieldsOf(given).service)
    const port = fieldsOf(service.port)
    return `${wordOf(service.name)}:${wordOf(port.name) || numberOf(port.number)}`
  }
  const rules = listOf(spec.rules).flatMap(({ host, http }) =>
    listOf(fieldsOf(http).paths).map(
      (each) => `${wordOf(host) || '*'}${sentenceOf(each.path, 80)} → ${backend(each.backend)}`,
    ),
  )
  return {
    class: wordOf(spec.ingressClassName) || 'the default',
    rules: rules.slice(0, 20),
    ...(spec.defaultBackend !== undefined && { otherwise: backend(spec.defaultBackend) }),
  }
}

/** Formats keys with the sizes of their values. The values are not shown. */
const showKeys = (object: Fields): Record<string, string> =>
  Object.fromEntries(
    [...Object.entries(fieldsOf(object.data)), ...Object.entries(fieldsOf(object.binaryData))]
      .slice(0, 40)
      .map(([key, value]) => [sentenceOf(key, 100), `${Buffer.byteLength(String(value))} bytes`]),
  )

function showWorkload(spec: Fields, status: Fields) {
  const job = fieldsOf(fieldsOf(spec.jobTemplate).spec)
  const template = fieldsOf(fieldsOf(spec.template ?? job.template).spec)
  const counts = [
    'replicas',
    'readyReplicas',
    'updatedReplicas',
    'availableReplicas',
    'unavailableReplicas',
    'numberReady',
    'desiredNumberScheduled',
    'active',
    'succeeded',
    'failed',
  ]
  const settings = [
    'replicas',
    'paused',
    'suspend',
    'schedule',
    'concurrencyPolicy',
    'completions',
    'parallelism',
    'backoffLimit',
    'activeDeadlineSeconds',
    'progressDeadlineSeconds',
    'serviceName',
    'minReadySeconds',
  ]
  const chosen = (from: Fields, names: readonly string[]) =>
    Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, plainOf(from[name])]])))
  const last = timeOf(status.lastScheduleTime)
  const isJob = spec.completions !== undefined || spec.backoffLimit !== undefined
  return {
    ...chosen(spec, settings),
    ...(isJob && spec.activeDeadlineSeconds === undefined && { notSet: ['activeDeadlineSeconds'] }),
    now: chosen(status, counts),
    ...(last !== null && { lastRun: toIso(last) }),
    conditions: conditionsIn(status).map(showCondition),
    selector: pairs(fieldsOf(spec.selector).matchLabels),
    containers: [...listOf(template.initContainers), ...listOf(template.containers)].map(showTemplate),
    serviceAccount: wordOf(template.serviceAccountName) || 'default',
  }
}

const plainOf = (value: unknown): string | number | boolean =>
  typeof value === 'boolean' || typeof value === 'number' ? value : sentenceOf(value, 60)

/** Formats a container of a template: environment variables by name, and no arguments. */
function showTemplate(container: Fields) {
  const env = listOf(container.env).map(({ name }) => sentenceOf(name, 80))
  const { requests, limits } = fieldsOf(container.resources)
  const probes = ['readinessProbe', 'livenessProbe', 'startupProbe']
    .map((name) => [name, sayProbe(container[name])])
    .filter(([, said]) => said !== '')
  return {
    name: wordOf(container.name),
    image: imageOf(container.image),
    ...(env.length > 0 && { env: env.slice(0, 30) }),
    ...(requests !== undefined && { requests: quantities(requests) }),
    ...(limits !== undefined && { limits: quantities(limits) }),
    ...Object.fromEntries(probes),
    ports: listOf(container.ports)
      .slice(0, 8)
      .map(({ containerPort }) => numberOf(containerPort)),
  }
}
