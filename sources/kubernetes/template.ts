import { createHash } from 'node:crypto'
import { type Fields, fieldsOf, listOf, numberOf, sentenceOf, wordOf } from './fields.ts'
import { imageOf, sayProbe } from './pod.ts'

/**
 * Fields of a pod template, to compare two revisions. `shown` is the value if it may be shown. Of
 * any other field, such as environment, arguments and annotations, only the name is shown; its
 * digest is only compared, and never leaves this file.
 */

type TemplateField = { shown: string | null; digest: string }
type TemplateFields = Map<string, TemplateField>

const maxShown = 100

const digestOf = (value: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(value ?? null))
    .digest('hex')

const nameIn = (value: unknown): string => sentenceOf(value, 80)

export function fieldsOfTemplate(given: unknown): TemplateFields {
  const template = fieldsOf(given)
  const [metadata, spec] = [fieldsOf(template.metadata), fieldsOf(template.spec)]
  const fields: TemplateFields = new Map()
  const show = (name: string, text: string) =>
    text === '' || fields.set(name, { shown: sentenceOf(text, maxShown), digest: digestOf(text) })
  const hide = (name: string, value: unknown) =>
    value === undefined || fields.set(name, { shown: null, digest: digestOf(value) })
  for (const [what, list] of [
    ['container', spec.containers],
    ['init container', spec.initContainers],
  ] as const)
    for (const each of listOf(list)) addContainer(`${what} ${nameIn(each.name)}`, each, show, hide)
  for (const volume of listOf(spec.volumes)) show(`volume ${nameIn(volume.name)}`, sayVolume(volume))
  for (const name of ['serviceAccountName', 'priorityClassName', 'runtimeClassName', 'nodeName', 'schedulerName'])
    show(name, wordOf(spec[name]))
  for (const [name, value] of Object.entries(fieldsOf(spec.nodeSelector)))
    show(`nodeSelector ${nameIn(name)}`, wordOf(value))
  if (spec.terminationGracePeriodSeconds !== undefined)
    show('terminationGracePeriodSeconds', String(numberOf(spec.terminationGracePeriodSeconds)))
  for (const name of [
    'affinity',
    'tolerations',
    'topologySpreadConstraints',
    'securityContext',
    'hostNetwork',
    'dnsConfig',
    'imagePullSecrets',
  ])
    hide(name, spec[name])
  for (const [name, value] of Object.entries(fieldsOf(metadata.annotations))) addAnnotation(name, value, show, hide)
  for (const [name, value] of Object.entries(fieldsOf(metadata.labels)))
    if (name !== 'pod-template-hash') hide(`label ${nameIn(name)}`, value)
  return fields
}

/** The annotation that `kubectl rollout restart` sets to the time, as its only change. */
const restarted = 'kubectl.kubernetes.io/restartedAt'

function addAnnotation(name: string, value: unknown, show: Show, hide: Hide): void {
  const isTime = typeof value === 'string' && !Number.isNaN(Date.parse(value)) && value.length < 40
  if (name === restarted && isTime) show('restarted at', value)
  else hide(`annotation ${nameIn(name)}`, value)
}

type Show = (name: string, text: string) => unknown
type Hide = (name: string, value: unknown) => unknown

function addContainer(at: string, container: Fields, show: Show, hide: Hide): void {
  show(`${at} image`, imageOf(container.image))
  hide(`${at} command`, container.command)
  addArguments(at, container.args, hide)
  for (const each of listOf(container.env)) hide(`${at} env ${nameIn(each.name)}`, each.value ?? each.valueFrom ?? '')
  for (const { configMapRef, secretRef } of listOf(container.envFrom)) {
    const [map, secret] = [nameIn(fieldsOf(configMapRef).name), nameIn(fieldsOf(secretRef).name)]
    if (map !== '') show(`${at} envFrom configMap ${map}`, 'all of it')
    if (secret !== '') show(`${at} envFrom secret ${secret}`, 'all of it')
  }
  const resources = fieldsOf(container.resources)
  for (const kind of ['requests', 'limits'])
    for (const [name, value] of Object.entries(fieldsOf(resources[kind])))
      show(`${at} ${kind} ${nameIn(name)}`, wordOf(value) || String(numberOf(value)))
  for (const probe of ['readinessProbe', 'livenessProbe', 'startupProbe']) {
    const said = sayProbe(container[probe])
    show(`${at} ${probe}`, said)
    // Compares hidden parts of a probe too, such as headers and command.
    if (said !== '') hide(`${at} ${probe} in its details`, container[probe])
  }
  for (const { containerPort, protocol } of listOf(container.ports))
    show(`${at} port ${numberOf(containerPort)}`, wordOf(protocol) || 'TCP')
  for (const { name, mountPath } of listOf(container.volumeMounts)) hide(`${at} mount of ${nameIn(name)}`, mountPath)
  for (const name of ['securityContext', 'lifecycle', 'workingDir']) hide(`${at} ${name}`, container[name])
}

/** Adds each argument of the form `--name=value` by its name. All other arguments are one field. */
function addArguments(at: string, given: unknown, hide: Hide): void {
  if (!Array.isArray(given)) return
  const rest: unknown[] = []
  for (const each of given) {
    const [, name, value] = /^(--[a-z][a-z-]{1,60})=(.*)$/s.exec(String(each)) ?? []
    if (name === undefined) rest.push(each)
    else hide(`${at} argument ${nameIn(name)}`, value)
  }
  hide(`${at} arguments`, rest)
}

const volumeNames = { configMap: 'name', secret: 'secretName', persistentVolumeClaim: 'claimName' } as const

function sayVolume(volume: Fields): string {
  for (const [kind, field] of Object.entries(volumeNames)) {
    const name = wordOf(fieldsOf(volume[kind])[field])
    if (name !== '') return `${kind} ${name}`
  }
  return Object.keys(volume).find((key) => key !== 'name' && /^[A-Za-z]{1,40}$/.test(key)) ?? 'unknown'
}

const isDetailOf = (name: string, changes: readonly string[]): boolean =>
  name.endsWith(' in its details') && changes.some((each) => each.startsWith(name.replace(' in its details', ':')))

/**
 * Lists the changes between two templates as lines, with old and new value if both may be shown.
 */
export function changesBetween(before: TemplateFields, after: TemplateFields): string[] {
  const changes: string[] = []
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const [old, now] = [before.get(name), after.get(name)]
    if (old?.digest === now?.digest) continue
    if (!old) changes.push(now?.shown === null ? `${name} added` : `${name}: added ${now?.shown}`)
    else if (!now) changes.push(old.shown === null ? `${name} removed` : `${name}: removed (was ${old.shown})`)
    else if (old.shown === null || now.shown === null) changes.push(`${name} changed`)
    else changes.push(`${name}: ${old.shown} → ${now.shown}`)
  }
  return changes.filter((each) => !isDetailOf(each.replace(/ (?:changed|added|removed)$/, ''), changes))
}
